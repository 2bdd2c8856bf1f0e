//! `box claim`: exchanges the code on the box's screen for its kubeconfig.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use box_client::ClientError;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use http::{Method, Response, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use status::plain;
use stdx::Secret;

use crate::error::Error;
use crate::output::Printer;
use crate::question::{question, read_line};
use box_client::pinned::{ask, request};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Address or name of the box, as its screen shows it; add `:PORT` if the port is not 443
    #[arg(value_name = "ADDRESS")]
    address: String,

    /// Certificate pin that the box's screen shows; nothing is sent to a box with another pin
    /// [default: confirm the pin at a prompt]
    #[arg(long, value_name = "PIN")]
    pin: Option<String>,

    /// Read the code, then the new passphrase, from standard input, one per line, without prompts;
    /// requires --pin
    #[arg(long, requires = "pin")]
    secrets_stdin: bool,
}

/// Claims the box and saves its kubeconfig.
///
/// # Errors
/// The claim fails. An error before the box's response leaves the box unclaimed.
pub async fn run(
    printer: &Printer,
    file: Option<PathBuf>,
    arguments: Arguments,
) -> Result<(), Error> {
    let home = std::env::home_dir().map(|home| home.join(".tinbox/admin.kubeconfig"));
    let file = file.or(home).ok_or_else(|| Error::Usage("name a --kubeconfig".to_owned()))?;
    if file.exists() {
        let why = format!("{} already exists", file.display());
        let hint = "the file belongs to this box or to another: unset TINBOX_KUBECONFIG, or name a \
            new file with --kubeconfig";
        return Err(Error::Argument { why, hint: hint.to_owned() });
    }
    // First of all: a box that is claimed stays so, whatever fails afterwards.
    let failed = |source| Error::Write { file: file.display().to_string(), source };
    let new = NewFile::create(&file).map_err(failed)?;
    let address = bare(&arguments.address);
    let pin = trusted(printer, &address, arguments.pin.as_deref()).await?;
    let (code, passphrase) = secrets(&arguments)?;
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let (code, passphrase) = (encoded(code.expose()), encoded(passphrase.expose()));
    let form = format!("code={code}&passphrase={passphrase}&again={passphrase}");
    let post = request(Method::POST, &address, "/S")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    let (answer, _) = ask(&address, Some(&pin), post, form).await?;
    let cookie = answer.headers().get(SET_COOKIE).and_then(|it| it.to_str().ok());
    let Some(cookie) = cookie.and_then(|it| it.split(';').next()) else {
        return Err(refused(&address, "claim", &answer, claim_hint(answer.status())));
    };
    let get = request(Method::GET, &address, "/kubeconfig").header(COOKIE, cookie);
    let (answer, _) = ask(&address, Some(&pin), get, String::new()).await?;
    if !answer.status().is_success() {
        return Err(refused(&address, "read the kubeconfig of", &answer, CLAIMED));
    }
    new.finish(answer.body()).map_err(failed)?;
    printer.line(&format!("{address} is yours; its kubeconfig is {}", file.display()))?;
    printer.note(&format!("next: tinbox --kubeconfig {} hardware list", file.display()));
    Ok(())
}

/// Hint if the box is claimed, but its kubeconfig was not received.
const CLAIMED: &str = "the box is claimed: log in on its page with the new passphrase, and \
    download the kubeconfig";

/// Creates the error of a response that refuses.
fn refused(address: &str, what: &str, answer: &Response<Bytes>, hint: &'static str) -> Error {
    let sentence = plain(String::from_utf8_lossy(answer.body()).trim());
    let why = match answer.status() {
        status if status.is_redirection() => "it has an owner".to_owned(),
        status if sentence.is_empty() => format!("HTTP status {}", status.as_u16()),
        _ => sentence,
    };
    Error::Unable { what: format!("{what} the box at {address}"), why, hint }
}

/// Returns the advice for a refused claim, by the status of the response.
fn claim_hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => {
            "the code is on the box's screen, or in claim.json in tinboxd's state folder, until \
             the box has an owner"
        }
        StatusCode::UNPROCESSABLE_ENTITY => "correct this and run the command again",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            "wait a moment and run the command again"
        }
        status if status.is_redirection() || status == StatusCode::CONFLICT => {
            "the owner downloads a kubeconfig on the box's page; `box reset factory` or the \
             button on the box lets it be claimed again"
        }
        _ => "check that ADDRESS is the page of a Tinbox of this program's version",
    }
}

/// Removes a copied scheme and slashes from an address.
pub fn bare(text: &str) -> String {
    let text = text.strip_prefix("https://").unwrap_or(text);
    text.trim_end_matches('/').to_owned()
}

/// Returns the pin of the intended box: `pin`, or the pin that a person confirmed at the prompt.
pub async fn trusted(printer: &Printer, address: &str, pin: Option<&str>) -> Result<String, Error> {
    let get = request(Method::GET, address, "/S");
    let (_, found) = ask(address, pin, get, String::new()).await?;
    if pin.is_some() {
        return Ok(found);
    }
    if !io::stdin().is_terminal() {
        return Err(Error::Argument {
            why: format!("{address} has the pin {found}, to be confirmed at a terminal"),
            hint: format!("compare it with the box's screen, then give --pin {found}"),
        });
    }
    printer.note(&format!("the box at {address} has the pin {found}"));
    let reply = question("does the box's screen show the same pin? (yes or no) ", true)?;
    match reply.expose().trim() {
        "yes" | "y" => Ok(found),
        reply => {
            let wanted = format!("the pin on the box's screen (the answer was {reply:?})");
            Err(ClientError::Untrusted { address: address.to_owned(), found, wanted }.into())
        }
    }
}

fn secrets(arguments: &Arguments) -> Result<(Secret, Secret), Error> {
    if arguments.secrets_stdin {
        return Ok((read_line()?, read_line()?));
    }
    if !io::stdin().is_terminal() {
        let why = "no terminal for a prompt".to_owned();
        let hint = "give --secrets-stdin, and on standard input the code and the passphrase, one \
                    per line";
        return Err(Error::Argument { why, hint: hint.to_owned() });
    }
    let code = question("code on the box's screen: ", true)?;
    let passphrase = question("new passphrase (8 characters or more): ", false)?;
    let again = question("repeat the passphrase: ", false)?;
    same(&passphrase, &again)?;
    Ok((code, passphrase))
}

fn same(passphrase: &Secret, again: &Secret) -> Result<(), Error> {
    if passphrase.expose() == again.expose() {
        return Ok(());
    }
    let hint = "nothing was sent: run the command again, and type the same passphrase twice";
    let why = "the two passphrases are not the same".to_owned();
    Err(Error::Argument { why, hint: hint.to_owned() })
}

/// New file that only the user can read. Dropping an incomplete file removes it.
#[derive(Debug)]
struct NewFile {
    path: PathBuf,
    file: Option<File>,
}

impl NewFile {
    fn create(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut new = OpenOptions::new();
        let file = new.write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { path: path.to_owned(), file: Some(file) })
    }

    fn finish(mut self, content: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(content)?;
        file.sync_all()?;
        self.file = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, NewFile, run, same};
    use crate::error::Error;
    use crate::output::{Format, Printer};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use stdx::Secret;

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_written_is_found_out_before_the_box_is_claimed() {
        let arguments = Arguments {
            // No box answers here: a request would fail with another error.
            address: "127.0.0.1:1".to_owned(),
            pin: Some("sha256:00".to_owned()),
            secrets_stdin: true,
        };
        let file = "/proc/version/admin.kubeconfig".into();
        let failed = run(&Printer::new(Format::Table), Some(file), arguments).await;
        assert!(matches!(failed, Err(Error::Write { .. })), "{failed:?}");
    }

    #[tokio::test]
    async fn an_address_without_a_box_is_to_be_compared() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = Arguments {
            address: "127.0.0.1:1".to_owned(),
            pin: Some("sha256:00".to_owned()),
            secrets_stdin: true,
        };
        let file = folder.path().join("admin.kubeconfig");
        let error = run(&Printer::new(Format::Table), Some(file), arguments).await.unwrap_err();
        let hint = error.hint("tinbox").unwrap();
        assert!(hint.starts_with("compare the address"), "{error}: {hint}");
    }

    #[tokio::test]
    async fn an_existing_kubeconfig_stays_and_the_hint_names_the_variable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("admin.kubeconfig");
        fs::write(&file, "kind: Config\n").unwrap();
        let address = "127.0.0.1:1".to_owned();
        let arguments = Arguments { address, pin: None, secrets_stdin: false };
        let failed = run(&Printer::new(Format::Table), Some(file.clone()), arguments).await;
        let hint = failed.unwrap_err().hint("tinbox").unwrap();
        assert!(hint.contains("unset TINBOX_KUBECONFIG"), "{hint}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "kind: Config\n");
    }

    #[test]
    fn different_passphrases_have_a_hint_that_says_what_to_do() {
        let [one, other] = ["correct horse", "correct house"].map(Secret::from);
        same(&one, &one).unwrap();
        let error = same(&one, &other).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let hint = error.hint("tinbox").unwrap();
        assert!(hint.ends_with("type the same passphrase twice"), "{hint}");
    }

    #[test]
    fn a_kubeconfig_is_private_and_half_of_one_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/admin.kubeconfig");
        drop(NewFile::create(&path).unwrap());
        assert!(!path.exists());
        NewFile::create(&path).unwrap().finish(b"kind: Config\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"kind: Config\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        NewFile::create(&path).unwrap_err();
        assert!(path.exists(), "an existing file stays");
    }
}
