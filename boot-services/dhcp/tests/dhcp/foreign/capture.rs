//! Captures the answers of DHCP servers on the box's interface with tcpdump, with the kernel's time
//! stamps.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::rack::Wire;

/// Capture that runs until dropped.
pub struct Capture {
    process: Child,
    text: tempfile::NamedTempFile,
}

impl Capture {
    /// Starts tcpdump, and waits until it captures.
    pub fn start(wire: &Wire) -> Self {
        let text = tempfile::NamedTempFile::new().unwrap();
        let mut process = Command::new("ip")
            .args(["netns", "exec", &wire.box_space, "tcpdump", "-i", "box0", "-n", "-tt", "-l"])
            .args(["--immediate-mode", "-Z", "root", "udp src port 67"])
            .stdout(File::options().write(true).open(text.path()).unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ip (iproute2) and tcpdump are installed");
        let said = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = said.map_while(Result::ok);
        assert!(said.any(|line| line.contains("listening on box0")), "tcpdump does not listen");
        // The rest is of no interest, and must not block tcpdump.
        std::thread::spawn(move || said.for_each(drop));
        Self { process, text }
    }

    /// Returns the times of all answers of `server`, since the Unix epoch.
    pub fn answers(&self, server: Ipv4Addr) -> Vec<Duration> {
        let text = std::fs::read_to_string(self.text.path()).unwrap();
        let from = format!(" IP {server}.67 > ");
        let stamp =
            |line: &str| line.split_once(&from)?.0.parse().ok().map(Duration::from_secs_f64);
        text.lines().filter_map(stamp).collect()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
