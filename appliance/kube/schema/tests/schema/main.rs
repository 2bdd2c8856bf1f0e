//! Schemas, rules and definitions, in one binary, so that it is linked once.

mod definitions_golden;
mod hostile;
mod limits;
mod objects;
mod objects_golden;
mod rules;
