//! Checks the tree against each law.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use tidy::supply::{Built, Rules};
use tidy::tree::Tree;
use tidy::{
    Violation, acceptance, counts, features, findings, floors, places, ratchet, scripts, seeds,
    shape, supply, targets, unsafety, waits, words,
};

static TREE: LazyLock<Tree> = LazyLock::new(Tree::read);

#[track_caller]
fn holds(law: &str, violations: &[Violation]) {
    let list: String = violations.iter().map(|violation| format!("\n  {violation}")).collect();
    assert!(violations.is_empty(), "{law}; {} breaches:{list}", violations.len());
}

#[test]
fn the_tree_was_read() {
    assert!(TREE.rust().count() > 100, "{} Rust files", TREE.rust().count());
    assert!(TREE.file("tests/tidy/tests/laws.rs").is_some_and(|file| file.is_test));
    assert!(TREE.files.iter().all(|file| !file.path.starts_with("target/")));
}

#[test]
fn nobody_reaches_above_their_floor() {
    holds("a crate uses its floor's crates only", &floors::floors(&TREE));
}

#[test]
fn floors_have_crates() {
    holds("each crate of the table of floors is a member", &floors::dead_floors(&TREE));
}

#[test]
fn manifests_take_all_from_the_workspace() {
    holds("versions, features and lints are named once", &floors::manifests(&TREE));
}

#[test]
fn the_rules_are_pure_and_the_ground_is_plain() {
    holds("api does no I/O and reads no clock", &floors::purity(&TREE));
    holds("stdx has no word of the domain", &floors::ground(&TREE));
}

#[test]
fn files_and_functions_fit_in_a_head() {
    holds("files, functions and inner tests have their limits", &shape::sizes(&TREE));
}

#[test]
fn lines_fit_on_a_screen() {
    holds("a line has at most 100 characters", &shape::columns(&TREE));
}

#[test]
fn every_file_says_what_it_is_for() {
    holds("a file begins with //!", &shape::heads(&TREE));
    holds("a module is named for what it holds", &shape::names(&TREE));
}

#[test]
fn nothing_is_left_unfinished() {
    holds("no todo!, unimplemented!, dbg! or ignored test", &words::unfinished(&TREE));
}

#[test]
fn nothing_is_unwrapped() {
    holds("no unwrap outside tests", &words::unwraps(&TREE));
}

#[test]
fn no_test_sleeps_and_hopes() {
    holds("tests poll with a limit, asynchronous ones on virtual time", &waits::sleeps(&TREE));
}

#[test]
fn no_test_fails_because_the_machine_is_slow() {
    holds("measured time has no upper bound", &waits::bounds(&TREE));
    holds("a wait may take a minute", &waits::patience(&TREE));
    holds("what these laws leave out is there", &waits::free_folders(&TREE));
}

#[test]
fn no_test_draws_its_own_seed() {
    holds("chance has a seed", &seeds::seeds(&TREE));
}

#[test]
fn no_test_takes_a_name_of_the_whole_machine() {
    holds("namespaces, interfaces and folders are a test's own", &places::fixed_names(&TREE));
}

#[test]
fn an_exact_count_has_its_reason() {
    holds("what may be repeated is not counted", &counts::counts(&TREE));
}

#[test]
fn a_finding_has_a_test_that_exists() {
    holds("docs/reviews.md names tests", &findings::findings(&TREE));
}

#[test]
fn an_acceptance_row_names_tests_that_exist() {
    holds("rows.toml names tests", &acceptance::rows(&TREE));
}

#[test]
fn words_and_sizes_only_improve() {
    if std::env::var_os("LOWER").is_some() {
        let recorded = ratchet::recorded(&TREE).expect("ratchets.toml is read");
        let text = ratchet::lowered(&recorded, &ratchet::measured(&TREE));
        std::fs::write(Tree::root().join(ratchet::FILE), text).expect("ratchets.toml is written");
        return;
    }
    holds("no figure of ratchets.toml rises", &ratchet::ratchets(&TREE));
}

#[test]
fn a_crate_has_one_binary_of_tests() {
    holds("one binary of tests for each member", &targets::test_binaries(&TREE));
    holds("doctest = false where there is no example", &targets::doc_tests(&TREE));
}

#[test]
fn unsafe_code_has_a_place_and_a_proof() {
    holds("unsafe code is listed and proved", &unsafety::unsafety(&TREE));
}

#[test]
fn scripts_stop_at_their_first_mistake() {
    holds("set -eu", &scripts::careful(&TREE));
}

#[test]
fn nothing_names_what_a_reader_lacks() {
    let tools: Vec<PathBuf> = ["CARGO_HOME", "RUSTUP_HOME"]
        .iter()
        .filter_map(|name| std::env::var_os(name).map(PathBuf::from))
        .collect();
    let tools: Vec<_> = tools.iter().map(PathBuf::as_path).collect();
    holds("texts that are named are there", &scripts::documents(&TREE));
    holds("paths are relative", &scripts::portable(&TREE, &Tree::root(), &tools));
}

/// Output of `cargo tree` for the whole workspace.
fn cargo_tree(edges: &str, format: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--workspace", "--edges", edges])
        .args(["--prefix", "none", "--format", format])
        .current_dir(Tree::root())
        .output()
        .expect("cargo runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn only_known_crates_are_built_in() {
    let deny = TREE.file("deny.toml").expect("the tree has deny.toml");
    let rules = Rules::read(&deny.text).expect("deny.toml");
    // The lock file alone would include crates that no feature enables.
    let answer = cargo_tree("normal,build,dev", Built::FORMAT);
    let built = Built::read(&answer);
    assert!(built.iter().any(|one| one.name == "tokio"), "{} crates", built.len());
    holds("deny.toml's licences, bans and doubles", &supply::crates(&rules, &built));
}

#[test]
fn programs_and_tests_are_built_of_the_same() {
    let [programs, tests] =
        ["normal,build", "normal,build,dev"].map(|edges| cargo_tree(edges, features::FORMAT));
    assert!(programs.contains("tokio v"), "{} bytes", programs.len());
    holds("tests add crates, no features", &features::features(&programs, &tests));
}

#[test]
fn crates_come_from_crates_io() {
    holds("one source", &supply::sources(&TREE));
}
