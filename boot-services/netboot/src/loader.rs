//! Which file a boot ROM means by the name it sends.

/// What a name in the loaders' name space stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// A file of the loaders' folder.
    File(String),
    /// iPXE's first look for instructions beside its own binary; answered with a generated script.
    Autoexec,
    /// What DHCP names when a machine may not netboot; never exists, so the ROM goes on at once.
    NotAllowed,
}

/// The name that DHCP hands to machines that may not netboot.
pub const NOT_ALLOWED: &str = "netboot-not-allowed";

impl Wanted {
    /// Reads a requested name. Folders in front are dropped (Smee's names carry the interface's
    /// address: `52:54:00:77:00:01/ipxe.efi`), and so is a trace context behind
    /// (`ipxe.efi-00-<32 hex>-<16 hex>-<2 hex>`). `None`: not a name a file here can have.
    pub fn read(name: &str) -> Option<Self> {
        let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let base = without_trace(base);
        match base {
            "autoexec.ipxe" => Some(Self::Autoexec),
            NOT_ALLOWED => Some(Self::NotAllowed),
            _ if is_plain(base) => Some(Self::File(base.to_owned())),
            _ => None,
        }
    }
}

/// One component of a path that is safe to look up: printable, no separator, not hidden (which
/// also excludes `.` and `..`), of a length every file system takes.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_alphanumeric() || "._-+@:~ ()".contains(c))
}

/// `name` without a W3C trace context, version 00, at its end.
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
    use super::Wanted;

    #[test]
    fn reads_what_roms_and_smee_ask_for() {
        let file = |name: &str| Some(Wanted::File(name.to_owned()));
        assert_eq!(Wanted::read("undionly.kpxe"), file("undionly.kpxe"));
        assert_eq!(Wanted::read("52:54:00:77:00:01/ipxe.efi"), file("ipxe.efi"));
        assert_eq!(Wanted::read("/a/b/../snponly.efi"), file("snponly.efi"));
        assert_eq!(Wanted::read("..\\..\\snponly.efi"), file("snponly.efi"));
        let traced = "ipxe.efi-00-23b1e307bb35484f535a1f772c06910e-d887dc3912240434-01";
        assert_eq!(Wanted::read(traced), file("ipxe.efi"));
        assert_eq!(Wanted::read("snp-x86_64.efi"), file("snp-x86_64.efi"));
        assert_eq!(Wanted::read("a-00-23b1-d887-01"), file("a-00-23b1-d887-01"));
        assert_eq!(Wanted::read("x/autoexec.ipxe"), Some(Wanted::Autoexec));
        assert_eq!(Wanted::read("/netboot-not-allowed"), Some(Wanted::NotAllowed));
    }

    #[test]
    fn refuses_names_that_could_leave_the_folder() {
        for name in ["", "/", "..", "a/..", ".hidden", "a\0b", "a\nb", "x/", "\u{202e}"] {
            assert_eq!(Wanted::read(name), None, "{name:?}");
        }
        assert_eq!(Wanted::read(&"a".repeat(256)), None);
    }
}
