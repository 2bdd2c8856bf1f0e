//! Backup of a box: one file with two readable lines, followed by a payload that needs the
//! passphrase or the key (BK-1, BK-2).
//!
//! ```text
//! file     TINBOX BACKUP 1 LF                      the format's number
//!          header LF                               one line of JSON: [`Header`]
//!          payload …                               to the end
//!
//! payload  encrypted    an age file (age-encryption.org/v1, binary) around the archive
//!          plain        the archive itself, without secrets
//!
//! archive  gzip( tar )
//!
//! tar      header                                       the two lines above once more
//!          objects/GROUP/PLURAL/NAMESPACE/NAME.json     an object of the API; GROUP `core` for the
//!                                                       empty one, NAMESPACE `_` for none
//!          leases/INTERFACE.json                        the DHCP leases of the interface
//!          state/PATH                                   a file of the state folder
//!          settings/box.toml                            the owner's settings
//!          images.json                                  the cache's files: origin, size, SHA-256
//! ```
//!
//! The first entry of the archive is a copy of the readable lines, so that these lines cannot be
//! changed without the key. In names, every byte except `A-Z a-z 0-9 : _ -` and dots that are not
//! the first character is written `%XX`. The tools age and tar open a backup too:
//!
//! ```text
//! tail -n +3 box.boxbak | age -d | tar -xz
//! ```
//!
//! A reader accepts its own format number, and a header whose `needs` is not above its own version.
//! A newer backup is refused, with the version that it needs (BK-7).
//!
//! Never: the network, a clock, a file (callers bring streams), a secret in an error, memory as a
//! stream demands it: every length has a named limit.
//!
//! Enter at [`Writer`], [`Reader`] and [`Part`]; `age` has the encryption, `tar` the archive.

mod age;
mod error;
mod header;
mod part;
mod reader;
mod tar;
mod writer;

#[cfg(test)]
mod tests;

pub use self::tar::{ENTRIES_MAX, ENTRY_BYTES_MAX};
pub use age::{IDENTITY_PREFIX, Identity, LOG_N, LOG_N_MAX, Recipient};
pub use error::Error;
pub use header::{Contents, FORMAT, HEADER_BYTES_MAX, Header, NEEDS};
pub use part::{Part, object_path};
pub use reader::{Key, Reader, head};
pub use writer::{Lock, Writer};

/// Maximum size of the unpacked archive in bytes.
pub const ARCHIVE_BYTES_MAX: u64 = 1 << 30;
/// Maximum size of a backup file in bytes.
pub const FILE_BYTES_MAX: u64 = 512 << 20;
/// Minimum length of a passphrase in characters.
pub const PASSPHRASE_CHARS_MIN: usize = 8;
/// Maximum length of a passphrase in bytes.
pub const PASSPHRASE_BYTES_MAX: usize = 1024;
