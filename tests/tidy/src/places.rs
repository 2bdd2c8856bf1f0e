//! Machine-wide names in tests. Two checkouts on one machine may test at once, so a namespace, an
//! interface or a folder needs a unique name.

use crate::Violation;
use crate::exceptions::{Exception, Exceptions};
use crate::source::{Source, strings};
use crate::tree::{File, Tree};

/// Fixed names that are permitted, with reasons.
const FIXED: [Exception; 6] = [
    (
        "boot-services/agent/tests/agent/loops.rs",
        "machine",
        "a lock between all tests of the machine",
    ),
    (
        "boot-services/inventory/tests/inventory/neighbors.rs",
        "NAMESPACE",
        "the script runs in a network namespace without a name (unshare --net)",
    ),
    ("tests/peers/tests/peers/comparison/normal.rs", "RULES", "a text that kubectl prints"),
    (
        "tests/peers/tests/peers/comparison/normal.rs",
        "what_means_something_stays",
        "a path in a text, never opened",
    ),
    (
        "tests/qemu/src/leftovers.rs",
        "WORK_ROOT",
        "each rack's folder in it has the process id, and sweeping finds what a killed rack left",
    ),
    ("tests/qemu/src/rack.rs", "wire", "the commands run in the rack's own namespace"),
];

/// Folders that all programs share.
const SHARED: [&str; 2] = ["/tmp/", "/dev/shm/"];
/// Kinds of things that `ip` adds to the machine.
const ADDED: [&str; 3] = ["netns", "link", "tuntap"];

/// No test names a namespace, an interface or a folder outside a temporary one.
pub fn fixed_names(tree: &Tree) -> Vec<Violation> {
    fixed_names_except(tree, &FIXED)
}

fn fixed_names_except(tree: &Tree, fixed: &[Exception]) -> Vec<Violation> {
    let mut exceptions = Exceptions::new(fixed);
    let mut violations = Vec::new();
    for file in tree.rust().filter(|file| !file.path.starts_with("tests/tidy/")) {
        let source = Source::new(file);
        for (at, name) in named(file, &source) {
            let line = source.line(at);
            if source.is_test(line) && !exceptions.excuse(&file.path, source.item_name(line)) {
                let what = format!("{name} is one for the whole machine: put the process id in it");
                violations.push(Violation::at(&file.path, line, what));
            }
        }
        for at in fixed_temporary(&source) {
            let line = source.line(at);
            if !exceptions.excuse(&file.path, source.item_name(line)) {
                let what = "a fixed name in the temporary folder, which all programs share: use \
                            `tempfile`";
                violations.push(Violation::at(&file.path, line, what.to_owned()));
            }
        }
    }
    violations.extend(exceptions.unused("the law of fixed names"));
    violations
}

/// Offsets of literals and constants that code joins to the temporary folder. Product code is
/// checked too: its tests run in parallel, and another user may have created the name before.
fn fixed_temporary<'a>(source: &'a Source<'_>) -> impl Iterator<Item = usize> + 'a {
    const JOIN: &str = "temp_dir().join(";
    source.code.match_indices(JOIN).map(|(at, _)| at).filter(|at| {
        let name = source.file.text[at + JOIN.len()..].trim_start();
        name.starts_with(|char: char| char == '"' || char.is_uppercase())
    })
}

/// The fixed names in a file's texts.
fn named(file: &File, source: &Source<'_>) -> Vec<(usize, String)> {
    let texts = strings(&file.text);
    let mut found = Vec::new();
    for (index, range) in texts.iter().enumerate() {
        let text = &file.text[range.clone()];
        for folder in SHARED {
            for (at, _) in text.match_indices(folder) {
                let name = word(&text[at..]);
                let before = text[..at].trim_end_matches("/var").chars().next_back();
                // Regular expressions and parts of longer paths are not folders.
                let is_path = before.is_none_or(|char| "\"# =':>".contains(char));
                let is_fixed = !text[at + name.len()..].starts_with('{');
                if is_path && is_fixed && name.len() > folder.len() && !is_pattern(name) {
                    found.push((range.start + at, name.to_owned()));
                }
            }
        }
        found.extend(added(text, source).map(|(at, name)| (range.start + at, name)));
        // The words of a command as a list.
        let inside = |range: &std::ops::Range<usize>| file.text[range.clone()].trim_matches('"');
        let [before, after] = [index.wrapping_sub(1), index + 1].map(|at| texts.get(at));
        if inside(range) == "add"
            && let (Some(before), Some(after)) = (before, after)
            && ADDED.contains(&inside(before))
            && file.text[range.end..after.start].trim() == ","
            && !inside(after).starts_with(['{', '-'])
        {
            found.push((range.start, format!("{} {}", inside(before), inside(after))));
        }
    }
    found
}

/// Fixed names that the commands in a text add to the machine's own namespace.
fn added<'a>(text: &'a str, source: &'a Source<'_>) -> impl Iterator<Item = (usize, String)> + 'a {
    // A script that creates its namespaces inside an unnamed one may use fixed names.
    let is_own = text
        .lines()
        .any(|line| line.starts_with("mount -t tmpfs") && line.trim_end().ends_with("/run/netns"));
    let one = move |(at, phrase): (usize, &'static str)| {
        if is_own {
            return None;
        }
        let command = text[..at].rsplit(['\n', ';', '&', '|', '"']).next()?;
        if command.contains("-n ") || command.contains("netns exec") {
            return None;
        }
        let rest = text[at + phrase.len()..].trim_start();
        let rest = ["name ", "dev "]
            .iter()
            .find_map(|word| rest.strip_prefix(word))
            .unwrap_or(rest)
            .trim_matches(['\'', '"']);
        let is_fixed = match rest.strip_prefix('{') {
            // A variable of this type holds a text from the program.
            Some(variable) => {
                let variable = variable.split('}').next()?;
                source.code.contains(&format!("{variable}: &'static str"))
            }
            None => rest.starts_with(|char: char| char.is_alphanumeric()),
        };
        is_fixed.then(|| {
            (at, format!("{} {}", phrase.split(' ').next().unwrap_or_default(), word(rest)))
        })
    };
    ["netns add ", "link add ", "tuntap add "]
        .into_iter()
        .flat_map(move |phrase| text.match_indices(phrase).map(move |(at, _)| (at, phrase)))
        .filter_map(one)
}

fn is_pattern(name: &str) -> bool {
    name.contains(['(', '[', '\\'])
}

fn word(text: &str) -> &str {
    let end = text.find(|char: char| !char.is_alphanumeric() && !"/._-([\\{}".contains(char));
    let word = &text[..end.unwrap_or(text.len())];
    // An interpolated part makes the name unique.
    word.split('{').next().filter(|word| !word.is_empty()).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, fixed: &[Exception]) -> Vec<String> {
        let tree = Tree::of(vec![("a/tests/b.rs".to_owned(), text.to_owned())]);
        let found = fixed_names_except(&tree, fixed);
        found
            .iter()
            .map(|one| one.what.split(" is one").next().unwrap_or_default())
            .map(|what| what.split(", which").next().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn fixed_names_are_found() {
        for (text, name) in [
            ("fn a() { b(\"/tmp/c\") }", "/tmp/c"),
            ("fn a() { b(\"ip netns add far\") }", "netns far"),
            ("fn a() { b(\"x; ip link add name far type veth\") }", "link far"),
            ("fn a() { b([\"netns\", \"add\", \"far\"]) }", "netns far"),
            ("fn a(n: &'static str) { b(\"ip netns add {n}\") }", "netns {n}"),
            ("fn a() { temp_dir().join(\"b\") }", "a fixed name in the temporary folder"),
            ("fn a() { temp_dir().join(B) }", "a fixed name in the temporary folder"),
        ] {
            assert_eq!(found(text, &[]), [name], "{text}");
            assert_eq!(found(text, &[("a/tests/b.rs", "a", "why")]).len(), 0, "{text}");
        }
    }

    #[test]
    fn names_made_while_running_are_free() {
        for text in [
            "fn a() { tempdir_in(\"/var/tmp\") }",
            "fn a() { b(\"/tmp:/tmp\") }",
            "fn a() { b(\"/var/tmp/c/{d}\") }",
            "fn a() { b(\"tuntap add dev {n} mode tap\") }",
            "fn a() { b(r\"/tmp/(LIVE|MERGED)\") }",
            "fn a() { b(\"{root}/tmp/c\") }",
            "fn a(n: &str) { b(\"ip netns add {n}\") }",
            "fn a() { temp_dir().join(format!(\"b-{c}\")) }",
            "fn a() { temp_dir().join(name) }",
            "fn a() { b(\"ip netns add $n; ip -n $n link add br0 type bridge\") }",
            "fn a() { b([\"netns\", \"add\", &c]) }",
            "fn a() { b(\"\nmount -t tmpfs none /run/netns\nip netns add far\n\") }",
        ] {
            assert_eq!(found(text, &[]), [""; 0], "{text}");
        }
        assert_eq!(found("fn a() {}", &[("a/tests/b.rs", "a", "why")]).len(), 1);
    }
}
