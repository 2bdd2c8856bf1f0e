//! Actions on the whole box: restart, reset, and the actions that people start at the box itself.

pub mod local_actions;
pub mod reset;
