//! `backup`: backs up and restores the box.

mod new_box;
mod new_file;
mod stored;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path as FilePath, PathBuf};

use box_client::{BackupUpload, Path, UploadContent, decode};
use serde_json::{Value, json};
use status::backup::BackupSummary;
use status::plain;
use status::progress::Progress;
use stdx::Secret;
use tokio::time::Instant;

use super::Context;
use crate::error::Error;
use crate::question::question;
pub use new_box::onto;

/// Maximum size of a file with a passphrase, in bytes.
const SECRET_BYTES_MAX: u64 = 4096;

/// Back up and restore the box
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Write a backup of objects, keys, tokens, leases and settings to the file given with -o.
    /// Cached images are not included, only their URLs
    ///
    /// Without --recipient or --plain, the backup is encrypted with a passphrase, from a prompt or
    /// from --passphrase-file. An existing file is not overwritten. The program age can also open
    /// the backup: `tail -n +3 FILE | age -d | tar -xz`.
    ///
    /// Example: `tinbox backup create -o box.boxbak`
    Create(Create),
    /// Make a backup on the box's own disk now
    ///
    /// A flashed box makes such a backup once a day and keeps the newest three. The backup helps if
    /// stored data is damaged, but is lost with the disk: use `backup create` too.
    ///
    /// Example: `tinbox backup keep`
    Keep,
    /// List the backups on the box's own disk
    ///
    /// Example: `tinbox backup list`
    List,
    /// Check a backup by a restore to a temporary folder; the box does not change
    ///
    /// Example: `tinbox backup verify box.boxbak`
    Verify(Verify),
    /// Restore a backup with its keys, certificate pin and owner; the box then restarts
    ///
    /// All data of the box that the kubeconfig names is replaced. With --to, the target is a new
    /// box without an owner, and the code on its screen is needed: `tinbox backup restore
    /// box.boxbak --to 10.0.0.9`.
    ///
    /// Example: `tinbox backup restore box.boxbak`
    Restore(Restore),
}

#[derive(Debug, clap::Args)]
pub struct Create {
    /// Read the passphrase from this file instead of a prompt; `-` is standard input
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Encrypt for this age public key (`age1…`) instead of a passphrase; can be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "passphrase_file")]
    recipient: Vec<String>,
    /// Do not encrypt. Leaves out keys, tokens, settings, and all objects that can contain secrets,
    /// such as Secret, Hardware, Template and Workflow. A box cannot be restored from such a backup
    #[arg(long, conflicts_with_all = ["passphrase_file", "recipient"])]
    plain: bool,
}

#[derive(Debug, clap::Args)]
pub struct Source {
    /// Read the passphrase, or an age secret key, from this file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Verify {
    #[command(flatten)]
    which: BackupChoice,
    #[command(flatten)]
    secret: Source,
}

/// Backup to use: a file, or a backup on the box's disk.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct BackupChoice {
    /// Backup file
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Name of a backup on the box's disk, as shown by `tinbox backup list`
    #[arg(long, value_name = "NAME", conflicts_with = "passphrase_file")]
    kept: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct Restore {
    #[command(flatten)]
    which: BackupChoice,
    #[command(flatten)]
    secret: Source,
    /// Skip the confirmation prompt
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    fresh: new_box::NewBox,
}

impl Restore {
    /// Returns true if the target is an unclaimed box, for which no kubeconfig exists.
    pub fn is_fresh(&self) -> bool {
        self.fresh.to.is_some()
    }
}

pub async fn run(context: &Context, out: Option<PathBuf>, command: Command) -> Result<(), Error> {
    match command {
        Command::Create(arguments) => create(context, out, arguments).await,
        Command::Keep => stored::keep(context).await,
        Command::List => stored::list(context).await,
        Command::Verify(Verify { which, secret }) => {
            let report = asked(context, &which, "verify", &secret).await?;
            show(context, &report, "is good")
        }
        Command::Restore(Restore { which, secret, yes, .. }) => {
            agreed(context, yes)?;
            let report = asked(context, &which, "restore", &secret).await?;
            show(context, &report, "is restored, and the box restarts")?;
            context.printer.note("next: use the kubeconfig of the restored box");
            Ok(())
        }
    }
}

/// Sends a backup to the box, for the operation `verify` or `restore`.
async fn asked(
    context: &Context,
    which: &BackupChoice,
    what: &str,
    secret: &Source,
) -> Result<BackupSummary, Error> {
    match (&which.kept, &which.file) {
        (Some(name), _) => stored::ask(context, name, what).await,
        (None, Some(file)) => {
            let secret = opening(file, secret)?;
            let path = Path::backup(&format!("/{what}"));
            send(context, file, (&path, what), secret).await
        }
        (None, None) => Err(Error::Usage("give a file, or --kept NAME".to_owned())),
    }
}

fn agreed(context: &Context, yes: bool) -> Result<(), Error> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Error::Usage("no terminal for a prompt: give --yes to replace the box".into()));
    }
    let server = context.client.server();
    context.printer.note(&format!("the backup replaces all data on {server}"));
    match question("continue? (yes or no) ", true)?.expose().trim() {
        "yes" | "y" => Ok(()),
        _ => Err(Error::Usage("nothing was changed".to_owned())),
    }
}

async fn create(context: &Context, out: Option<PathBuf>, arguments: Create) -> Result<(), Error> {
    let name = || Error::Usage("give the file to write with -o FILE".to_owned());
    let out = out.ok_or_else(name)?;
    let file = new_file::NewFile::create(&out)?;
    let Create { passphrase_file, recipient, plain } = arguments;
    let order = if plain {
        json!({ "plain": true })
    } else if recipient.is_empty() {
        let secret = chosen(&Source { passphrase_file })?;
        json!({ "passphrase": secret.expose() })
    } else {
        json!({ "recipients": recipient })
    };
    let (mut file, began) = (file, Instant::now());
    let mut bar = context.printer.bar();
    let take = |piece: &[u8], bytes_done, bytes_total| {
        bar.show(&progress("writing", (bytes_done, bytes_total), began));
        file.write(piece)
    };
    let path = Path::backup("");
    let bytes = tokio::select! {
        bytes = context.client.download(&path, &order, take) => bytes?,
        // Dropping `file` removes the partial backup.
        _ = tokio::signal::ctrl_c() => return Err(Error::Interrupted),
    };
    bar.clear();
    file.finish()?;
    let shown = out.display();
    context.printer.line(&format!("{shown} is written, {}", stdx::bytes(bytes)))?;
    match plain {
        true => context.printer.note("a backup without secrets cannot restore a box"),
        false => context.printer.note(&format!("next: tinbox backup verify {shown}")),
    }
    Ok(())
}

pub fn progress(action: &str, (bytes_done, bytes_total): (u64, u64), began: Instant) -> Progress {
    Progress {
        action: action.to_owned(),
        message: String::new(),
        bytes_done,
        bytes_total,
        millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

async fn send(
    context: &Context,
    path: &FilePath,
    (to, what): (&Path, &str),
    secret: Option<Secret>,
) -> Result<BackupSummary, Error> {
    let read = |source| Error::Read { file: path.display().to_string(), source };
    let file = tokio::fs::File::open(path).await.map_err(read)?;
    let size = file.metadata().await.map_err(read)?.len();
    let (mut bar, began) = (context.printer.bar(), Instant::now());
    let tell = |done| bar.show(&progress("sending", (done, size), began));
    let what = format!("{what} {}", path.display());
    let sent = BackupUpload { what: &what, path: to, secret: secret.as_ref() };
    let answer = context.client.send_backup(sent, UploadContent::file(file, size), tell).await?;
    Ok(decode("read the report", answer)?)
}

fn show(context: &Context, report: &BackupSummary, how: &str) -> Result<(), Error> {
    let value: Value = serde_json::to_value(report).unwrap_or_default();
    if let Some(printed) = context.printer.values(std::slice::from_ref(&value)) {
        return printed;
    }
    context.printer.line(&summary(report, how))
}

/// Returns `the backup of box-7f3a, made 2026-11-25T08:00:00Z by 1.4.0, is good: 212 objects …`.
fn summary(report: &BackupSummary, how: &str) -> String {
    let BackupSummary { name, version, made, pin, .. } = report;
    format!(
        "the backup of {} (pin {}), made {made:.0} by {}, {how}: {}",
        plain(name),
        plain(pin),
        plain(version),
        report.contents()
    )
}

/// Returns the passphrase for a new backup, from a file or a prompt.
fn chosen(source: &Source) -> Result<Secret, Error> {
    if let Some(secret) = read(source)? {
        return Ok(secret);
    }
    let secret = question("passphrase of the backup (8 characters or more): ", false)?;
    let again = question("repeat the passphrase: ", false)?;
    match secret == again {
        true => Ok(secret),
        false => Err(Error::Usage("the two passphrases are not the same".to_owned())),
    }
}

/// Returns the passphrase or key that opens a backup; `None` if the backup is not encrypted.
fn opening(file: &FilePath, source: &Source) -> Result<Option<Secret>, Error> {
    let mut begin = Vec::new();
    let opened = File::open(file).and_then(|file| file.take(1024).read_to_end(&mut begin));
    opened.map_err(|source| Error::Read { file: file.display().to_string(), source })?;
    let begin = String::from_utf8_lossy(&begin);
    if !begin.starts_with("TINBOX BACKUP ") {
        let why = "not a valid backup of a Tinbox: expected the first words TINBOX BACKUP";
        return Err(Error::Content { file: file.display().to_string(), why: why.to_owned() });
    }
    if begin.contains("\"encryption\":\"none\"") {
        return Ok(None);
    }
    match read(source)? {
        Some(secret) => Ok(Some(secret)),
        None => question("passphrase of the backup: ", false).map(Some),
    }
}

/// Reads the passphrase from `--passphrase-file`. Without the option, returns `None` on a terminal
/// (prompt), and fails otherwise.
fn read(source: &Source) -> Result<Option<Secret>, Error> {
    let Some(path) = &source.passphrase_file else {
        if io::stdin().is_terminal() {
            return Ok(None);
        }
        let why = "no terminal for a prompt: give --passphrase-file with the backup's passphrase";
        return Err(Error::Usage(why.to_owned()));
    };
    let (name, mut text) = (path.display().to_string(), String::new());
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(SECRET_BYTES_MAX).read_to_string(&mut text),
        false => {
            File::open(path).and_then(|file| file.take(SECRET_BYTES_MAX).read_to_string(&mut text))
        }
    };
    read.map_err(|source| Error::Read { file: name.clone(), source })?;
    let text = Secret::from(text);
    // A file of keys has comments of its own (`age-keygen`).
    let mut lines = text.expose().lines().filter(|line| !line.starts_with('#'));
    match lines.find(|line| !line.is_empty()) {
        Some(line) => Ok(Some(Secret::from(line))),
        None => Err(Error::Content { file: name, why: "it contains no passphrase".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use status::backup::BackupSummary;

    #[test]
    fn what_is_said_of_a_backup() {
        let report = BackupSummary {
            name: "box-7f3a".into(),
            version: "1.4.0".into(),
            pin: "F3A9-1C20-8BQK-77TM".into(),
            made: "2026-11-25T08:00:00.123Z".parse().unwrap(),
            objects: 212,
            hardware: 12,
            ..BackupSummary::default()
        };
        let want = "the backup of box-7f3a (pin F3A9-1C20-8BQK-77TM), made 2026-11-25T08:00:00Z by \
                    1.4.0, is good: 212 objects (12 machines, 0 secrets), 0 leases, 0 files";
        assert_eq!(super::summary(&report, "is good"), want);
    }
}
