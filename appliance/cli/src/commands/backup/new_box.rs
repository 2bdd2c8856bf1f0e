//! Restores a backup to an unclaimed box, with the code and the pin on its screen.

use std::io::Read as _;
use std::time::Duration;

use http::Method;
use http::header::CONTENT_TYPE;
use status::plain;
use stdx::Secret;

use super::super::appliance::claim::{bare, trusted};
use super::{Restore, opening};
use crate::error::Error;
use crate::output::Printer;
use crate::question::question;
use box_client::pinned::{ask_for, request};

/// Maximum size in bytes of a backup for a new box; the backup is held in memory.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// Maximum time for the restore.
const WAIT: Duration = Duration::from_secs(300);

#[derive(Debug, clap::Args)]
pub struct NewBox {
    /// Address of a new box without an owner, as its screen shows it [default: the box of the
    /// kubeconfig]
    #[arg(long, value_name = "ADDRESS")]
    pub to: Option<String>,
    /// Certificate pin on the new box's screen; nothing is sent to a box with another pin [default:
    /// confirm the pin at a prompt]
    #[arg(long, value_name = "PIN", requires = "to")]
    pin: Option<String>,
    /// File with the code that the new box's screen shows [default: enter the code at a prompt]
    #[arg(long, value_name = "FILE", requires = "to")]
    code_file: Option<std::path::PathBuf>,
}

/// Restores the backup to the new box.
pub async fn onto(printer: &Printer, arguments: Restore) -> Result<(), Error> {
    let Restore { which, secret, fresh, .. } = arguments;
    let file = which.file.ok_or_else(|| {
        Error::Usage("give a file: another box has no backup of this box".to_owned())
    })?;
    let address = bare(fresh.to.as_deref().unwrap_or_default());
    let pin = trusted(printer, &address, fresh.pin.as_deref()).await?;
    let code = match &fresh.code_file {
        Some(path) => {
            let read = std::fs::read_to_string(path);
            let failed = |source| Error::Read { file: path.display().to_string(), source };
            Secret::from(read.map_err(failed)?.trim().to_owned())
        }
        None => question("code on the box's screen: ", true)?,
    };
    let passphrase = opening(&file, &secret)?;
    let mut content = Vec::new();
    let read = std::fs::File::open(&file);
    let read = read.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut content));
    read.map_err(|source| Error::Read { file: file.display().to_string(), source })?;
    // Longer than chance: in no file that could be sent.
    let boundary = format!("tinbox-{}", stdx::random_hex(24));
    let passphrase = passphrase.as_ref().map_or("", Secret::expose);
    let mut form = Vec::with_capacity(content.len() + 1024);
    for (name, text) in [
        ("code", code.expose().as_bytes()),
        ("passphrase", passphrase.as_bytes()),
        ("file", &content),
    ] {
        let head =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        form.extend(head.as_bytes());
        form.extend(text);
        form.extend(b"\r\n");
    }
    form.extend(format!("--{boundary}--\r\n").as_bytes());
    let post = request(Method::POST, &address, "/S/restore")
        .header(CONTENT_TYPE, format!("multipart/form-data; boundary={boundary}"));
    let (answer, _) = ask_for(&address, (Some(&pin), WAIT), post, form.into()).await?;
    let message = plain(String::from_utf8_lossy(answer.body()).trim());
    if answer.status().is_success() {
        printer.line(&message)?;
        printer.note("next: use the kubeconfig of the restored box");
        return Ok(());
    }
    let claimed = answer.status().is_redirection();
    Err(Error::Unable {
        what: format!("restore {} on the box at {address}", file.display()),
        why: if claimed { "the box has an owner".to_owned() } else { message },
        hint: match claimed {
            true => "to restore a box that has an owner, use its kubeconfig, without --to",
            false => "nothing on the box was changed: correct the cause and run the command again",
        },
    })
}
