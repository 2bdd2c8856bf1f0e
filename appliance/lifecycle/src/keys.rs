//! Keys of the box: sealed to its TPM and copied; and tokens of administrators.

pub mod copies;
pub mod sealing;
