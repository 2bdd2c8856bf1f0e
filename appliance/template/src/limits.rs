//! What one rendering may take. A template that needs more is refused with the limit's name.

/// The largest rendered text, in bytes (Tinkerbell's own limit).
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// The largest template, in bytes: an object of the API is no larger.
pub const TEMPLATE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How deep actions, parentheses and templates may lie in one another.
pub const NESTING_MAX: usize = 100;
/// How deep a value may be nested where it is printed, compared or written.
pub const VALUE_DEPTH_MAX: usize = 100;
/// How many actions, commands, rounds and elements one rendering may visit.
pub const STEPS_MAX: usize = 1_000_000;
/// The largest text that a function may make, in bytes.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// The longest list that a function may make.
pub const LIST_ITEMS_MAX: usize = 65_536;
/// What all values of one rendering may take together, in bytes.
pub const HEAP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What one compiled pattern may take, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// What compiling one pattern costs, in steps, as long as it takes no more than
/// [`SMALL_PATTERN_BYTES`]; else [`LARGE_PATTERN_STEPS`] more.
pub const PATTERN_STEPS: usize = 2_000;
/// What a small pattern takes at most, in bytes.
pub const SMALL_PATTERN_BYTES: usize = 256 * 1024;
/// How many compiled patterns one rendering keeps for another use; only small ones.
pub const PATTERNS_KEPT_MAX: usize = 8;
/// What the states of one pattern may take while it is matched, in bytes.
pub const PATTERN_STATES_BYTES: usize = 256 * 1024;
/// What compiling a large pattern costs more, in steps.
pub const LARGE_PATTERN_STEPS: usize = 8_000;
/// The longest list of constraints that a version is held against, in bytes.
pub const CONSTRAINT_BYTES_MAX: usize = 4096;
/// The widest field of `printf`, and its longest precision (Go's own limit is 1e6).
pub const WIDTH_MAX: usize = 65_536;
/// The longest message of an error, in characters.
pub const MESSAGE_CHARS_MAX: usize = 400;
/// How many bytes of text are worth one step.
pub const STEP_BYTES: usize = 64;
