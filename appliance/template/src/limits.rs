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
pub const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// What compiling one pattern costs, in steps.
pub const PATTERN_STEPS: usize = 2_000;
/// The widest field of `printf`, and its longest precision (Go's own limit is 1e6).
pub const WIDTH_MAX: usize = 65_536;
/// The longest message of an error, in characters.
pub const MESSAGE_CHARS_MAX: usize = 400;
/// How many bytes of text are worth one step.
pub const STEP_BYTES: usize = 64;
