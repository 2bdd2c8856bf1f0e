//! Sprig's functions that give the same each time (its `HermeticTxtFuncMap`), by topic.

mod cases;
mod cast;
mod cipher;
mod constraint;
mod decimal;
mod defaults;
mod dicts;
mod duration;
mod encoding;
mod equal;
mod lists;
mod merge;
mod numbers;
mod paths;
mod pattern;
mod pieces;
mod regexes;
mod strings;
mod urls;
pub mod versions;
mod wrap;

use crate::function::Function;
pub use pattern::Patterns;

/// Functions of all tables.
pub fn tables() -> impl Iterator<Item = &'static Function> {
    [
        cases::FUNCTIONS,
        cipher::FUNCTIONS,
        defaults::FUNCTIONS,
        dicts::FUNCTIONS,
        duration::FUNCTIONS,
        encoding::FUNCTIONS,
        lists::FUNCTIONS,
        numbers::FUNCTIONS,
        paths::FUNCTIONS,
        pieces::FUNCTIONS,
        regexes::FUNCTIONS,
        strings::FUNCTIONS,
        urls::FUNCTIONS,
        versions::FUNCTIONS,
        wrap::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}
