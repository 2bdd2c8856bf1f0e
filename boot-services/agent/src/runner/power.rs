//! Powers the machine off when the box requests it.

use std::convert::Infallible;
use std::time::Duration;

use agent_rpc::client::{Client, Error as CallError};
use stdx::Backoff;

use super::Host;
use crate::Error;
use crate::outcome::Leave;

/// Delay after the first call without a response; doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Maximum delay between two calls, and so the maximum time until a request is seen.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Waits for requests of the box to power the machine off, and obeys them. A running action is
/// cut off: the request comes from a person or a controller that switches the machine off as a
/// management controller does.
///
/// # Errors
/// The server has no such requests: it is a stock Tinkerbell server. The loop does not end
/// otherwise.
pub async fn obey(client: &Client, host: &impl Host) -> Result<Infallible, Error> {
    let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
    loop {
        match client.power_off_request().await {
            Ok(Some(request)) => {
                power_off(client, host, &request).await;
                // A machine that stays on must not load the box.
                tokio::time::sleep(backoff.next_wait()).await;
            }
            Ok(None) => backoff.reset(),
            Err(error @ CallError::Unsupported { .. }) => return Err(Error::Service(error)),
            Err(_) => tokio::time::sleep(backoff.next_wait()).await,
        }
    }
}

/// Powers off after the box has answered the confirmation: a request that has ended meanwhile is
/// not obeyed.
async fn power_off(client: &Client, host: &impl Host, request: &str) {
    match client.confirm_power_off(request).await {
        Ok(true) => {
            tracing::info!("the box requests that the machine powers off");
            if let Err(error) = host.leave(Leave::PowerOff) {
                tracing::error!(reason = %stdx::chain(&error), "cannot power off");
            }
        }
        Ok(false) => tracing::info!("the request to power off has ended"),
        Err(error) => {
            let reason = stdx::chain(&error);
            tracing::warn!(reason, "cannot confirm the request to power off");
        }
    }
}
