//! Disks that no action may write. The box passes them from the Hardware to the agent on the kernel
//! command line.

use std::collections::BTreeMap;

use api::tinkerbell::PRESERVE_DISKS;

/// Name of the kernel argument that the agent reads.
const ARGUMENT: &str = "tinbox.preserve";
/// Maximum length of the disk list in bytes. The kernel reads 2048 bytes of the whole command line.
const LIST_BYTES: usize = 768;
/// Value for a list that does not fit on a command line. The value is not a valid selector, so the
/// agent refuses to start and reports the reason. An unreadable list must not count as empty.
const UNREADABLE: &str = "unreadable-annotation";

/// Returns the kernel argument for these annotations; `None` without disks to preserve.
pub fn argument(annotations: &BTreeMap<String, String>) -> Option<String> {
    let list = annotations.get(PRESERVE_DISKS)?;
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
    // Quotes hold a value with spaces together, as in kernel/params.c.
    let is_one_word = !list.contains(' ');
    Some(if is_one_word { format!("{ARGUMENT}={list}") } else { format!("{ARGUMENT}=\"{list}\"") })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use api::tinkerbell::PRESERVE_DISKS;

    use super::{LIST_BYTES, argument};

    fn of(list: &str) -> Option<String> {
        argument(&BTreeMap::from([(PRESERVE_DISKS.to_owned(), list.to_owned())]))
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
