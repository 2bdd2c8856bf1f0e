//! Time in tests: a slow machine must not fail a test. Limits of waits are wide, no measured time
//! has an upper bound, and an asynchronous test sleeps on virtual time only.

mod bounds;
mod comparisons;
mod durations;
mod patience;
mod sleeps;

pub use bounds::bounds;
pub use patience::patience;
pub use sleeps::sleeps;

use crate::Violation;
use crate::tree::{File, Tree};

/// Folders in which all time is virtual.
const SIMULATED: [&str; 1] = ["tests/sim/src/fleet"];
/// Programs that measure: people run them on a quiet machine, and no check depends on them.
const BENCHES: [&str; 6] = [
    "tests/api-bench/",
    "tests/boot-bench/",
    "tests/hostile-bench/",
    "tests/imaging-bench/",
    "tests/scenarios/src/bin/tinbox-bench",
    "tests/firmware/src/bin/tinbox-bench-box",
];

/// The folders and programs that these laws exclude are in the tree.
pub fn free_folders(tree: &Tree) -> Vec<Violation> {
    let is_gone = |at: &&&str| !tree.rust().any(|file| file.path.starts_with(**at));
    let gone = SIMULATED.iter().chain(&BENCHES).filter(is_gone);
    gone.map(|at| Violation::of(at, "it is gone: strike it from tests/tidy")).collect()
}

/// The Rust files whose tests run in real time.
fn timed(tree: &Tree) -> impl Iterator<Item = &File> {
    let is_free =
        |file: &File| SIMULATED.iter().chain(&BENCHES).any(|at| file.path.starts_with(at));
    tree.rust().filter(move |file| !is_free(file))
}
