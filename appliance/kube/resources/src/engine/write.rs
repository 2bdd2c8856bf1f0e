//! Writing: each way to change an object, and what may refuse it.

pub mod admission;
pub mod apply;
pub mod create;
pub mod delete;
pub mod mend;
pub mod modify;
pub mod patch;
pub mod room;
pub mod unique;
pub mod weight;
