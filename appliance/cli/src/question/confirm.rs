//! Confirmation of commands that destroy something.

use std::io::{self, IsTerminal as _};

use super::question;
use crate::error::Error;
use crate::output::Printer;

/// Options of a command that needs a confirmation.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Confirm {
    /// Skip the confirmation prompt, for scripts
    #[arg(short, long)]
    pub yes: bool,

    /// Show what the command would do; change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Reply that a prompt expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The word `yes`, or its first letter.
    Yes,
    /// The name of the object.
    Name(&'a str),
}

impl Confirm {
    /// Shows `effect`, and asks for a confirmation unless the command line has it. Returns false
    /// for a dry run.
    ///
    /// # Errors
    /// The reply does not confirm, or there is no terminal for the prompt.
    pub fn agreed(self, printer: &Printer, effect: &str, wanted: Reply) -> Result<bool, Error> {
        if self.dry_run {
            printer.note(&format!("would change: {effect}"));
            return Ok(false);
        }
        printer.note(effect);
        if !self.yes {
            ask(wanted)?;
        }
        Ok(true)
    }
}

/// Asks at the terminal.
///
/// # Errors
/// As [`Confirm::agreed`].
pub fn ask(wanted: Reply) -> Result<(), Error> {
    if !io::stdin().is_terminal() {
        return Err(Error::Usage("no terminal for a prompt: give --yes".to_owned()));
    }
    let prompt = match wanted {
        Reply::Yes => "continue? (yes or no) ".to_owned(),
        Reply::Name(name) => format!("type {name} to continue: "),
    };
    let reply = question(&prompt, true)?;
    check(reply.expose().trim(), wanted)
}

fn check(reply: &str, wanted: Reply) -> Result<(), Error> {
    match wanted {
        Reply::Yes if matches!(reply, "yes" | "y") => Ok(()),
        Reply::Name(name) if reply == name => Ok(()),
        Reply::Yes => Err(Error::Usage("not confirmed: nothing was done".to_owned())),
        Reply::Name(name) => {
            Err(Error::Usage(format!("{reply:?} is not {name}: nothing was done")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reply, check};

    #[test]
    fn only_the_expected_reply_confirms() {
        for (reply, wanted, agreed) in [
            ("yes", Reply::Yes, true),
            ("y", Reply::Yes, true),
            ("", Reply::Yes, false),
            ("nuc1", Reply::Yes, false),
            ("nuc1", Reply::Name("nuc1"), true),
            ("yes", Reply::Name("nuc1"), false),
            ("", Reply::Name("nuc1"), false),
        ] {
            assert_eq!(check(reply, wanted).is_ok(), agreed, "{reply:?} {wanted:?}");
        }
    }
}
