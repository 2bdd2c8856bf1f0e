//! Clock of an API server, as the header `Date` of its responses shows it (RFC 9110 section 6.6.1).

use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, header};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Time of the last response, and the time since; clones share it.
#[derive(Debug, Clone, Default)]
pub struct ServerClock(Arc<Mutex<Option<(Timestamp, Instant)>>>);

impl ServerClock {
    /// Keeps the time of a response. A response without a valid time changes nothing.
    pub fn read(&self, headers: &HeaderMap) {
        let date = headers.get(header::DATE).and_then(|value| value.to_str().ok());
        let parser = jiff::fmt::rfc2822::DateTimeParser::new();
        let Some(Ok(time)) = date.map(|text| parser.parse_timestamp(text)) else { return };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((time, Instant::now()));
    }

    /// Returns the time of the server, with an error of a second and the duration of a response;
    /// `None` before the first response.
    pub fn now(&self) -> Option<Timestamp> {
        let (time, at) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let passed = SignedDuration::try_from(at.elapsed()).ok()?;
        time.checked_add(passed).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, HeaderValue, header};

    use super::ServerClock;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_the_last_response_goes_on() {
        let clock = ServerClock::default();
        assert_eq!(clock.now(), None);
        let read = |text: &[u8]| {
            let value = HeaderValue::from_bytes(text).unwrap();
            clock.read(&HeaderMap::from_iter([(header::DATE, value)]));
            clock.now().map(|time| time.to_string())
        };
        // The example of RFC 9110.
        let time = Some("1994-11-06T08:49:37Z".to_owned());
        assert_eq!(read(b"Sun, 06 Nov 1994 08:49:37 GMT"), time);
        assert_eq!(read(b"yesterday"), time);
        assert_eq!(read(b"\xff"), time);
        clock.read(&HeaderMap::new());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(clock.now().unwrap().to_string(), "1994-11-06T08:50:37Z");
    }
}
