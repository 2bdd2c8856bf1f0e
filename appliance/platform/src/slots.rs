//! Slot variables of the boot loader (`image/boot/grub.cfg`), which choose the system to start. The
//! running box reads and changes them.
//!
//! The format of the block is GRUB's (`grub-core/lib/envblk.c`): 1024 bytes, a signature line,
//! lines of `name=value`, and `#` as padding. GRUB writes the block back to a list of disk blocks,
//! so the file must never move or change its size. The box only changes the first 512 bytes. These
//! bytes are one sector, which a disk writes completely or not at all.

mod erase;
mod fill;
mod volume;

#[cfg(test)]
mod tests;

pub use crate::bundle::Slot;
pub use fill::{Filling, KERNEL_MAX};
pub use volume::BootVolume;

/// Size of the GRUB environment block in bytes.
pub const BYTES: usize = 1024;
/// First line of the GRUB environment block.
const SIGNATURE: &[u8] = b"# GRUB Environment Block\n";
/// Variable with both slots in boot order, such as `A B`.
const ORDER: &str = "ORDER";
/// Variable with the slot whose new system is not confirmed yet. GRUB does not use this variable.
/// The start counter alone does not say why GRUB started a slot.
const TRIAL: &str = "TRIAL";
/// Variable with the choice in GRUB's menu: a level of `reset`.
const RESET: &str = "RESET";
/// Variable with a reset request that the running box could not write to its state volume: a level
/// of `reset`.
const ASKED: &str = "ASKED";
/// Initial start counter of a new system: one of GRUB's three starts counts as already used.
const TRIES_SPENT: &str = "1";

/// Reason why a GRUB environment block is invalid.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum Damage {
    /// The block was truncated or extended.
    #[error("expected {BYTES} bytes, found {0}")]
    Size(usize),
    /// The first line is not GRUB's signature.
    #[error("expected \"# GRUB Environment Block\" as the first line")]
    Signature,
    /// A line is not of the form `name=value`.
    #[error("line {0} is not of the form NAME=VALUE")]
    Line(usize),
    /// The variables do not fit into the block.
    #[error("the variables need {0} bytes, the limit is {BYTES}")]
    Full(usize),
}

/// Variables of a GRUB environment block, in order, including variables unknown to the box.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    /// Parses a GRUB environment block.
    ///
    /// # Errors
    /// The block is damaged. GRUB ignores a damaged block too.
    pub fn parse(block: &[u8]) -> Result<Self, Damage> {
        if block.len() != BYTES {
            return Err(Damage::Size(block.len()));
        }
        let mut rest = block.strip_prefix(SIGNATURE).ok_or(Damage::Signature)?;
        let (mut variables, mut line) = (Vec::new(), 1);
        while !rest.is_empty() {
            line += 1;
            let (text, after) = next_line(rest);
            rest = after;
            if text.first() == Some(&b'#') {
                continue;
            }
            let text = String::from_utf8(text).map_err(|_| Damage::Line(line))?;
            match text.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    variables.push((name.to_owned(), value.to_owned()));
                }
                _ => return Err(Damage::Line(line)),
            }
        }
        Ok(Self(variables))
    }

    /// Returns default variables for a damaged block. The `running` slot is marked good, because it
    /// runs. The other slot is marked bad, because its state is unknown.
    pub fn mended(running: Slot) -> Self {
        let mut mended = Self::default();
        mended.prefer(running);
        mended.mark_good(running);
        mended.mark_bad(running.other());
        mended
    }

    /// Encodes the variables as a GRUB environment block.
    ///
    /// # Errors
    /// The variables do not fit into the block.
    pub fn block(&self) -> Result<[u8; BYTES], Damage> {
        let mut text = SIGNATURE.to_vec();
        for (name, value) in &self.0 {
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            for byte in value.bytes() {
                if matches!(byte, b'\\' | b'\n') {
                    text.push(b'\\');
                }
                text.push(byte);
            }
            text.push(b'\n');
        }
        let mut block = [b'#'; BYTES];
        block.get_mut(..text.len()).ok_or(Damage::Full(text.len()))?.copy_from_slice(&text);
        Ok(block)
    }

    /// Returns the preferred slot, or `None` if the variable is damaged.
    pub fn first(&self) -> Option<Slot> {
        slot(self.get(ORDER)?.split_whitespace().next()?)
    }

    /// Returns the slot whose new system is not confirmed yet, if any.
    pub fn trial(&self) -> Option<Slot> {
        slot(self.get(TRIAL)?)
    }

    /// Returns the choice in the boot menu, if any: the name of a `reset::Level`.
    pub fn wish(&self) -> Option<&str> {
        self.get(RESET).filter(|wish| !wish.is_empty())
    }

    /// Returns the reset requested from the running box, if any: the name of a `reset::Level`.
    pub fn asked(&self) -> Option<&str> {
        self.get(ASKED)
    }

    /// Records a reset request of the running box. `level` is the name of a `reset::Level`.
    pub fn ask(&mut self, level: &str) {
        self.set(ASKED.to_owned(), level);
    }

    /// Removes both reset requests after the reset: the choice in the boot menu and the request of
    /// the running box.
    pub fn forget_wish(&mut self) {
        self.0.retain(|(name, _)| name != RESET && name != ASKED);
    }

    /// Returns true if the slot holds a complete system.
    pub fn whole(&self, slot: Slot) -> bool {
        self.get(&name(slot, "OK")) == Some("1")
    }

    /// Returns the number of starts since the system last confirmed that it works, or `None` for a
    /// damaged variable.
    pub fn tries(&self, slot: Slot) -> Option<u8> {
        self.get(&name(slot, "TRY"))?.parse().ok()
    }

    /// Marks a slot as complete and resets its start counter.
    pub fn mark_good(&mut self, slot: Slot) {
        self.set(name(slot, "OK"), "1");
        self.set(name(slot, "TRY"), "0");
    }

    /// Marks a slot as not bootable.
    pub fn mark_bad(&mut self, slot: Slot) {
        self.set(name(slot, "OK"), "0");
    }

    /// Selects a complete system for the next start. GRUB starts the system at most twice, unless
    /// the system confirms that it works. The start counter of the other slot is reset.
    pub fn put_on_trial(&mut self, slot: Slot) {
        self.set(name(slot, "OK"), "1");
        self.set(name(slot, "TRY"), TRIES_SPENT);
        self.set(name(slot.other(), "TRY"), "0");
        self.prefer(slot);
        self.set(TRIAL.to_owned(), letter(slot));
    }

    /// Removes the variable for an unconfirmed system. Does not mark the slot as good or bad.
    pub fn end_trial(&mut self) {
        self.0.retain(|(name, _)| name != TRIAL);
    }

    /// Puts a slot first in the boot order.
    pub fn prefer(&mut self, slot: Slot) {
        self.set(ORDER.to_owned(), &[slot, slot.other()].map(letter).join(" "));
    }

    fn get(&self, name: &str) -> Option<&str> {
        // For a repeated name, GRUB's load_env keeps the last value.
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn set(&mut self, name: String, value: &str) {
        match self.0.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.0.push((name, value.to_owned())),
        }
    }
}

fn name(slot: Slot, what: &str) -> String {
    format!("{}_{what}", letter(slot))
}

/// Returns the letter that GRUB's script uses for the slot.
fn letter(slot: Slot) -> &'static str {
    match slot {
        Slot::A => "A",
        Slot::B => "B",
    }
}

fn slot(letter: &str) -> Option<Slot> {
    match letter {
        "A" => Some(Slot::A),
        "B" => Some(Slot::B),
        _ => None,
    }
}

/// Returns the first line of `text` without escapes, and the rest. A line without a line feed ends
/// with the block, as padding does.
fn next_line(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let (mut line, mut at) = (Vec::new(), 0);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'\n' => break,
            b'\\' => {
                line.extend(text.get(at));
                at += 1;
            }
            byte => line.push(*byte),
        }
    }
    (line, text.get(at..).unwrap_or_default())
}
