//! Disks of a machine that no action may write: from its Hardware to its agent's kernel arguments.

use std::collections::BTreeMap;

/// Annotation of a Hardware: selectors of disks as actions take them (`/dev/sdb`,
/// `serialNumber=S4EV,model=Samsung`), parted by `;` or by lines.
pub const ANNOTATION: &str = "tinbox.dev/preserve-disks";
/// What the agent reads.
const ARGUMENT: &str = "tinbox.preserve";
/// Longest list, in bytes: the kernel reads 2048 of a whole command line.
const LIST_BYTES: usize = 768;
/// In place of a list that a command line cannot carry. No selector reads so: the agent refuses to
/// start and says why, for a policy that is not understood must not be taken for none.
const UNREADABLE: &str = "unreadable-annotation";

/// The kernel argument for a machine with these annotations, if it preserves disks.
pub fn argument(annotations: &BTreeMap<String, String>) -> Option<String> {
    let list = annotations.get(ANNOTATION)?;
    let selectors: Vec<&str> =
        list.split([';', '\n']).map(str::trim).filter(|selector| !selector.is_empty()).collect();
    if selectors.is_empty() {
        return None;
    }
    let list = selectors.join(";");
    let is_carried =
        |char: char| (char.is_ascii_graphic() || char == ' ') && !"\"$#&|\\".contains(char);
    if list.len() > LIST_BYTES || !list.chars().all(is_carried) {
        return Some(format!("{ARGUMENT}={UNREADABLE}"));
    }
    // As kernel/params.c has it: quotes hold a value with spaces together.
    let is_one_word = !list.contains(' ');
    Some(if is_one_word { format!("{ARGUMENT}={list}") } else { format!("{ARGUMENT}=\"{list}\"") })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{ANNOTATION, LIST_BYTES, argument};

    fn of(list: &str) -> Option<String> {
        argument(&BTreeMap::from([(ANNOTATION.to_owned(), list.to_owned())]))
    }

    #[test]
    fn a_list_becomes_an_argument() {
        assert_eq!(argument(&BTreeMap::new()), None);
        assert_eq!(of(" \n; "), None);
        assert_eq!(of("/dev/sdb").unwrap(), "tinbox.preserve=/dev/sdb");
        let lines = "serialNumber=S4EV,model=Samsung\n wwn=0x5002538e40a21d6f ;\n";
        let one = "tinbox.preserve=serialNumber=S4EV,model=Samsung;wwn=0x5002538e40a21d6f";
        assert_eq!(of(lines).unwrap(), one);
        let spaces = of("model=Samsung SSD 970").unwrap();
        assert_eq!(spaces, "tinbox.preserve=\"model=Samsung SSD 970\"");
    }

    #[test]
    fn what_cannot_be_carried_is_not_taken_for_nothing() {
        let long = "x".repeat(LIST_BYTES + 1);
        for list in ["model=\"x\" init=/bin/sh", "model=${net0/mac}", "model=grün", "a\tb", &long]
        {
            assert_eq!(of(list).unwrap(), "tinbox.preserve=unreadable-annotation", "{list}");
        }
    }
}
