//! Unsafe code: permitted files, and the proof of each block.

use crate::Violation;
use crate::source::Source;
use crate::tree::Tree;

/// Files that may contain unsafe code, with the reason.
const MAY: [(&str, &str); 7] = [
    ("appliance/platform/src/sys.rs", "system calls that no safe wrapper offers"),
    ("appliance/supervisor/src/heap.rs", "the allocator's settings, which nobody wraps"),
    ("boot-services/agent/src/sys.rs", "system calls that no safe wrapper offers"),
    ("boot-services/imaging/src/sys.rs", "system calls that no safe wrapper offers"),
    ("boot-services/dhcp/src/sockets/packet.rs", "the address of a link, and joining a station's"),
    ("boot-services/dhcp/src/sockets/udp.rs", "a socket in an AsyncFd"),
    ("tests/qemu/src/children.rs", "a child that dies with its parent (PR_SET_PDEATHSIG)"),
];
/// Maximum number of lines between the proof and its block.
const PROOF_LINES_MAX: usize = 6;

/// Unsafe code is only in permitted files, and each block has its proof.
pub fn unsafety(tree: &Tree) -> Vec<Violation> {
    unsafety_except(tree, &MAY)
}

fn unsafety_except(tree: &Tree, may: &[(&str, &str)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut used = vec![false; may.len()];
    for file in tree.rust() {
        let lines: Vec<&str> = file.text.lines().collect();
        for line in Source::new(file).lines_with("unsafe") {
            match may.iter().position(|(path, _)| *path == file.path) {
                Some(index) => used[index] = true,
                None => {
                    let what = "unsafe code: keep it in sys.rs of platform, imaging or agent";
                    violations.push(Violation::at(&file.path, line, what));
                }
            }
            let above = &lines[line.saturating_sub(PROOF_LINES_MAX + 1)..line];
            if !above.iter().any(|line| line.contains("SAFETY: ")) {
                let what = "unsafe code without its proof (// SAFETY: …)";
                violations.push(Violation::at(&file.path, line, what));
            }
        }
    }
    let idle = may.iter().zip(used).filter(|(_, used)| !used);
    violations.extend(idle.map(|((path, _), _)| {
        Violation::of(path, "it has no unsafe code any more: strike it from tests/tidy")
    }));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_and_a_proof_are_needed() {
        let proved = "// SAFETY: b.\nlet a = unsafe { b() };\n#![allow(unsafe_code)]\n";
        let tree = |text: &str| Tree::of(vec![("a.rs".to_owned(), text.to_owned())]);
        assert_eq!(unsafety_except(&tree(proved), &[("a.rs", "why")]), []);
        assert_eq!(unsafety_except(&tree(proved), &[]).len(), 1);
        assert_eq!(unsafety_except(&tree("unsafe { b() };"), &[("a.rs", "why")]).len(), 1);
        assert_eq!(unsafety_except(&tree("b();"), &[("a.rs", "why")]).len(), 1);
    }
}
