//! Limits of one rendering. A template that exceeds a limit fails with the name of the limit.

/// Maximum length of the rendered text, in bytes (Tinkerbell's own limit).
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// Maximum size of a template in bytes, as of an API object.
pub const TEMPLATE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum nesting of actions, parentheses and templates.
pub const NESTING_MAX: usize = 100;
/// Maximum nesting of a value that is printed, compared or encoded.
pub const VALUE_DEPTH_MAX: usize = 100;
/// Maximum number of actions, commands, loop rounds and elements that one rendering may visit.
pub const STEPS_MAX: usize = 1_000_000;
/// Maximum length of a text that a function creates, in bytes.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of a list that a function creates.
pub const LIST_ITEMS_MAX: usize = 65_536;
/// Maximum bytes of all values of one rendering.
pub const HEAP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum size of one compiled pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// Cost of compiling a pattern, in steps, up to [`SMALL_PATTERN_BYTES`]; a larger one costs
/// [`LARGE_PATTERN_STEPS`] more.
pub const PATTERN_STEPS: usize = 2_000;
/// Maximum size of a small pattern, in bytes.
pub const SMALL_PATTERN_BYTES: usize = 256 * 1024;
/// Maximum number of small compiled patterns in the cache of one rendering.
pub const PATTERNS_KEPT_MAX: usize = 8;
/// Maximum bytes of one pattern's states during a match.
pub const PATTERN_STATES_BYTES: usize = 256 * 1024;
/// Additional cost of compiling a large pattern, in steps.
pub const LARGE_PATTERN_STEPS: usize = 8_000;
/// Maximum length of a constraint text, in bytes.
pub const CONSTRAINT_BYTES_MAX: usize = 4096;
/// Maximum width and precision of `printf` (Go's own limit is 1e6).
pub const WIDTH_MAX: usize = 65_536;
/// Maximum length of an error message, in characters.
pub const MESSAGE_CHARS_MAX: usize = 400;
/// Bytes of text that cost one step.
pub const STEP_BYTES: usize = 64;
