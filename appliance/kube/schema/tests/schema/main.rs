//! Tests of schemas, rules and definitions, as one binary that is linked once.

mod definitions_golden;
mod hostile;
mod limits;
mod objects;
mod objects_golden;
mod rules;
