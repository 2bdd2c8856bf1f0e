//! Kind of the client program: PXE or HTTP firmware, iPXE, or an operating system.

use stdx::MacAddr;

use crate::messages::options::{Options, code};

/// Maximum characters of a stored vendor class; PXE's own has 32.
const MAX_VENDOR_CLASS: usize = 64;

/// Feature number of HTTP in iPXE's option 175 (`DHCP_EB_FEATURE_HTTP`).
const IPXE_FEATURE_HTTP: u8 = 19;

/// Program that sends DHCP requests at one stage of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// PXE client of firmware, which loads a file over TFTP.
    Pxe,
    /// UEFI HTTP Boot client, which loads a URL.
    HttpBoot,
    /// iPXE that can fetch a script over HTTP, from the NIC's ROM or loaded from the box.
    Ipxe,
    /// Any other DHCP client: of an installer, the agent or an operating system.
    System,
}

/// Client description in options 60, 77, 93, 97 and 175.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub stage: Stage,
    /// Client architecture: first entry of option 93, or else from option 60
    /// (`PXEClient:Arch:00007:…`).
    pub arch: Option<u16>,
    /// Vendor class (option 60): printable characters only, at most [`MAX_VENDOR_CLASS`].
    pub vendor_class: Option<String>,
    /// Machine identifier (option 97), copied to the answer (RFC 4578 §2.3): a zero and a UUID.
    pub machine_id: Option<[u8; 17]>,
    /// True if the client is a Raspberry Pi, whose ROM reports a BIOS.
    pub raspberry_pi: bool,
}

impl Client {
    /// Classifies the client by its message's options; `mac` is the interface that sent them.
    pub fn read(options: &Options, mac: MacAddr) -> Self {
        let vendor_class = options.get(code::VENDOR_CLASS).map(printable);
        let class = vendor_class.as_deref().unwrap_or_default();
        let stage = if speaks_ipxe(options) {
            Stage::Ipxe
        } else if class.starts_with("PXEClient") {
            Stage::Pxe
        } else if class.starts_with("HTTPClient") {
            Stage::HttpBoot
        } else {
            Stage::System
        };
        let listed = options
            .get(code::ARCHITECTURE)
            .and_then(|list| list.first_chunk().copied())
            .map(u16::from_be_bytes);
        let arch = listed.or_else(|| class.split(':').nth(2)?.parse().ok());
        let machine_id = options
            .get(code::MACHINE_ID)
            .and_then(|value| value.try_into().ok())
            .filter(|id: &[u8; 17]| id[0] == 0);
        let raspberry_pi = has_raspberry_pi_oui(mac)
            || arch == Some(ARM_RPIBOOT)
            || options.get(code::MACHINE_ID).is_some_and(has_raspberry_pi_mark);
        Self { stage, arch, vendor_class, machine_id, raspberry_pi }
    }
}

/// IANA's processor architecture type "ARM rpiboot".
pub(crate) const ARM_RPIBOOT: u16 = 41;

/// MAC address prefixes that the IEEE had assigned to Raspberry Pi by 2025. The last one is a
/// company identifier (CID), for locally administered addresses.
const RASPBERRY_PI: [[u8; 3]; 8] = [
    [0xb8, 0x27, 0xeb],
    [0xdc, 0xa6, 0x32],
    [0xe4, 0x5f, 0x01],
    [0x28, 0xcd, 0xc1],
    [0xd8, 0x3a, 0xdd],
    [0x2c, 0xcf, 0x67],
    [0x88, 0xa2, 0x9e],
    [0x3a, 0x35, 0x41],
];

/// Returns true for the MAC address of a Raspberry Pi's own NIC.
fn has_raspberry_pi_oui(mac: MacAddr) -> bool {
    let [a, b, c, ..] = mac.0;
    RASPBERRY_PI.contains(&[a, b, c])
}

/// Returns true for the machine identifier of a Raspberry Pi's ROM: after the type byte, `RPi` and
/// the generation of the boot loader. Only this mark identifies a board whose owner changed its MAC
/// address (`MAC_ADDRESS` in its EEPROM).
fn has_raspberry_pi_mark(machine_id: &[u8]) -> bool {
    const MARK: &[u8] = b"RPi";
    let after_type = machine_id.get(1..).unwrap_or_default();
    after_type.starts_with(MARK) || machine_id.starts_with(MARK)
}

/// Returns true for an iPXE that can fetch a script by HTTP.
///
/// Smee sends a binary by TFTP to user class `iPXE`, and a script only to user class `Tinkerbell`
/// (its own build). For a stock iPXE that would be a loop: the binary is a stock iPXE too, sends
/// identical requests, and would get the binary again. Every iPXE with HTTP can run the script, and
/// gets the script at once. An iPXE without HTTP has option 175 without the HTTP feature. Such an
/// iPXE counts as a PXE client and gets the box's loader, which has HTTP.
fn speaks_ipxe(options: &Options) -> bool {
    let class = options.get(code::USER_CLASS).is_some_and(|value| {
        user_classes(value).any(|class| class == b"iPXE" || class == b"Tinkerbell")
    });
    let http = options
        .get(code::IPXE)
        .and_then(Options::encapsulated)
        .map(|features| features.get(IPXE_FEATURE_HTTP).is_some_and(|on| on != [0]));
    http.unwrap_or(class)
}

/// Splits option 77 into classes, each after its length (RFC 3004); iPXE sends no length.
fn user_classes(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    let listed = std::iter::from_fn(move || {
        let (&length, after) = rest.split_first()?;
        let (class, after) = after.split_at_checked(usize::from(length))?;
        rest = after;
        Some(class)
    });
    std::iter::once(value).chain(listed)
}

/// Returns the printable ASCII characters of a value, at most [`MAX_VENDOR_CLASS`]: the text goes
/// into logs and onto pages.
fn printable(value: &[u8]) -> String {
    value
        .iter()
        .filter(|byte| byte.is_ascii_graphic() || **byte == b' ')
        .take(MAX_VENDOR_CLASS)
        .map(|byte| char::from(*byte))
        .collect()
}

#[cfg(test)]
mod tests {
    use stdx::MacAddr;

    use super::{Client, Stage};
    use crate::messages::options::Options;

    fn client(options: &[u8]) -> Client {
        client_of(MacAddr([0x52, 0x54, 0, 0x77, 0, 1]), options)
    }

    fn client_of(mac: MacAddr, options: &[u8]) -> Client {
        Client::read(&Options::read(options, &[], &[]).unwrap(), mac)
    }

    #[test]
    fn user_class_bare_listed_and_foreign() {
        assert_eq!(client(b"\x4d\x04iPXE").stage, Stage::Ipxe);
        assert_eq!(client(b"\x4d\x0aTinkerbell").stage, Stage::Ipxe);
        assert_eq!(client(b"\x4d\x05\x04iPXE").stage, Stage::Ipxe);
        assert_eq!(client(b"\x4d\x09\x03abc\x04iPXE").stage, Stage::Ipxe);
        assert_eq!(client(b"\x4d\x05\xffiPXE").stage, Stage::System);
        assert_eq!(client(b"\x4d\x04gPXE").stage, Stage::System);
    }

    #[test]
    fn ipxe_without_http_is_a_pxe_client() {
        let class = b"\x3c\x09PXEClient\x4d\x04iPXE";
        let with = |features: &[u8]| {
            let mut options = class.to_vec();
            options.extend([175, features.len() as u8]);
            options.extend(features);
            client(&options).stage
        };
        assert_eq!(client(class).stage, Stage::Ipxe);
        assert_eq!(with(&[19, 1, 1]), Stage::Ipxe);
        assert_eq!(with(&[21, 1, 1]), Stage::Pxe);
        assert_eq!(with(&[19, 1, 0]), Stage::Pxe);
        assert_eq!(with(&[19, 9, 1]), Stage::Ipxe, "unreadable features say nothing");
    }

    #[test]
    fn architecture_from_93_or_from_the_vendor_class() {
        assert_eq!(client(&[93, 4, 0, 7, 0, 9]).arch, Some(7));
        assert_eq!(client(&[93, 1, 7]).arch, None);
        assert_eq!(client(b"\x3c\x14PXEClient:Arch:00011").arch, Some(11));
        assert_eq!(client(b"\x3c\x0eMSFT 5.0:a:b:c").arch, None);
    }

    #[test]
    fn a_raspberry_pi_is_known_by_its_prefix_or_its_mark() {
        for prefix in
            [[0xb8, 0x27, 0xeb], [0xd8, 0x3a, 0xdd], [0x2c, 0xcf, 0x67], [0x88, 0xa2, 0x9e]]
        {
            let [a, b, c] = prefix;
            assert!(client_of(MacAddr([a, b, c, 1, 2, 3]), &[]).raspberry_pi, "{prefix:x?}");
        }
        let marked = |start: &[u8]| {
            let mut options = vec![97, 17];
            options.extend(start);
            options.resize(2 + 17, 0x41);
            client(&options).raspberry_pi
        };
        assert!(marked(b"\0RPi4") && marked(b"\0RPi5") && marked(b"\0RPi\x14"));
        assert!(!marked(b"\0RP1") && !marked(b"\0\0RPi"), "a UUID with the same letters inside");
        assert!(client(&[93, 2, 0, 41]).raspberry_pi);
        assert!(!client(&[93, 2, 0, 0]).raspberry_pi);
    }

    #[test]
    fn text_is_printable_and_bounded() {
        let mut options = vec![60, 200];
        options.extend([b'a', 0x1b].repeat(100));
        assert_eq!(client(&options).vendor_class, Some("a".repeat(64)));
    }
}
