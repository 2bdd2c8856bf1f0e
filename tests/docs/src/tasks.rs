//! `docs/reference/tasks.md`: the tasks of `tinboxd`, found where they are spawned.

use regex::Regex;

use crate::page::head;
use crate::source::product;

const ABOUT: &str = "\
`tinboxd` runs each of these as a task of one `JoinSet`. A task that ends or panics ends the \
process, and process 1 restarts it. A name that is a variable in the code is printed as *several*.";

/// Returns the page as Markdown text.
///
/// # Panics
/// Never: the pattern is valid.
pub fn page() -> String {
    let spawn = Regex::new(r#"self\s*\.spawn\(\s*("([^"]+)"|[a-z_]+),"#).expect("a valid pattern");
    let mut rows = Vec::new();
    for source in product().iter().filter(|source| source.krate() == "supervisor") {
        for found in spawn.captures_iter(&source.text) {
            let name = found.get(2).map_or("*several*", |name| name.as_str());
            rows.push(format!("| {name} | `{}` |\n", source.path));
        }
    }
    rows.sort();
    rows.dedup();
    format!("{}\n| task | spawned in |\n|---|---|\n{}", head("Tasks", ABOUT), rows.concat())
}
