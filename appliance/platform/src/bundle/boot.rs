//! Boot script of a slot. The image builder and the updater both use this text, so a slot boots in
//! the same way after flashing and after an update.

use super::Arch;

/// Size in bytes of a block of the root and of its hash tree.
const BLOCK: u64 = 4096;
/// Number of device-mapper sectors (512 bytes) in a block.
const SECTORS: u64 = BLOCK / 512;

/// Start of the first line of a boot script, before the version. GRUB ignores this comment line.
const RELEASE: &str = "# Tinbox ";

/// System slot on the disk (A/B scheme). An update fills the slot that is not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// Slot on the partition `root-a`.
    A,
    /// Slot on the partition `root-b`.
    B,
}

impl Slot {
    /// Returns the letter in folder names, partition names and on the kernel's command line.
    pub fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
        }
    }

    /// Returns slot B for A, and slot A for B.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Parameters of dm-verity, with which the kernel detects any changed byte of a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verity {
    /// Hash of the tree's top block.
    pub root_hash: [u8; 32],
    /// Salt that is hashed before every block.
    pub salt: [u8; 32],
    /// Number of data blocks. The superblock and the hash tree come after the data blocks.
    pub data_blocks: u64,
}

impl Verity {
    /// Returns the text of `tinbox/<slot>/boot.cfg` on the boot volume. The text names the release
    /// for the box, and contains the GRUB command that loads the kernel with this root.
    pub fn boot_script(&self, arch: Arch, slot: Slot, version: &str) -> String {
        let letter = slot.letter();
        let root = format!("PARTLABEL=root-{letter}");
        let (blocks, sectors) = (self.data_blocks, self.data_blocks.saturating_mul(SECTORS));
        let tree = blocks.saturating_add(1);
        let (hash, salt) = (stdx::hex(&self.root_hash), stdx::hex(&self.salt));
        // The last console becomes /dev/console, where process 1 writes. The panel uses the screen.
        let serial = match arch {
            Arch::X86_64 => "ttyS0",
            Arch::Aarch64 => "ttyAMA0",
        };
        format!(
            "{RELEASE}{version}\n\
             linux /tinbox/{letter}/vmlinuz tinbox.slot={letter} \
             \"dm-mod.create=root,,,ro,0 {sectors} verity 1 {root} {root} {BLOCK} {BLOCK} \
             {blocks} {tree} sha256 {hash} {salt} 1 restart_on_corruption\" \
             dm-mod.waitfor={root} gpt root=/dev/dm-0 rootfstype=squashfs ro \
             console=tty0 console={serial},115200 quiet panic=10 oops=panic \
             vt.global_cursor_default=0 \
             bonding.max_bonds=0 dummy.numdummies=0\n"
        )
    }

    /// Returns the release from the first line of a boot script, or `None` if the line names none.
    pub fn version_in(script: &str) -> Option<&str> {
        script.lines().next()?.strip_prefix(RELEASE)
    }
}
