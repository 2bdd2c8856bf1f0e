//! `os-image push`: upload of an image file.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use box_client::{Path as ApiPath, UploadContent, query};
use image_catalog::ImageForm;
use tokio::time::Instant;

use super::refused;
use crate::commands::Context;
use crate::commands::backup::progress;
use crate::error::Error;

/// Name of standard input on the command line.
const PIPE: &str = "-";

#[derive(Debug, clap::Args)]
pub struct Push {
    /// Name for the OS image: lower-case letters, digits, hyphens and dots
    #[arg(value_name = "NAME")]
    image: String,

    /// Image file: raw, qcow2, or compressed with gzip, xz, zstd, bzip2 or lz4; "-" is standard
    /// input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Distribution in the image, such as debian; decides how the system is configured
    #[arg(long, value_name = "NAME")]
    distro: String,

    /// Version of the distribution, such as 13
    #[arg(long, value_name = "VERSION")]
    version: String,

    /// SHA-256 or SHA-512 of the file; the box refuses a file with another one
    #[arg(long, value_name = "CHECKSUM", default_value = "", hide_default_value = true)]
    checksum: String,
}

/// Uploads the file and shows the OS image that the box made of it.
///
/// # Errors
/// The file cannot be read, or the box refuses the upload.
pub async fn run(context: &Context, arguments: Push) -> Result<(), Error> {
    let Push { image: name, file, distro, version, checksum } = arguments;
    let form = ImageForm { name, distro, version, url: String::new(), checksum };
    form.check(true).map_err(|error| refused("push", &form.name, error))?;
    let (content, size) = content(&file).await?;
    let path = ApiPath::os_image_file(&context.namespace, form.name.trim());
    let query = query(&[
        ("distro", &form.distro),
        ("version", &form.version),
        ("checksum", &form.checksum),
    ]);
    let (mut bar, began) = (context.printer.bar(), Instant::now());
    let tell = |done| bar.show(&progress("sending", (done, size), began));
    let object = context.client.put(&path, &query, content, tell).await?;
    bar.clear();
    context.printer.done(&object, "stored")
}

/// Returns the content of a file and its size; 0 for a pipe, whose size is not known.
async fn content(path: &Path) -> Result<(UploadContent, u64), Error> {
    let is_stdin = path.as_os_str() == PIPE;
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let read = |source| Error::Read { file: name.clone(), source };
    let opened = if is_stdin { stdin()? } else { std::fs::File::open(path).map_err(read)? };
    let metadata = opened.metadata().map_err(read)?;
    if metadata.is_dir() {
        return Err(read(io::ErrorKind::IsADirectory.into()));
    }
    let opened = tokio::fs::File::from_std(opened);
    // A redirected file is a file too; a device or a pipe has no size.
    match metadata.is_file() {
        true => Ok((UploadContent::file(opened, metadata.len()), metadata.len())),
        false => Ok((UploadContent::pipe(opened), 0)),
    }
}

/// Returns standard input as a file.
fn stdin() -> Result<std::fs::File, Error> {
    if io::stdin().is_terminal() {
        let why = "standard input is a terminal: name a file, or pipe an image".to_owned();
        return Err(Error::Usage(why));
    }
    let own = io::stdin().as_fd().try_clone_to_owned();
    own.map(std::fs::File::from)
        .map_err(|source| Error::Read { file: "standard input".to_owned(), source })
}
