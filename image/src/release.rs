//! Builds the published files of an image: compressed image, block map, update bundle, list of
//! components, and the checksums of all these with one signature.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use release::{SUMS, SecretKey, sums_line};
use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::bundle::{self, Bundle};
use crate::disk::{Disk, Inputs};
use crate::program::Program;

const XZ: Program = Program { name: "xz", package: "xz-utils" };
/// xz filter. The second slot repeats the first one at a distance of a partition's size, so the
/// dictionary must reach back that far. Decompression needs as much memory.
const XZ_FILTER: &str = "--lzma2=preset=6,dict=192MiB,mf=hc4";
/// xz options for an image that is not published: fast, on all processors. The block size is fixed,
/// so the result does not depend on the number of processors.
const XZ_QUICK: [&str; 3] = ["-0", "--threads=0", "--block-size=64MiB"];

/// Image to publish, with its inputs and key.
#[derive(Debug)]
pub struct Release<'a> {
    /// Inputs that the image was built from.
    pub inputs: &'a Inputs,
    /// Built image and its root.
    pub disk: &'a Disk,
    /// Folder of the published files.
    pub folder: &'a Path,
    /// Prefix of every file name: `tinbox-<version>-<arch>`.
    pub name: &'a str,
    /// Secret key of the publisher, for signatures.
    pub key: &'a SecretKey,
}

impl Release<'_> {
    /// Writes `NAME.update`. Returns its path.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn bundle(&self) -> Result<PathBuf, Error> {
        let bundle = Bundle {
            version: &self.inputs.root.version,
            arch: self.inputs.arch,
            built: self.inputs.epoch,
            kernel: &read(&self.inputs.kernel)?,
            root: &read(&self.disk.root)?,
            verity: self.disk.verity.clone(),
        };
        self.write(".update", &bundle::write(&bundle, self.key)?)
    }

    /// Writes `NAME.img.xz`. Returns its path.
    ///
    /// # Errors
    /// `xz` failed.
    pub fn compressed(&self) -> Result<PathBuf, Error> {
        let out = self.path(".img.xz");
        let file =
            File::create(&out).map_err(|source| Error::Write { path: out.clone(), source })?;
        let mut command = XZ.command(self.inputs.epoch);
        command.args(["--compress", "--stdout", "--check=crc64"]);
        if self.inputs.root.quick {
            command.args(XZ_QUICK);
        } else {
            // One thread, because the split of the work must not depend on the machine.
            command.args(["--threads=1", XZ_FILTER]);
        }
        command.arg(&self.disk.image).stdout(Stdio::from(file));
        XZ.run(&mut command, &self.disk.image)?;
        Ok(out)
    }

    /// Writes `NAME.sbom.json`. Returns its path.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn sbom(&self, document: &str) -> Result<PathBuf, Error> {
        self.write(".sbom.json", document.as_bytes())
    }

    /// Writes `SHA256SUMS` for `files`, which lie in the folder, and `SHA256SUMS.minisig`.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn sums(&self, files: &[PathBuf]) -> Result<(), Error> {
        let mut sums = String::new();
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            sums += &sums_line(&sum(path)?, &name);
        }
        let path = self.folder.join(SUMS);
        write(&path, sums.as_bytes())?;
        let comment = format!("timestamp:{}\tfile:{SUMS}\thashed", self.inputs.epoch);
        let signature = self.key.signature_file(sums.as_bytes(), &comment);
        write(&self.folder.join(format!("{SUMS}.minisig")), signature.as_bytes())
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", self.name))
    }

    fn write(&self, ending: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.path(ending);
        write(&path, bytes)?;
        Ok(path)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(|source| Error::Write { path: path.to_owned(), source })
}

fn sum(path: &Path) -> Result<[u8; 32], Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(read)?;
    let mut sum = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut piece).map_err(read)?;
        if count == 0 {
            return Ok(sum.finalize().into());
        }
        sum.update(piece.get(..count).unwrap_or_default());
    }
}
