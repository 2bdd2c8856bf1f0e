//! Maps the file names that boot ROMs send to files.

use stdx::MacAddr;

pub mod fallback;

/// File or generated content that a requested name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootFile {
    /// File in the loaders' folder.
    File(String),
    /// File in the agent's folder (`agent/<name>`), for loaders that support only TFTP.
    Agent(String),
    /// First request of U-Boot and PXELINUX to a TFTP server (`pxelinux.cfg/01-<mac>`), answered
    /// with the machine's generated configuration. 01 is Ethernet (RFC 1700).
    Pxelinux(MacAddr),
    /// Script that iPXE requests before its own boot sequence (`autoexec.ipxe`); its content is
    /// generated.
    Autoexec,
    /// Name in DHCP answers to machines that may not netboot. The file never exists, so the
    /// firmware continues at once.
    NotAllowed,
}

/// File name that DHCP sends to machines that may not netboot.
pub const NOT_ALLOWED: &str = "netboot-not-allowed";

impl BootFile {
    /// Parses a requested name. Leading folders are dropped (Smee's names have the interface's
    /// address there: `52:54:00:77:00:01/ipxe.efi`). A trailing trace context is dropped too
    /// (`ipxe.efi-00-<32 hex>-<16 hex>-<2 hex>`). `None`: the name is not valid.
    pub fn read(name: &str) -> Option<Self> {
        let mut parts = name.rsplit(['/', '\\']);
        let base = without_trace(parts.next().unwrap_or(name));
        match (parts.next(), base) {
            (Some("pxelinux.cfg"), _) => {
                let mac = base.strip_prefix("01-").and_then(|mac| mac.parse().ok());
                return mac.map(Self::Pxelinux);
            }
            (Some("agent"), _) => return is_plain(base).then(|| Self::Agent(base.to_owned())),
            _ => {}
        }
        match base {
            "autoexec.ipxe" => Some(Self::Autoexec),
            NOT_ALLOWED => Some(Self::NotAllowed),
            _ if is_plain(base) => Some(Self::File(base.to_owned())),
            _ => None,
        }
    }
}

/// Returns the MAC address in a requested name, which identifies the machine: before the file name
/// in any spelling (`52:54:00:77:00:01/ipxe.efi`), or after `pxelinux.cfg/01-`.
pub fn owner(name: &str) -> Option<MacAddr> {
    if let Some(BootFile::Pxelinux(mac)) = BootFile::read(name) {
        return Some(mac);
    }
    let (front, _) = name.trim_start_matches('/').split_once('/')?;
    front.parse().ok()
}

/// Returns true for a path component that is safe to look up: printable, without separator, at most
/// 255 bytes, not hidden. Hidden names include `.` and `..`.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_alphanumeric() || "._-+@:~ ()".contains(c))
}

/// Returns `name` without a W3C trace context, version 00, at its end.
fn without_trace(name: &str) -> &str {
    /// Lengths of the fields from the end: flags, parent, trace, version.
    const FIELDS: [usize; 4] = [2, 16, 32, 2];
    let mut rest = name;
    for length in FIELDS {
        let Some((front, field)) = rest.rsplit_once('-') else { return name };
        if field.len() != length || !field.bytes().all(|b| b.is_ascii_hexdigit()) {
            return name;
        }
        rest = front;
    }
    if rest.is_empty() { name } else { rest }
}

#[cfg(test)]
mod tests {
    use super::{BootFile, owner};

    #[test]
    fn reads_what_roms_and_smee_ask_for() {
        let file = |name: &str| Some(BootFile::File(name.to_owned()));
        assert_eq!(BootFile::read("undionly.kpxe"), file("undionly.kpxe"));
        assert_eq!(BootFile::read("52:54:00:77:00:01/ipxe.efi"), file("ipxe.efi"));
        assert_eq!(BootFile::read("/a/b/../snponly.efi"), file("snponly.efi"));
        assert_eq!(BootFile::read("..\\..\\snponly.efi"), file("snponly.efi"));
        let traced = "ipxe.efi-00-23b1e307bb35484f535a1f772c06910e-d887dc3912240434-01";
        assert_eq!(BootFile::read(traced), file("ipxe.efi"));
        assert_eq!(BootFile::read("snp-x86_64.efi"), file("snp-x86_64.efi"));
        assert_eq!(BootFile::read("a-00-23b1-d887-01"), file("a-00-23b1-d887-01"));
        assert_eq!(BootFile::read("x/autoexec.ipxe"), Some(BootFile::Autoexec));
        assert_eq!(BootFile::read("/netboot-not-allowed"), Some(BootFile::NotAllowed));
    }

    #[test]
    fn knows_what_a_loader_asks_for_next() {
        let mac = "52:54:00:77:00:01".parse().unwrap();
        for name in [
            "pxelinux.cfg/01-52-54-00-77-00-01",
            "/pxelinux.cfg/01-52-54-00-77-00-01",
            "x/pxelinux.cfg/01-52:54:00:77:00:01",
        ] {
            assert_eq!(BootFile::read(name), Some(BootFile::Pxelinux(mac)), "{name}");
            assert_eq!(owner(name), Some(mac), "{name}");
        }
        for name in ["pxelinux.cfg/default", "pxelinux.cfg/0A4D000B", "pxelinux.cfg/01-x"] {
            assert_eq!(BootFile::read(name), None, "{name}");
        }
        let kernel = Some(BootFile::Agent("vmlinuz-x86_64".to_owned()));
        assert_eq!(BootFile::read("/agent/vmlinuz-x86_64"), kernel);
        assert_eq!(BootFile::read("agent/.."), None);
    }

    #[test]
    fn knows_whom_a_name_is_for() {
        let mac = Some("52:54:00:77:00:01".parse().unwrap());
        for front in ["52:54:00:77:00:01", "52-54-00-77-00-01", "5254.0077.0001", "525400770001"] {
            assert_eq!(owner(&format!("{front}/ipxe.efi")), mac, "{front}");
            assert_eq!(owner(&format!("/{front}/ipxe.efi")), mac, "{front}");
        }
        for name in ["ipxe.efi", "x/ipxe.efi", "", "/", "525400770001"] {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    #[test]
    fn refuses_names_that_could_leave_the_folder() {
        for name in ["", "/", "..", "a/..", ".hidden", "a\0b", "a\nb", "x/", "\u{202e}"] {
            assert_eq!(BootFile::read(name), None, "{name:?}");
        }
        assert_eq!(BootFile::read(&"a".repeat(256)), None);
    }
}
