//! `backup`: one file with everything the box knows, and the way back.

mod fresh;
mod keep;
mod kept;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path as FilePath, PathBuf};

use serde_json::{Value, json};
use status::backup::Report;
use status::progress::Progress;
use status::story::plain;
use stdx::Secret;
use tokio::time::Instant;

use super::Context;
use super::appliance::question::question;
use crate::client::{Path, Sent};
use crate::error::Error;
pub use fresh::onto;

/// Bytes of a file with a passphrase.
const SECRET_BYTES_MAX: u64 = 4096;

/// One file with everything the box knows, and the way back.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Write a backup to the file that -o names: objects, keys, tokens, leases and settings. Of
    /// images it has where they are from.
    ///
    /// Without --recipient or --plain it is encrypted with a passphrase, which is asked for.
    /// The stock age opens it too: `tail -n +3 FILE | age -d | tar -xz`.
    ///
    /// Example: `tinbox backup create -o box.boxbak`
    Create(Create),
    /// Have the box make a backup now, and keep it on its own disk.
    ///
    /// It does so once a day by itself. They help when what is stored is damaged, and go with the
    /// disk: take one away with `backup create` too.
    ///
    /// Example: `tinbox backup keep`
    Keep,
    /// Show the backups that the box made itself, and keeps.
    ///
    /// Example: `tinbox backup list`
    List,
    /// Rehearse a restore on the box without changing it, and say what is in the backup.
    ///
    /// Example: `tinbox backup verify box.boxbak`
    Verify(Verify),
    /// Make a box the one of the backup, with its keys, its pin and its owner; it restarts then.
    ///
    /// The box of the kubeconfig is asked for its owner's consent by that; a fresh one, without an
    /// owner, by the code on its screen: `tinbox backup restore box.boxbak --to 10.0.0.9`.
    ///
    /// Example: `tinbox backup restore box.boxbak`
    Restore(Restore),
}

/// Who may open it.
#[derive(Debug, clap::Args)]
pub struct Create {
    #[command(flatten)]
    secret: Source,
    /// For whoever has the secret key of this public one (`age1…`), instead of a passphrase; may be
    /// given several times.
    #[arg(long, value_name = "KEY", conflicts_with = "passphrase_file")]
    recipient: Vec<String>,
    /// Not encrypted: everything secret is left out, so that no box can be made of it.
    #[arg(long, conflicts_with_all = ["passphrase_file", "recipient"])]
    plain: bool,
}

/// Where the passphrase is.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// Read the backup's passphrase, or a secret key of age, from this file; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// Which backup.
#[derive(Debug, clap::Args)]
pub struct Verify {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    secret: Source,
}

/// A file, or one that the box keeps.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// The file.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// One that the box keeps, by its name in `tinbox backup list`.
    #[arg(long, value_name = "NAME", conflicts_with = "passphrase_file")]
    kept: Option<String>,
}

/// Which backup, onto which box.
#[derive(Debug, clap::Args)]
pub struct Restore {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    secret: Source,
    /// Do not ask whether the box may become another.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    fresh: fresh::Fresh,
}

impl Restore {
    /// It is for a box without an owner, of which nobody has a kubeconfig.
    pub fn is_fresh(&self) -> bool {
        self.fresh.to.is_some()
    }
}

/// Do it.
///
/// # Errors
/// What failed.
pub async fn run(context: &Context, out: Option<PathBuf>, command: Command) -> Result<(), Error> {
    match command {
        Command::Create(arguments) => create(context, out, arguments).await,
        Command::Keep => kept::keep(context).await,
        Command::List => kept::list(context).await,
        Command::Verify(Verify { which, secret }) => {
            let report = asked(context, &which, "verify", &secret).await?;
            show(context, &report, "is good")
        }
        Command::Restore(Restore { which, secret, yes, .. }) => {
            agreed(context, yes)?;
            let report = asked(context, &which, "restore", &secret).await?;
            show(context, &report, "is restored, and the box restarts")?;
            context.printer.note("next: use the kubeconfig that you had of that box");
            Ok(())
        }
    }
}

/// Has the box `verify` or `restore` a backup.
async fn asked(
    context: &Context,
    which: &Which,
    what: &str,
    secret: &Source,
) -> Result<Report, Error> {
    match (&which.kept, &which.file) {
        (Some(name), _) => kept::ask(context, name, what).await,
        (None, Some(file)) => {
            let secret = opening(file, secret)?;
            let path = Path::backup(&format!("/{what}"));
            send(context, file, (&path, what), secret).await
        }
        (None, None) => Err(Error::Usage("name the file, or one by --kept NAME".to_owned())),
    }
}

fn agreed(context: &Context, yes: bool) -> Result<(), Error> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Error::Usage(
            "give --yes: the box becomes another, and nobody can agree".into(),
        ));
    }
    let server = context.client.server();
    context.printer.note(&format!("everything on {server} is replaced by what is in the backup"));
    match question("go on? (yes or no) ", true)?.expose().trim() {
        "yes" | "y" => Ok(()),
        _ => Err(Error::Usage("nothing was changed".to_owned())),
    }
}

async fn create(context: &Context, out: Option<PathBuf>, arguments: Create) -> Result<(), Error> {
    let name = || Error::Usage("name the file to write with -o FILE".to_owned());
    let out = out.ok_or_else(name)?;
    let file = keep::New::create(&out)?;
    let Create { secret, recipient, plain } = arguments;
    let order = if plain {
        json!({ "plain": true })
    } else if recipient.is_empty() {
        let secret = chosen(&secret)?;
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
        // What was written of it is removed.
        _ = tokio::signal::ctrl_c() => return Err(Error::Interrupted),
    };
    bar.clear();
    file.finish()?;
    let size = stdx::bytes(bytes);
    context.printer.line(&format!("{} is written, {size}", out.display()))?;
    let shown = out.display();
    match plain {
        true => context.printer.note("it has no secrets, and no box can be made of it"),
        false => context.printer.note(&format!("next: tinbox backup verify {shown}")),
    }
    Ok(())
}

fn progress(action: &str, (bytes_done, bytes_total): (u64, u64), began: Instant) -> Progress {
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
) -> Result<Report, Error> {
    let read = |source| Error::Read { file: path.display().to_string(), source };
    let file = tokio::fs::File::open(path).await.map_err(read)?;
    let size = file.metadata().await.map_err(read)?.len();
    let (mut bar, began) = (context.printer.bar(), Instant::now());
    let tell = |done| bar.show(&progress("sending", (done, size), began));
    let what = format!("{what} {}", path.display());
    let sent = Sent { what: &what, path: to, secret: secret.as_ref() };
    let answer = context.client.send_backup(sent, (file, size), tell).await?;
    serde_json::from_value(answer)
        .map_err(|error| Error::Answer { what: "read the report".into(), why: error.to_string() })
}

fn show(context: &Context, report: &Report, how: &str) -> Result<(), Error> {
    let value: Value = serde_json::to_value(report).unwrap_or_default();
    if let Some(printed) = context.printer.values(std::slice::from_ref(&value)) {
        return printed;
    }
    context.printer.line(&told(report, how))
}

/// `the backup of box-7f3a, made 2026-11-25T08:00:00Z by 1.4.0, is good: 212 objects …`.
fn told(report: &Report, how: &str) -> String {
    let Report { name, version, made, pin, .. } = report;
    format!(
        "the backup of {} (pin {}), made {made:.0} by {}, {how}: {}",
        plain(name),
        plain(pin),
        plain(version),
        report.contents()
    )
}

/// A passphrase for a backup that is to be made.
fn chosen(source: &Source) -> Result<Secret, Error> {
    if let Some(secret) = read(source)? {
        return Ok(secret);
    }
    let secret = question("passphrase of the backup (8 characters or more): ", false)?;
    let again = question("the same again: ", false)?;
    match secret == again {
        true => Ok(secret),
        false => Err(Error::Usage("the two passphrases are not the same".to_owned())),
    }
}

/// What opens a backup; nothing, where its beginning says that it is plain.
fn opening(file: &FilePath, source: &Source) -> Result<Option<Secret>, Error> {
    let mut begin = Vec::new();
    let opened = File::open(file).and_then(|file| file.take(1024).read_to_end(&mut begin));
    opened.map_err(|source| Error::Read { file: file.display().to_string(), source })?;
    let begin = String::from_utf8_lossy(&begin);
    if !begin.starts_with("TINBOX BACKUP ") {
        let why = "it is no backup of a Tinbox: those begin with the words TINBOX BACKUP";
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

/// From where it was said to be; `None`: a person is to be asked.
fn read(source: &Source) -> Result<Option<Secret>, Error> {
    let Some(path) = &source.passphrase_file else {
        if io::stdin().is_terminal() {
            return Ok(None);
        }
        let why = "nobody is here to ask: give --passphrase-file with the backup's passphrase";
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
        None => Err(Error::Content { file: name, why: "there is no passphrase in it".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use status::backup::Report;

    #[test]
    fn what_is_said_of_a_backup() {
        let report = Report {
            name: "box-7f3a".into(),
            version: "1.4.0".into(),
            pin: "F3A9-1C20-8BQK-77TM".into(),
            made: "2026-11-25T08:00:00.123Z".parse().unwrap(),
            objects: 212,
            hardware: 12,
            ..Report::default()
        };
        let want = "the backup of box-7f3a (pin F3A9-1C20-8BQK-77TM), made 2026-11-25T08:00:00Z by \
                    1.4.0, is good: 212 objects (12 machines, 0 secrets), 0 leases, 0 files";
        assert_eq!(super::told(&report, "is good"), want);
    }
}
