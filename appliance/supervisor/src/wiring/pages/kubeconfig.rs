//! Host in the administrator's kubeconfig that a browser downloads.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns true for an IP address. An IPv6 address must be in brackets.
pub(super) fn is_address(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare {
        Some(bare) => bare.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    }
}

/// Replaces the server in a kubeconfig with `host`, the name by which the client reached the box.
pub(super) fn at_host(kubeconfig: &str, host: &str, port: u16) -> String {
    let line = |line: &str| match line.split_once("server: ") {
        Some((before, _)) => format!("{before}server: https://{host}:{port}\n"),
        None => format!("{line}\n"),
    };
    kubeconfig.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{at_host, is_address};

    #[test]
    fn a_host_that_is_not_the_box_is_not_written_into_a_kubeconfig() {
        for address in ["10.0.0.1", "[fe80::1]"] {
            assert!(is_address(address), "{address}");
        }
        for other in ["evil.example", "10.0.0.1.evil.example", "fe80::1", "[::1].evil", ""] {
            assert!(!is_address(other), "{other}");
        }
    }

    #[test]
    fn a_kubeconfig_names_the_host_that_was_asked() {
        let text = "clusters:\n- cluster:\n    server: https://10.0.0.1:6443\n    x: y\n";
        let want = "clusters:\n- cluster:\n    server: https://[fe80::1]:7000\n    x: y\n";
        assert_eq!(at_host(text, "[fe80::1]", 7000), want);
    }
}
