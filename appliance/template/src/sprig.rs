//! Sprig's functions that give the same each time (its `HermeticTxtFuncMap`), by topic.

mod cases;
mod cast;
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
mod wrap;

use crate::function::Function;

/// Every function.
pub fn tables() -> impl Iterator<Item = &'static Function> {
    [
        cases::FUNCTIONS,
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
        wrap::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}
