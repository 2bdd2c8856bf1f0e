//! Size budgets from the design, and the check of the built files against them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Arch, Error};

/// Maximum bytes of kernel and initramfs of the agent OS together (design §6). Every machine
/// downloads both at every boot.
pub const AGENT_OS_BUDGET: u64 = 20 * 1024 * 1024;

/// Returns the maximum bytes of the box's image as downloaded (design §6). An image for ARM also
/// contains the kernel of the x86 machines' agent OS.
pub fn box_image_budget(arch: Arch) -> u64 {
    match arch {
        Arch::X86_64 => 40 * 1024 * 1024,
        Arch::Aarch64 => 40 * 1024 * 1024 + AGENT_OS_BUDGET,
    }
}

/// Files, and the maximum size of all together.
#[derive(Debug)]
pub struct Budget {
    what: &'static str,
    files: Vec<(PathBuf, u64)>,
    limit: u64,
}

impl Budget {
    /// Measures `files`, together called `what`, for a limit of `limit` bytes.
    pub fn measure(what: &'static str, files: &[&Path], limit: u64) -> Result<Self, Error> {
        let sizes = files.iter().map(|path| {
            let read = |source| Error::Read { path: path.to_path_buf(), source };
            Ok((path.to_path_buf(), fs::metadata(path).map_err(read)?.len()))
        });
        Ok(Self { what, files: sizes.collect::<Result<_, Error>>()?, limit })
    }

    /// Returns the bytes of all files together.
    pub fn total(&self) -> u64 {
        self.files.iter().map(|(_, size)| size).sum()
    }

    /// Returns a table with one line for each file and one for the sum.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for (path, size) in &self.files {
            let _ = writeln!(text, "{:>10}  {}", stdx::bytes(*size), path.display());
        }
        let (total, limit) = (stdx::bytes(self.total()), stdx::bytes(self.limit));
        let _ = writeln!(text, "{total:>10}  of {limit}");
        text
    }

    /// Returns an error when the sum is over the limit.
    pub fn check(&self) -> Result<(), Error> {
        if self.total() > self.limit {
            let (total, limit) = (stdx::bytes(self.total()), stdx::bytes(self.limit));
            return Err(Error::OverBudget { what: self.what, total, limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_within_the_budget() {
        let folder = tempfile::tempdir().unwrap();
        let (kernel, initramfs) = (folder.path().join("kernel"), folder.path().join("initramfs"));
        fs::write(&kernel, [0; 600]).unwrap();
        fs::write(&initramfs, [0; 424]).unwrap();
        let files = [kernel.as_path(), initramfs.as_path()];
        let budget = Budget::measure("the agent OS", &files, 1024).unwrap();
        budget.check().unwrap();
        assert!(budget.table().ends_with("   1.0 KiB  of 1.0 KiB\n"), "{}", budget.table());
        let error = Budget::measure("the agent OS", &files, 1023).unwrap().check().unwrap_err();
        assert!(error.to_string().starts_with("the agent OS has 1.0 KiB"), "{error}");
    }
}
