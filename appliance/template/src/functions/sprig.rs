//! Functions of Sprig with the same result at each call (its `HermeticTxtFuncMap`), by topic.

mod defaults;
mod dicts;
mod duration;
mod encoding;
mod equal;
mod lists;
mod numbers;
mod paths;
mod strings;
mod urls;
pub mod versions;

use crate::function::Function;
use encoding::cipher;
use strings::{cases, pieces, regexes, wrap};

/// Returns the functions of all topics.
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
