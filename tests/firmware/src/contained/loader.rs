//! GRUB's part of a start: the choice of the slot, by the variables of `grubenv`.
//!
//! A model of `start` in `image/boot/grub.cfg`, limited to its variables: no menu, no timeout, no
//! loading of a kernel. The emulated machines run the script itself.

use std::io;

/// Bytes of the block of variables.
const BYTES: usize = 1024;
const SIGNATURE: &str = "# GRUB Environment Block\n";
/// Number of starts that a slot has until it is marked as good.
const TRIES: u8 = 3;

/// The variables of `grubenv`, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variables(Vec<(String, String)>);

/// Slot that the boot loader chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// `a` or `b`, as the folder of the slot on the boot volume.
    pub slot: char,
    /// True when no slot had a start left, so that the counters were reset.
    pub is_anew: bool,
}

impl Variables {
    /// Reads the block.
    ///
    /// # Errors
    /// The block is damaged.
    pub fn parse(block: &[u8]) -> io::Result<Self> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "grubenv is damaged");
        let text = std::str::from_utf8(block).map_err(|_| damaged())?;
        let text = text.strip_prefix(SIGNATURE).filter(|_| block.len() == BYTES);
        let lines = text.ok_or_else(damaged)?.lines().filter(|line| !line.starts_with('#'));
        let variable = |line: &str| {
            let (name, value) = line.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let all: Option<Vec<_>> = lines.map(variable).collect();
        all.map(Self).ok_or_else(damaged)
    }

    /// The block as bytes, padded to 1024 with `#`.
    pub fn block(&self) -> Vec<u8> {
        let lines = self.0.iter().map(|(name, value)| format!("{name}={value}\n"));
        let mut block = format!("{SIGNATURE}{}", lines.collect::<String>()).into_bytes();
        block.resize(BYTES, b'#');
        block
    }

    /// Sets a variable, or appends it.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn is_whole(&self, slot: &str) -> bool {
        self.get(&format!("{slot}_OK")) == Some("1")
    }

    /// Chooses the slot to start and increases its start counter.
    pub fn choose(&mut self) -> Choice {
        let order: Vec<String> =
            self.get("ORDER").unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        let letter = |name: &str| if name == "A" { 'a' } else { 'b' };
        for name in &order {
            let counter = format!("{name}_TRY");
            let tries: Option<u8> = self.get(&counter).unwrap_or("0").parse().ok();
            if let Some(tries) = tries.filter(|tries| *tries < TRIES && self.is_whole(name)) {
                self.set(&counter, &(tries + 1).to_string());
                return Choice { slot: letter(name), is_anew: false };
            }
        }
        self.set("A_TRY", "0");
        self.set("B_TRY", "0");
        let whole = order.iter().find(|name| self.is_whole(name));
        Choice { slot: whole.map_or('a', |name| letter(name)), is_anew: true }
    }
}

/// The kernel's command line in a slot's `boot.cfg`.
///
/// # Errors
/// The script loads no kernel.
pub fn command_line(script: &str) -> io::Result<&str> {
    let line = script.lines().find_map(|line| line.strip_prefix("linux "));
    let arguments = line.and_then(|line| line.split_once(' '));
    let missing = || io::Error::new(io::ErrorKind::InvalidData, "boot.cfg loads no kernel");
    arguments.map(|(_, arguments)| arguments).ok_or_else(missing)
}
