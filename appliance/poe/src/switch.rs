//! Port of a switch as the power supply of one machine.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::request::{Line, Requests};
use crate::{Error, ExpectedName, Login, PortId, PortState, Reading};

/// Time without power in a cycle. The capacitors of a PoE splitter and of a machine must be empty,
/// or the firmware does not notice the loss of power.
const OFF_TIME: Duration = Duration::from_secs(10);
/// Maximum time from a request to switch a port off until the switch reports the port off.
const OFF_MAX: Duration = Duration::from_secs(15);
/// Interval between two readings during [`OFF_MAX`].
const POLL: Duration = Duration::from_millis(500);

/// Connection data of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Host name or IP address of the switch, IPv6 without brackets.
    pub host: String,
    /// UDP port of SNMP; see [`Switch::PORT`].
    pub udp_port: u16,
    /// Login at the switch.
    pub login: Login,
    /// Port that powers the machine.
    pub port: PortId,
    /// Name that the port must have; `None` without a check.
    pub name: Option<ExpectedName>,
}

/// Port of a switch that powers one machine.
pub struct Switch {
    line: Arc<Line>,
    options: Options,
}

impl Switch {
    /// Standard UDP port of SNMP (RFC 3417 section 3.2).
    pub const PORT: u16 = 161;

    /// Creates the port. Sends nothing. All ports of a switch should share `line`.
    ///
    /// # Errors
    /// The login exceeds a limit of the protocol.
    pub fn new(line: Arc<Line>, options: Options) -> Result<Self, Error> {
        options.login.check()?;
        Ok(Self { line, options })
    }

    /// Reads the state of the port.
    ///
    /// # Errors
    /// The switch does not respond, refuses the login, has no such port, or reports another name of
    /// the port.
    pub async fn state(&self) -> Result<PortState, Error> {
        let Options { port, name, .. } = &self.options;
        let requests = self.requests();
        let what = format!("report port {port}");
        let objects = Reading::objects(*port, name.as_ref());
        let reading = Reading::of(*port, &requests.get(&objects, &what).await?);
        if !reading.exists() {
            return Err(self.missing(&requests).await?);
        }
        if let Some(name) = name
            && let Some(found) = reading.other_names(name)
        {
            let found = match found.is_empty() {
                true => "none".to_owned(),
                false => found.join(", "),
            };
            return Err(Error::OtherName { port: *port, expected: name.text.clone(), found });
        }
        Ok(reading.state())
    }

    /// Requests the port on. Success does not confirm that a device draws power: see
    /// [`Switch::state`]. A port with a fault is switched off first, because some switches hold a
    /// fault until then.
    ///
    /// # Errors
    /// As [`Switch::state`], or the switch refuses the request.
    pub async fn switch_on(&self) -> Result<(), Error> {
        match self.state().await? {
            PortState::Delivering { .. } => Ok(()),
            PortState::Faulty(_) => self.off_and_on(Duration::ZERO).await,
            PortState::Off | PortState::Searching(_) | PortState::Unclear { .. } => {
                self.set(true).await
            }
        }
    }

    /// Requests the port off. Success does not confirm the new state: see [`Switch::state`].
    ///
    /// # Errors
    /// As [`Switch::state`], the state of the port is not clear, or the switch refuses the request.
    pub async fn switch_off(&self) -> Result<(), Error> {
        match self.state().await? {
            PortState::Off => Ok(()),
            state @ PortState::Unclear { .. } => {
                Err(Error::Unclear { port: self.options.port, state })
            }
            _ => self.set(false).await,
        }
    }

    /// Switches the port off, waits until the switch reports the port off and for [`OFF_TIME`], and
    /// requests the port on. RFC 3621 has no request for a cycle: if the box loses its power
    /// meanwhile, the port stays off until it is switched on.
    ///
    /// # Errors
    /// As [`Switch::switch_off`]. [`Error::BrokenCycle`] may leave the port off.
    pub async fn cycle(&self) -> Result<(), Error> {
        match self.state().await? {
            state @ PortState::Unclear { .. } => {
                Err(Error::Unclear { port: self.options.port, state })
            }
            _ => self.off_and_on(OFF_TIME).await,
        }
    }

    async fn off_and_on(&self, off_time: Duration) -> Result<(), Error> {
        let port = self.options.port;
        let broken = |source| Error::BrokenCycle { port, source: Box::new(source) };
        self.set(false).await.map_err(|error| match error.is_silence() {
            true => broken(error),
            false => error,
        })?;
        self.wait_until_off().await.map_err(broken)?;
        sleep(off_time).await;
        self.set(true).await.map_err(broken)
    }

    async fn wait_until_off(&self) -> Result<(), Error> {
        let started = Instant::now();
        loop {
            let state = self.state().await?;
            if state == PortState::Off {
                return Ok(());
            }
            let after = started.elapsed();
            if after >= OFF_MAX {
                return Err(Error::StillOn { port: self.options.port, state, after });
            }
            sleep(POLL).await;
        }
    }

    async fn set(&self, on: bool) -> Result<(), Error> {
        let port = self.options.port;
        let what = format!("switch port {port} {}", if on { "on" } else { "off" });
        let (object, value) = Reading::switch(port, on);
        self.requests().set(&object, &value, &what).await
    }

    /// Returns the error of a port that the switch does not report.
    async fn missing(&self, requests: &Requests<'_>) -> Result<Error, Error> {
        let found = requests.instances(&Reading::ports(), "list its PoE ports").await?;
        let ports: Vec<PortId> = found.iter().filter_map(Reading::port_of).collect();
        Ok(match ports.is_empty() {
            true => Error::NoPorts,
            false => Error::NoPort { port: self.options.port, known: ranges(&ports) },
        })
    }

    fn requests(&self) -> Requests<'_> {
        let Options { host, udp_port, login, .. } = &self.options;
        Requests { line: &self.line, host, port: *udp_port, login }
    }
}

/// Returns sorted ports as text, such as `1.1 to 1.24, 2.1`.
fn ranges(ports: &[PortId]) -> String {
    let is_next =
        |a: &PortId, b: &PortId| a.group == b.group && a.index.checked_add(1) == Some(b.index);
    let texts = ports.chunk_by(is_next).filter_map(|range| match range {
        [one] => Some(one.to_string()),
        [first, .., last] => Some(format!("{first} to {last}")),
        [] => None,
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_ports_are_one_range() {
        let port = |group, index| PortId { group, index };
        let ports = [port(1, 1), port(1, 2), port(1, 3), port(1, 5), port(2, 6), port(2, 7)];
        assert_eq!(ranges(&ports), "1.1 to 1.3, 1.5, 2.6 to 2.7");
    }
}
