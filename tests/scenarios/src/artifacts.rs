//! Files that the box serves, built once for all racks by `image/artifacts.sh`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// The folder `out/artifacts`: `ipxe/`, `agent/`, `images/`.
#[derive(Debug, Clone)]
pub struct Artifacts {
    root: PathBuf,
}

impl Artifacts {
    /// Opens the folder as the build left it.
    ///
    /// # Errors
    /// A file is missing; the error names the command that builds it.
    pub fn open() -> anyhow::Result<Self> {
        let root = qemu::out_dir().join("artifacts");
        for file in [
            "ipxe/undionly.kpxe",
            "ipxe/snponly.efi",
            "agent/vmlinuz-x86_64",
            "agent/initramfs-x86_64",
        ] {
            let path = root.join(file);
            ensure!(
                path.is_file(),
                "{} is missing\nhint: make artifacts builds what the box serves",
                path.display()
            );
        }
        let root = root.canonicalize().context("cannot resolve the artifact folder")?;
        Ok(Self { root })
    }

    /// Path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The SHA-256 of an image, from the file beside it.
    ///
    /// # Errors
    /// There is no such image.
    pub fn sha256(&self, image: &str) -> anyhow::Result<String> {
        let path = self.root.join("images").join(format!("{image}.sha256"));
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let sum = text.split_whitespace().next().unwrap_or_default().to_owned();
        ensure!(sum.len() == 64, "{} holds no SHA-256", path.display());
        Ok(sum)
    }
}
