//! Opening of a session of IPMI 1.5, for a BMC that states that it has no IPMI 2.0.

use std::time::Duration;

use super::link::{Link, QUICK, Waits};
use super::random;
use crate::command::session::{AuthCapabilities, GetAuthCapabilities};
use crate::handshake::Login;
use crate::handshake::legacy::{LegacyHandshake, LegacyProgress, LegacySeed};
use crate::message::Command as _;
use crate::session::Session;
use crate::{Error, Malformed, Refusal};

/// Waits for the answer to the login. A wrong password has no answer, and each repetition may count
/// as another attempt.
const LOGIN: Waits = &[Duration::from_millis(1500), Duration::from_millis(2500)];

/// Requests the versions and authentication types of the BMC. The answer is not authenticated.
pub(super) async fn capabilities(link: &mut Link) -> Result<AuthCapabilities, Error> {
    let refused = match link.ask(&GetAuthCapabilities { is_extended: true }, 0).await? {
        Ok(capabilities) => return Ok(capabilities),
        Err(refusal) => refusal,
    };
    tracing::debug!(bmc = %link.address(), %refused, "request with the fields of IPMI 2.0 refused");
    let plain = link.ask(&GetAuthCapabilities { is_extended: false }, 1).await?;
    plain.map_err(|refusal| command_refused(link, GetAuthCapabilities::NAME, refusal))
}

/// Opens a session of IPMI 1.5 with MD5.
pub(super) async fn open(
    link: &mut Link,
    login: &Login,
    username: &str,
    capabilities: AuthCapabilities,
) -> Result<Session, Error> {
    let address = link.address().clone();
    if !capabilities.has_md5 {
        return Err(Error::NoAuthentication { address });
    }
    let [sequence] = random();
    // Half of the numbers, so that the BMC never counts over the end in one session.
    let seed = LegacySeed { sequence, from_bmc: u32::from_le_bytes(random()) >> 1 };
    let Some(mut handshake) = LegacyHandshake::new(login, seed) else {
        let reason = "the password is longer than the 16 bytes of IPMI 1.5";
        return Err(Error::Credentials { address, reason });
    };
    loop {
        let step = handshake.step();
        let waits = if handshake.is_activating() { LOGIN } else { QUICK };
        let transmit = |handshake: &mut LegacyHandshake| handshake.transmit();
        let accept = LegacyHandshake::receive;
        match link.exchange(step, waits, &mut handshake, transmit, accept).await {
            Ok(LegacyProgress::Next) => {}
            Ok(LegacyProgress::Open(session)) => {
                tracing::debug!(bmc = %address, "session of IPMI 1.5 opened");
                return Ok(*session);
            }
            Ok(LegacyProgress::Unauthenticated { farewell }) => {
                link.try_send(&farewell);
                return Err(Error::Unauthenticated { address });
            }
            Ok(LegacyProgress::Refused(refusal)) => {
                return Err(refused(link, step, refusal, username));
            }
            Err(Error::Timeout { .. }) if handshake.is_activating() => {
                return Err(Error::LoginIgnored { address, username: username.to_owned() });
            }
            // No other answer came: the BMC signs with another password.
            Err(Error::Hostile { source: Malformed::Unverified(_), .. })
                if handshake.is_activating() =>
            {
                return Err(Error::WrongPassword { address, username: username.to_owned() });
            }
            Err(error) => return Err(error),
        }
    }
}

/// Converts a refusal of the login.
fn refused(link: &Link, step: &'static str, refusal: Refusal, username: &str) -> Error {
    let (address, username) = (link.address().clone(), username.to_owned());
    if refusal.refuses_user() {
        return Error::WrongPassword { address, username };
    }
    if refusal.refuses_privilege() {
        return Error::Privilege { address, username, status: refusal.to_string() };
    }
    command_refused(link, step, refusal)
}

fn command_refused(link: &Link, command: &'static str, refusal: Refusal) -> Error {
    Error::CommandRefused { address: link.address().clone(), command, refusal }
}
