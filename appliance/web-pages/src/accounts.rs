//! Pages of claim, login, users and access tokens.

pub mod entry;
pub mod tokens;
pub mod users;
