//! `capi init`: the commands for a workstation that has clusterctl.

mod capt;

use status::view::cluster_api::commands::{from_copy, from_registry};

use crate::commands::Context;
use crate::error::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// The box is the provider: kinds and roles, and no program in the management cluster
    Box,
    /// The stock provider (CAPT) in the management cluster uses the box as its external Tinkerbell
    Capt,
}

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Provider to install
    #[arg(long, value_enum, default_value_t = Mode::Box)]
    mode: Mode,
    #[command(flatten)]
    capt: capt::CaptArguments,
    /// URL of the box's pages as the workstation reaches them [default: port 443 of the host in
    /// your kubeconfig]
    #[arg(long, value_name = "URL")]
    pages: Option<String>,
    /// Host name of the box that begins with "gitlab." and that the workstation can resolve;
    /// clusterctl then reads each version from the box itself [default: copy this version to the
    /// workstation]
    #[arg(long, value_name = "HOST", value_parser = gitlab_host)]
    gitlab: Option<String>,
}

fn gitlab_host(text: &str) -> Result<String, String> {
    let is_host = |char: char| char.is_ascii_alphanumeric() || "-.:".contains(char);
    let is_valid = text.starts_with("gitlab.") && text.chars().all(is_host);
    let expected = "expected a host name that begins with \"gitlab.\", such as gitlab.box.example";
    is_valid.then(|| text.to_owned()).ok_or_else(|| expected.to_owned())
}

impl Arguments {
    /// Refuses options of the other mode.
    fn check(&self) -> Result<(), Error> {
        let (other, option) = match self.mode {
            Mode::Box => ("capt", self.capt.given()),
            Mode::Capt => {
                let all = [("--pages", self.pages.is_some()), ("--gitlab", self.gitlab.is_some())];
                ("box", first_given(&all))
            }
        };
        let wrong = |option| Error::Usage(format!("{option} is an option of --mode {other}"));
        option.map_or(Ok(()), |option| Err(wrong(option)))
    }
}

fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    options.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
}

pub async fn run(context: &Context, arguments: &Arguments) -> Result<(), Error> {
    arguments.check()?;
    if arguments.mode == Mode::Capt {
        return capt::run(context, &arguments.capt).await;
    }
    let authority = super::bundle(&context.authorities);
    let pages = match &arguments.pages {
        Some(pages) => super::checked("--pages", pages.clone())?,
        None => pages(context.client.server()),
    };
    let copy = || from_copy(&pages, &authority);
    let text = arguments.gitlab.as_ref().map_or_else(copy, |host| from_registry(host, &authority));
    context.printer.line(text.trim_end())?;
    context.printer.note("to provision machines, pair the box: tinbox capi pair --help");
    Ok(())
}

/// Returns the URL of the pages at the host of the API's URL.
fn pages(api: &str) -> String {
    let end = api.rfind(':').filter(|at| !api[*at..].contains(['/', ']']));
    api[..end.unwrap_or(api.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::{Arguments, from_copy, from_registry, gitlab_host, pages};
    use crate::error::Error;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn options_of_the_other_mode_are_refused() {
        let check = |line: &str| {
            Line::try_parse_from(format!("init {line}").split(' ')).unwrap().arguments.check()
        };
        for (line, option, other) in [
            ("--mode box --server https://box:6443", "--server", "capt"),
            ("--capt-version v0.7.0", "--capt-version", "capt"),
            ("--machine-host 192.168.7.1", "--machine-host", "capt"),
            ("--credential-file a", "--credential-file", "capt"),
            ("--mode capt --pages https://box", "--pages", "box"),
            ("--mode capt --gitlab gitlab.box", "--gitlab", "box"),
        ] {
            let Err(Error::Usage(why)) = check(line) else { panic!("{line}: not refused") };
            assert_eq!(why, format!("{option} is an option of --mode {other}"), "{line}");
        }
        check("--mode box --pages https://box --gitlab gitlab.box").unwrap();
        check("--mode capt --capt-version 0.7.1 --server https://box --machine-host box").unwrap();
    }

    #[test]
    fn the_pages_are_on_the_host_of_the_api() {
        assert_eq!(pages("https://192.168.7.1:6443"), "https://192.168.7.1");
        assert_eq!(pages("https://[fd00::1]:6443"), "https://[fd00::1]");
        assert_eq!(pages("https://[fd00::1]"), "https://[fd00::1]");
        assert_eq!(pages("https://box.example"), "https://box.example");
    }

    #[test]
    fn a_registry_has_the_name_that_clusterctl_requires() {
        assert!(gitlab_host("gitlab.box.example:8443").is_ok());
        for bad in ["box.example", "gitlab.a b", "https://gitlab.box"] {
            assert!(gitlab_host(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_commands_as_they_are_printed() {
        let copy = from_copy("https://192.168.7.1", "PEM\n");
        let registry = from_registry("gitlab.box.example", "PEM\n");
        golden::check("capi-init.txt", &format!("{copy}\n{registry}"));
    }
}
