//! Runs blocking work on separate threads.

use crate::Error;
use crate::disks::select;

/// Runs `work` on a thread for blocking work. A panic becomes [`Error::Crashed`] with `part`.
pub async fn blocking<T: Send + 'static>(
    part: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(select::in_scope(work)).await {
        Ok(result) => result,
        Err(error) => Err(crashed(part, error)),
    }
}

/// Converts the panic or abort of a task to [`Error::Crashed`].
pub fn crashed(part: &'static str, error: tokio::task::JoinError) -> Error {
    let reason = match error.try_into_panic() {
        Ok(payload) => panic_text(&*payload),
        Err(error) => error.to_string(),
    };
    Error::Crashed { part, reason }
}

/// Returns the message in a panic's payload.
fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason given".to_owned())
}
