//! What the boot loader is told of a slot: the one text that both the maker of an image and the
//! updater in the box write, so that a slot boots the same way whoever filled it.

use super::Arch;

/// Bytes of a block of the root, and of its hash tree.
const BLOCK: u64 = 4096;
/// Sectors of such a block, as device-mapper counts.
const SECTORS: u64 = BLOCK / 512;

/// How a boot script begins; a comment to GRUB.
const RELEASE: &str = "# Tinbox ";

/// One of the two places for a system; an update fills the one that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// `root-a`.
    A,
    /// `root-b`.
    B,
}

impl Slot {
    /// In folder names, partition names and on the kernel's command line.
    pub fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
        }
    }

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// What the kernel must know of a root to notice any changed byte in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verity {
    /// The sum of the tree's top block.
    pub root_hash: [u8; 32],
    /// Put before every block that is summed.
    pub salt: [u8; 32],
    /// Blocks of data; behind them lie the superblock, and then the tree.
    pub data_blocks: u64,
}

impl Verity {
    /// What `tinbox/<slot>/boot.cfg` on the boot volume says: which release it is, for the box, and
    /// GRUB's command that loads this root's kernel.
    pub fn boot_script(&self, arch: Arch, slot: Slot, version: &str) -> String {
        let letter = slot.letter();
        let root = format!("PARTLABEL=root-{letter}");
        let (blocks, sectors) = (self.data_blocks, self.data_blocks.saturating_mul(SECTORS));
        let tree = blocks.saturating_add(1);
        let (hash, salt) = (stdx::hex(&self.root_hash), stdx::hex(&self.salt));
        // The last console is /dev/console, where process 1 speaks: the screen is the panel's.
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

    /// The release that a boot script is of.
    pub fn version_in(script: &str) -> Option<&str> {
        script.lines().next()?.strip_prefix(RELEASE)
    }
}
