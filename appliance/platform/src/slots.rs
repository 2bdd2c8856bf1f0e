//! Which of the two systems the boot loader starts: the variables of `image/boot/grub.cfg`, read
//! and changed from the running box.
//!
//! The block is GRUB's own (`grub-core/lib/envblk.c`): 1024 bytes, a signature line, lines of
//! `name=value`, and `#` up to the end. GRUB writes it back by the list of its disk blocks, so it
//! must never move nor change its size. What the box changes lies in the first 512 bytes, one
//! sector, which a disk writes whole or not at all.

mod erase;
mod fill;
mod volume;

#[cfg(test)]
mod tests;

pub use crate::bundle::Slot;
pub use fill::{Filling, KERNEL_MAX};
pub use volume::BootVolume;

/// Bytes of the block.
pub const BYTES: usize = 1024;
/// What it begins with.
const SIGNATURE: &[u8] = b"# GRUB Environment Block\n";
/// The slots, the wanted one first.
const ORDER: &str = "ORDER";
/// The slot whose system is new and has not proved itself yet. GRUB does not know it: how often a
/// slot was started says nothing of why.
const TRIAL: &str = "TRIAL";
/// What was chosen in GRUB's menu: a level of `reset`.
const RESET: &str = "RESET";
/// A reset that the running box could not note on its state volume: a level of `reset`.
const ASKED: &str = "ASKED";
/// Starts that a new system has: GRUB's three, but for this many.
const TRIES_SPENT: &str = "1";

/// Why a block is of no use.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum Damage {
    /// It was cut, or something was appended.
    #[error("it has {0} bytes instead of {BYTES}")]
    Size(usize),
    /// Something else was written over it.
    #[error("it does not begin as GRUB's does")]
    Signature,
    /// A line is no variable.
    #[error("line {0} is no variable")]
    Line(usize),
    /// There are more variables than fit.
    #[error("its variables need {0} bytes, and {BYTES} is all there is")]
    Full(usize),
}

/// The variables, those that the box does not know among them, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    /// Reads a block.
    ///
    /// # Errors
    /// When it is damaged. GRUB would not use it either.
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

    /// What can still be said when the block is damaged: `running` works, since it runs; nobody
    /// knows of the other.
    pub fn mended(running: Slot) -> Self {
        let mut mended = Self::default();
        mended.prefer(running);
        mended.mark_good(running);
        mended.mark_bad(running.other());
        mended
    }

    /// The block.
    ///
    /// # Errors
    /// When the variables do not fit.
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

    /// The slot that is wanted first; `None` when the variable is damaged.
    pub fn first(&self) -> Option<Slot> {
        slot(self.get(ORDER)?.split_whitespace().next()?)
    }

    /// The slot whose system is on trial, if any.
    pub fn trial(&self) -> Option<Slot> {
        slot(self.get(TRIAL)?)
    }

    /// What was chosen in the boot menu, if anything: a word of `reset::Level`.
    pub fn wish(&self) -> Option<&str> {
        self.get(RESET).filter(|wish| !wish.is_empty())
    }

    /// The reset that the running box was asked for, if any: a word of `reset::Level`.
    pub fn asked(&self) -> Option<&str> {
        self.get(ASKED)
    }

    /// The running box was asked for `level`, a word of `reset::Level`.
    pub fn ask(&mut self, level: &str) {
        self.set(ASKED.to_owned(), level);
    }

    /// Forgets the reset that was chosen in the boot menu or asked of the running box: it is done.
    pub fn forget_wish(&mut self) {
        self.0.retain(|(name, _)| name != RESET && name != ASKED);
    }

    /// Whether it holds a whole system.
    pub fn whole(&self, slot: Slot) -> bool {
        self.get(&name(slot, "OK")) == Some("1")
    }

    /// How often it was started since it last said that it works; `None` when that is damaged.
    pub fn tries(&self, slot: Slot) -> Option<u8> {
        self.get(&name(slot, "TRY"))?.parse().ok()
    }

    /// It holds a whole system, and all its starts are ahead of it.
    pub fn mark_good(&mut self, slot: Slot) {
        self.set(name(slot, "OK"), "1");
        self.set(name(slot, "TRY"), "0");
    }

    /// It is not to be started.
    pub fn mark_bad(&mut self, slot: Slot) {
        self.set(name(slot, "OK"), "0");
    }

    /// It holds a whole system that is to be started next, twice at most unless it says that it
    /// works. The other one, which wrote it, has all its starts before it again.
    pub fn put_on_trial(&mut self, slot: Slot) {
        self.set(name(slot, "OK"), "1");
        self.set(name(slot, "TRY"), TRIES_SPENT);
        self.set(name(slot.other(), "TRY"), "0");
        self.prefer(slot);
        self.set(TRIAL.to_owned(), letter(slot));
    }

    /// No system is on trial any more.
    pub fn end_trial(&mut self) {
        self.0.retain(|(name, _)| name != TRIAL);
    }

    /// It is wanted before the other.
    pub fn prefer(&mut self, slot: Slot) {
        self.set(ORDER.to_owned(), &[slot, slot.other()].map(letter).join(" "));
    }

    fn get(&self, name: &str) -> Option<&str> {
        // Of two, GRUB's load_env keeps the last.
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

/// As GRUB's script knows it.
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

/// The first line of `text` without its escapes, and what follows. A line without an end ends with
/// the block, as padding does.
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
