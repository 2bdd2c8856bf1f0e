//! Limits of one rendering. A template that exceeds one is refused with the limit's name.

/// The largest rendered text, in bytes (Tinkerbell's own limit).
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// Largest template, in bytes: that of an API object.
pub const TEMPLATE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Deepest nesting of actions, parentheses and templates.
pub const NESTING_MAX: usize = 100;
/// Deepest nesting of a value that is printed, compared or written.
pub const VALUE_DEPTH_MAX: usize = 100;
/// Most actions, commands, loop rounds and elements that one rendering may visit.
pub const STEPS_MAX: usize = 1_000_000;
/// The largest text that a function may make, in bytes.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// The longest list that a function may make.
pub const LIST_ITEMS_MAX: usize = 65_536;
/// Most bytes of all values of one rendering.
pub const HEAP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most bytes of one compiled pattern.
pub const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// Cost of compiling a pattern, in steps, up to [`SMALL_PATTERN_BYTES`]; a larger one costs
/// [`LARGE_PATTERN_STEPS`] more.
pub const PATTERN_STEPS: usize = 2_000;
/// Most bytes of a small pattern.
pub const SMALL_PATTERN_BYTES: usize = 256 * 1024;
/// Most compiled patterns that one rendering caches; only small ones.
pub const PATTERNS_KEPT_MAX: usize = 8;
/// Most bytes of one pattern's states while it is matched.
pub const PATTERN_STATES_BYTES: usize = 256 * 1024;
/// Additional cost of compiling a large pattern, in steps.
pub const LARGE_PATTERN_STEPS: usize = 8_000;
/// The longest list of constraints that a version is held against, in bytes.
pub const CONSTRAINT_BYTES_MAX: usize = 4096;
/// The widest field of `printf`, and its longest precision (Go's own limit is 1e6).
pub const WIDTH_MAX: usize = 65_536;
/// The longest message of an error, in characters.
pub const MESSAGE_CHARS_MAX: usize = 400;
/// Bytes of text that cost one step.
pub const STEP_BYTES: usize = 64;
