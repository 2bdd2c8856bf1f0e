//! Table of the functions that a template can call.

mod builtin;
mod compare;
mod escape;
pub mod sprig;
mod tinkerbell;

use crate::function::Function;

/// Names of upstream functions that are refused here, with the reason.
const REFUSED: [(&[&str], &str); 3] = [
    (
        &[
            "randInt",
            "shuffle",
            "bcrypt",
            "htpasswd",
            "encryptAES",
            "genPrivateKey",
            "genCA",
            "genCAWithKey",
            "genSelfSignedCert",
            "genSelfSignedCertWithKey",
            "genSignedCert",
            "genSignedCertWithKey",
            "buildCustomCert",
        ],
        "returns another value at each call, but a template must always render the same",
    ),
    (
        &["ago", "toDate", "mustToDate", "mustDateModify", "must_date_modify", "unixEpoch"],
        "depends on the clock or the time zone, but a template must always render the same",
    ),
    (&["derivePassword"], "uses 32 MiB of memory at each call, which is too much for a box"),
];

/// Returns every function. If two have the same name, templates call the first.
pub fn all() -> impl Iterator<Item = &'static Function> {
    // Sprig's functions come before Go's: Sprig's `slice` hides Go's.
    tinkerbell::FUNCTIONS.iter().chain(sprig::tables()).chain(builtin::FUNCTIONS)
}

/// Returns the names of refused functions, with the reason.
pub fn refused() -> impl Iterator<Item = (&'static str, &'static str)> {
    REFUSED.iter().flat_map(|(names, why)| names.iter().map(|name| (*name, *why)))
}

/// Finds a function by name.
///
/// # Errors
/// The function does not exist or is refused.
pub fn find(name: &str) -> Result<&'static Function, String> {
    if let Some(function) = all().find(|function| function.name == name) {
        return Ok(function);
    }
    let refused = REFUSED.iter().find(|(names, _)| names.contains(&name));
    Err(match refused {
        Some((_, why)) => format!("function {name:?} {why}"),
        None => format!("function {name:?} not defined"),
    })
}
