//! What is published of an image: compressed, with its block map, an update bundle, the list of
//! what it is made of, and the sums of all these with one signature.

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
/// The second slot is the first one again, a partition's size behind it: the dictionary must reach
/// back that far. Whoever unpacks the image needs as much memory.
const XZ_FILTER: &str = "--lzma2=preset=6,dict=192MiB,mf=hc4";
/// For an image that is not published: as quickly as may be, on every processor. The size of the
/// blocks is fixed, so the result does not depend on how many there are.
const XZ_QUICK: [&str; 3] = ["-0", "--threads=0", "--block-size=64MiB"];

/// An image on its way to be published.
#[derive(Debug)]
pub struct Release<'a> {
    /// What it was made of.
    pub inputs: &'a Inputs,
    /// The image.
    pub disk: &'a Disk,
    /// Where it lies.
    pub folder: &'a Path,
    /// `tinbox-<version>-<arch>`, the beginning of every file's name.
    pub name: &'a str,
    /// Who publishes it.
    pub key: &'a SecretKey,
}

impl Release<'_> {
    /// Writes `NAME.update`; its path.
    ///
    /// # Errors
    /// A file that cannot be read or written.
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

    /// Writes `NAME.img.xz`; its path.
    ///
    /// # Errors
    /// `xz` does not do it.
    pub fn compressed(&self) -> Result<PathBuf, Error> {
        let out = self.path(".img.xz");
        let file =
            File::create(&out).map_err(|source| Error::Write { path: out.clone(), source })?;
        let mut command = XZ.command(self.inputs.epoch);
        command.args(["--compress", "--stdout", "--check=crc64"]);
        if self.inputs.root.quick {
            command.args(XZ_QUICK);
        } else {
            // One thread: how the work is split must not depend on the machine.
            command.args(["--threads=1", XZ_FILTER]);
        }
        command.arg(&self.disk.image).stdout(Stdio::from(file));
        XZ.run(&mut command, &self.disk.image)?;
        Ok(out)
    }

    /// Writes `NAME.sbom.json`; its path.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn sbom(&self, document: &str) -> Result<PathBuf, Error> {
        self.write(".sbom.json", document.as_bytes())
    }

    /// Writes `SHA256SUMS` over `files`, which lie in the folder, and `SHA256SUMS.minisig`.
    ///
    /// # Errors
    /// A file that cannot be read or written.
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
