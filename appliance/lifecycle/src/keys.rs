//! Keys of the box: sealed to its board, copied, and the tokens of administrators.

pub mod admin_tokens;
pub mod copies;
pub mod sealing;
