//! Memory modules from the SMBIOS tables (DSP0134) in sysfs.

use agent_rpc::MemoryModule;

use super::PARTS_MAX;

/// Maximum number of structures that are read. Boards have about a hundred.
const STRUCTURES_MAX: usize = 4096;
/// Length of a structure's header in bytes: type, length, handle.
const HEADER: usize = 4;
/// Structure types: memory device (section 7.18), and end of table.
const MEMORY_DEVICE: u8 = 17;
const END: u8 = 127;
/// Special values of a memory device's size: unknown, and "see the extended size field".
const SIZE_UNKNOWN: u16 = 0xffff;
const SIZE_EXTENDED: u16 = 0x7fff;
/// Flag in the size field: the unit is KiB instead of MiB.
const SIZE_IN_KIB: u16 = 0x8000;

/// Returns the installed memory modules, without empty slots; at most 64.
pub fn memory(mut table: &[u8]) -> Vec<MemoryModule> {
    let mut modules = Vec::new();
    for _ in 0..STRUCTURES_MAX {
        let Some((structure, rest)) = Structure::first(table) else { break };
        match structure.kind {
            END => break,
            MEMORY_DEVICE => modules.extend(structure.module()),
            _ => {}
        }
        if modules.len() >= PARTS_MAX {
            break;
        }
        table = rest;
    }
    modules
}

/// SMBIOS structure: type, fixed-size fields including the header, and strings.
struct Structure<'a> {
    kind: u8,
    fields: &'a [u8],
    strings: &'a [u8],
}

impl<'a> Structure<'a> {
    /// Parses the first structure of a table. Returns the structure and the rest; `None` at a
    /// damaged or truncated structure.
    fn first(table: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let length = usize::from(*table.get(1)?);
        if length < HEADER {
            return None;
        }
        let fields = table.get(..length)?;
        let rest = table.get(length..)?;
        // Each string ends with a zero, and the last string with another zero. A structure without
        // strings has two zeros.
        let end = rest.windows(2).position(|pair| pair == [0, 0])?;
        let structure = Self { kind: fields[0], fields, strings: &rest[..end] };
        Some((structure, &rest[end + 2..]))
    }

    fn byte(&self, at: usize) -> u8 {
        self.fields.get(at).copied().unwrap_or(0)
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.byte(at), self.byte(at + 1)])
    }

    /// Returns the string whose number is at offset `at` of the fields; empty for number 0.
    fn text(&self, at: usize) -> String {
        let number = usize::from(self.byte(at));
        let mut strings = self.strings.split(|byte| *byte == 0);
        let text = number.checked_sub(1).and_then(|skipped| strings.nth(skipped));
        super::bounded(&String::from_utf8_lossy(text.unwrap_or_default()))
    }

    /// Parses a memory device. Returns `None` for an empty slot.
    fn module(&self) -> Option<MemoryModule> {
        let bytes = match self.word(0x0c) {
            0 => return None,
            SIZE_UNKNOWN => 0,
            SIZE_EXTENDED => {
                let halves = [self.word(0x1c), self.word(0x1e)].map(u64::from);
                (halves[0] | halves[1] << 16) << 20
            }
            size if size & SIZE_IN_KIB != 0 => u64::from(size & !SIZE_IN_KIB) << 10,
            size => u64::from(size) << 20,
        };
        // Configured speed, otherwise the maximum speed.
        let speed = [self.word(0x20), self.word(0x15)].into_iter().find(|speed| *speed != 0);
        Some(MemoryModule {
            slot: self.text(0x10),
            bytes,
            kind: kind(self.byte(0x12)).to_owned(),
            speed: speed.unwrap_or(0).into(),
            vendor: self.text(0x17),
            part: self.text(0x1a),
            serial: self.text(0x18),
        })
    }
}

/// Returns the name of a memory type (section 7.18.2); empty if unknown.
fn kind(byte: u8) -> &'static str {
    match byte {
        0x07 => "RAM",
        0x12 => "DDR",
        0x13 => "DDR2",
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1b => "LPDDR",
        0x1c => "LPDDR2",
        0x1d => "LPDDR3",
        0x1e => "LPDDR4",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::memory;

    /// Builds a structure of a type with bytes at these offsets, and with its strings.
    fn structure(kind: u8, length: u8, bytes: &[(usize, u8)], strings: &[&str]) -> Vec<u8> {
        let mut table = vec![0; length.into()];
        table[..2].copy_from_slice(&[kind, length]);
        for (at, byte) in bytes {
            table[*at] = *byte;
        }
        for text in strings {
            table.extend(text.as_bytes());
            table.push(0);
        }
        table.extend(if strings.is_empty() { &[0, 0][..] } else { &[0] });
        table
    }

    fn tables() -> Vec<u8> {
        let strings = ["DIMM 0", "Crucial", "E1A2B3C4", "CT8G4SFRA32A"];
        let numbers = [(0x10, 1), (0x17, 2), (0x18, 3), (0x1a, 4), (0x12, 0x1a)];
        let with = |more: &[(usize, u8)]| [&numbers[..], more].concat();
        [
            structure(1, 27, &[], &["Intel", "NUC11TNHi5"]),
            // 8 GiB in MiB, at 3200.
            structure(17, 40, &with(&[(0x0d, 0x20), (0x20, 0x80), (0x21, 0x0c)]), &strings),
            structure(17, 40, &with(&[]), &strings),
            // 64 GiB in the extended field.
            structure(17, 40, &with(&[(0x0c, 0xff), (0x0d, 0x7f), (0x1d, 0), (0x1e, 1)]), &strings),
            structure(127, 4, &[], &[]),
            structure(17, 40, &with(&[(0x0d, 0x20)]), &strings),
        ]
        .concat()
    }

    #[test]
    fn modules_are_read_and_empty_slots_left_out() {
        let modules = memory(&tables());
        assert_eq!(modules.iter().map(|it| it.bytes >> 30).collect::<Vec<_>>(), [8, 64]);
        let first = &modules[0];
        assert_eq!((first.slot.as_str(), first.kind.as_str()), ("DIMM 0", "DDR4"));
        assert_eq!((first.vendor.as_str(), first.speed), ("Crucial", 3200));
        assert_eq!((first.serial.as_str(), first.part.as_str()), ("E1A2B3C4", "CT8G4SFRA32A"));
    }

    #[test]
    fn broken_tables_are_read_as_far_as_they_go() {
        let tables = tables();
        for cut in 0..tables.len() {
            assert!(memory(&tables[..cut]).len() <= 2);
        }
        for at in 0..tables.len() {
            for value in [0, 1, 3, 0x7f, 0xff] {
                let mut broken = tables.clone();
                broken[at] = value;
                memory(&broken);
            }
        }
        assert_eq!(memory(&[17, 0, 0, 0]), []);
    }
}
