//! Boot entries of UEFI firmware in boot order, from the load options in firmware variables (UEFI
//! 2.10, 3.1.3).

use std::path::Path;

use agent_rpc::{BootEntry, Efi};

use super::PARTS_MAX;

/// `EFI_GLOBAL_VARIABLE`, the suffix of variable file names in the kernel's efivarfs.
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// Length of a variable's attributes in bytes. In efivarfs, the attributes precede the value.
const ATTRIBUTES: usize = 4;
/// `LOAD_OPTION_ACTIVE`, a bit of a load option's attributes.
const ACTIVE: u32 = 1;

/// Reads the boot entries from the folder of efivarfs. Returns `None` without a variable BootOrder.
pub fn efi(variables: &Path) -> Option<Efi> {
    let value = |name: &str| {
        let bytes = std::fs::read(variables.join(format!("{name}-{GLOBAL}"))).ok()?;
        bytes.get(ATTRIBUTES..).map(<[u8]>::to_vec)
    };
    let order = value("BootOrder")?;
    let numbers = order.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
    let entries = numbers.take(PARTS_MAX).filter_map(|number| {
        let id = format!("{number:04X}");
        entry(id.clone(), &value(&format!("Boot{id}"))?)
    });
    Some(Efi { entries: entries.collect() })
}

/// Parses a load option: attributes, length of the device path, then the description in UCS-2,
/// terminated by a zero. Returns `None` if the option is too short.
fn entry(id: String, option: &[u8]) -> Option<BootEntry> {
    let (attributes, rest) = option.split_first_chunk::<4>()?;
    let units = rest.get(2..)?.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    Some(BootEntry {
        id,
        description: super::bounded(&String::from_utf16_lossy(&units)),
        active: u32::from_le_bytes(*attributes) & ACTIVE != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::{GLOBAL, efi, entry};

    fn option(attributes: u32, description: &str) -> Vec<u8> {
        let mut bytes = attributes.to_le_bytes().to_vec();
        bytes.extend([4, 0]);
        bytes.extend(description.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        bytes.extend([0x7f, 0xff, 4, 0]);
        bytes
    }

    #[test]
    fn entries_come_in_the_order_of_the_firmware() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, value: &[u8]| {
            let bytes = [&[7, 0, 0, 0], value].concat();
            std::fs::write(folder.path().join(format!("{name}-{GLOBAL}")), bytes).unwrap();
        };
        assert_eq!(efi(folder.path()), None);
        write("BootOrder", &[0x0a, 0, 1, 0, 9, 0, 3]);
        write("Boot0001", &option(0, "UEFI PXEv4"));
        write("Boot000A", &option(1, "debian"));
        let entries = efi(folder.path()).unwrap().entries;
        let entries: Vec<_> =
            entries.iter().map(|it| (it.id.as_str(), it.description.as_str(), it.active)).collect();
        assert_eq!(entries, [("000A", "debian", true), ("0001", "UEFI PXEv4", false)]);
    }

    #[test]
    fn a_broken_option_is_none_or_short() {
        let whole = option(1, "debian");
        for cut in 0..whole.len() {
            assert_eq!(entry("0000".into(), &whole[..cut]).is_some(), cut >= 6, "{cut}");
        }
    }
}
