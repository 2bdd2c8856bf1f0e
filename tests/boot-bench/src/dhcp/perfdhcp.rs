//! Load from Kea's perfdhcp, and its report.

use std::path::Path;

use anyhow::{Context as _, Result};
use peers::find;

use super::wire::{SERVER, Wire};

/// Load for a server.
pub enum Load<'a> {
    /// Exchanges started per second, for [`SECONDS`]: each by a new machine, or by a random machine
    /// of a file.
    Rate { per_second: u32, machines: Option<&'a Path> },
    /// Machines that are switched on at once and retry, with growing pauses, until they have their
    /// addresses.
    Avalanche { machines: u32 },
}

/// Duration of a constant rate, in seconds.
pub const SECONDS: u32 = 3;
/// Time to wait for answers after the last request, in microseconds.
const WAIT: &str = "500000";

/// Figures in perfdhcp's report.
#[derive(Debug, PartialEq)]
pub struct Said {
    /// Complete exchanges, of four messages.
    pub served: f64,
    /// Share of the started exchanges that were not completed.
    pub lost: f64,
    /// Duration of an avalanche, in seconds.
    pub took: f64,
}

impl Load<'_> {
    /// Runs perfdhcp.
    ///
    /// # Errors
    /// perfdhcp is missing, or its report is malformed.
    pub fn run(&self, wire: &Wire) -> Result<Said> {
        let program = find("perfdhcp", "kea-admin")?;
        let mut command = wire.client(&program.display().to_string());
        command.args(["-4", "-l", "bench1", "-W", WAIT]);
        match self {
            Self::Rate { per_second, machines } => {
                let count = (per_second * SECONDS).to_string();
                command.args(["-r", &per_second.to_string(), "-p", &SECONDS.to_string()]);
                match machines {
                    Some(file) => command.arg("-M").arg(file),
                    None => command.args(["-R", &count]),
                };
            }
            Self::Avalanche { machines } => {
                command.args(["--scenario", "avalanche", "-R", &machines.to_string()]);
            }
        }
        let output = command.arg(SERVER.to_string()).output().context("cannot run perfdhcp")?;
        let text = String::from_utf8_lossy(&output.stdout);
        // The exit status of perfdhcp also reports a failure when an exchange was lost.
        read(&text).with_context(|| {
            format!("perfdhcp said: {text}{}", String::from_utf8_lossy(&output.stderr))
        })
    }
}

fn read(text: &str) -> Option<Said> {
    let after =
        |text: &'_ str, words: &str| text.split_once(words).map(|(_, rest)| rest.to_owned());
    let number = |text: &str, words: &str| -> Option<f64> {
        after(text, words)?.split_whitespace().next()?.parse().ok()
    };
    let begun = number(&after(text, "DISCOVER-OFFER***")?, "sent packets:")?;
    let served = number(&after(text, "REQUEST-ACK***")?, "received packets:")?;
    let took = after(text, "It took ").and_then(|rest| seconds(rest.split(' ').next()?));
    Some(Said { served, lost: 1.0 - served / begun, took: took.unwrap_or(f64::NAN) })
}

/// Parses a time such as `00:00:03.064922`.
fn seconds(text: &str) -> Option<f64> {
    text.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Said, read, seconds};

    #[test]
    fn reads_what_perfdhcp_says() {
        let text = "***Statistics for: DISCOVER-OFFER***\nsent packets: 1000\n\
                    received packets: 900\n***Statistics for: REQUEST-ACK***\n\
                    sent packets: 900\nreceived packets: 750\ndrops: 150\n";
        let said = read(text).unwrap();
        assert_eq!((said.served, said.lost), (750.0, 0.25));
        assert!(said.took.is_nan());
        let text = format!("{text}\nIt took 00:01:03.500000 to provision 1000 clients. \n");
        assert_eq!(read(&text), Some(Said { took: 63.5, ..said }));
        assert_eq!(read("Error: interface bench1 is unknown"), None);
        assert_eq!(seconds("soon"), None);
    }
}
