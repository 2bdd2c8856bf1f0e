//! Write operations, and the checks that may refuse them.

pub mod admission;
pub mod apply;
pub mod create;
pub mod delete;
pub mod mend;
pub mod modify;
pub mod room;
pub mod unique;
pub mod weight;
