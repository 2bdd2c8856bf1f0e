//! Pages of machines besides the parts that change: actions, several machines, tabs.

pub mod forms;
pub mod several;
pub mod tabs;
