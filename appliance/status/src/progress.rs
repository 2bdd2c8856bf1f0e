//! Progress of a workflow's running action. Sent to clients, never stored.

use serde::{Deserialize, Serialize};

/// Progress of a running action, as
/// `/apis/tinbox.dev/v1alpha1/namespaces/NS/workflows/NAME/progress` reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Name of the action.
    pub action: String,
    /// Object that the action processes now; may be empty.
    pub message: String,
    /// Bytes processed so far.
    pub bytes_done: u64,
    /// Bytes in total; 0 if unknown.
    pub bytes_total: u64,
    /// Milliseconds since the action began.
    pub millis: u64,
}

impl Progress {
    /// Returns the progress in percent, rounded down; `None` if the total is unknown.
    pub fn percent(&self) -> Option<u8> {
        if self.bytes_total == 0 {
            return None;
        }
        let done = u128::from(self.bytes_done.min(self.bytes_total));
        u8::try_from(done * 100 / u128::from(self.bytes_total)).ok()
    }

    /// Returns the average throughput since the action began; `None` before the first byte.
    pub fn bytes_per_second(&self) -> Option<u64> {
        let rate = u128::from(self.bytes_done) * 1000 / u128::from(self.millis.max(1));
        (self.bytes_done > 0 && self.millis > 0).then(|| u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Returns the remaining milliseconds at the average rate; `None` if rate or total is unknown.
    pub fn millis_left(&self) -> Option<u64> {
        let rate = self.bytes_per_second().filter(|rate| *rate > 0)?;
        let left = self.bytes_total.checked_sub(self.bytes_done)?;
        let millis = u128::from(left) * 1000 / u128::from(rate);
        (self.bytes_total > 0).then(|| u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// Formats the progress: `stream-image 40 %, 120 MiB of 300 MiB, 45 MiB/s, 4.0 s left`.
    pub fn line(&self) -> String {
        let mut line = crate::plain(&self.action);
        match self.percent() {
            Some(percent) => line.push_str(&format!(
                " {percent} %, {} of {}",
                stdx::bytes(self.bytes_done),
                stdx::bytes(self.bytes_total)
            )),
            None => line.push_str(&format!(" {}", stdx::bytes(self.bytes_done))),
        }
        if let Some(rate) = self.bytes_per_second() {
            line.push_str(&format!(", {}/s", stdx::bytes(rate)));
        }
        if let Some(left) = self.millis_left().filter(|left| *left > 0) {
            line.push_str(&format!(", {} left", stdx::seconds(left)));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    fn progress(bytes_done: u64, bytes_total: u64, millis: u64) -> Progress {
        let action = "stream-image".to_owned();
        Progress { action, message: String::new(), bytes_done, bytes_total, millis }
    }

    #[test]
    fn lines() {
        let cases = [
            (progress(0, 0, 0), "stream-image 0 B"),
            (progress(0, 300 << 20, 0), "stream-image 0 %, 0 B of 300 MiB"),
            (
                progress(120 << 20, 300 << 20, 2_000),
                "stream-image 40 %, 120 MiB of 300 MiB, 60 MiB/s, 3.0 s left",
            ),
            (progress(5 << 20, 0, 1_000), "stream-image 5.0 MiB, 5.0 MiB/s"),
            (
                progress(300 << 20, 300 << 20, 3_000),
                "stream-image 100 %, 300 MiB of 300 MiB, 100 MiB/s",
            ),
        ];
        for (progress, line) in cases {
            assert_eq!(progress.line(), line);
        }
    }

    #[test]
    fn odd_numbers_do_no_harm() {
        let most = progress(u64::MAX, u64::MAX, 1);
        assert_eq!(most.percent(), Some(100));
        assert_eq!(progress(2, 1, 1).percent(), Some(100));
        assert_eq!(progress(2, 1, 1).millis_left(), None);
        assert_eq!(progress(u64::MAX, 3, u64::MAX).percent(), Some(100));
        assert!(!most.line().is_empty());
    }

    #[test]
    fn the_wire_is_camel_case_and_forgiving() {
        let read: Progress =
            serde_json::from_str(r#"{"action":"a","bytesDone":1,"bytesTotal":2,"new":3}"#).unwrap();
        assert_eq!(read, Progress { action: "a".into(), ..progress(1, 2, 0) });
        assert!(serde_json::to_string(&read).unwrap().contains("bytesDone"));
    }
}
