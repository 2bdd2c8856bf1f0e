//! `[backup]`: folder on another server, to which the box sends a backup each day.

use http::Uri;
use jiff::civil::Time;
use serde::Deserialize;
use stdx::Secret;

use crate::update::time;

/// Permitted number of backups in the folder.
const KEEP: std::ops::RangeInclusive<usize> = 1..=365;
/// Length and start of a public key of age.
const RECIPIENT: (usize, &str) = (62, "age1");

/// Daily backup on another server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// Required. URL of a folder on a server that accepts files by PUT, such as WebDAV of a NAS:
    /// `https://nas.example/backups`. The folder must exist.
    pub target: String,
    /// Required. Public key of age that the backups are encrypted for: `age1…`. Keep the secret key
    /// elsewhere: the box does not have it.
    pub recipient: String,
    /// User name at the server; only with `https`. Default: no login.
    pub username: Option<String>,
    /// Password of the user.
    pub password: Option<Secret>,
    /// SHA-256 fingerprint of the server's certificate, if no public authority signed it. Default:
    /// a public authority must have signed it.
    pub fingerprint: Option<String>,
    /// Time of the daily backup in the time zone of the box: `02:30`. Default: 24 hours after the
    /// last one.
    pub at: Option<String>,
    /// Number of backups in the folder, 1 to 365. The box deletes its older ones.
    #[serde(default = "keep")]
    pub keep: usize,
}

fn keep() -> usize {
    14
}

impl Backup {
    /// Returns the parsed time of day; `None` if it is not set or not valid.
    pub fn time_of_day(&self) -> Option<Time> {
        self.at.as_deref().and_then(time)
    }

    /// Returns every mistake; each text begins with its key.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let uri: Option<Uri> = self.target.parse().ok();
        let scheme = uri.as_ref().and_then(|uri| uri.host().and(uri.scheme_str()));
        if !matches!(scheme, Some("http" | "https")) || self.target.contains(['@', '?', '#']) {
            problems.push(format!(
                "backup.target: expected a URL such as https://nas.example/backups, without a \
                 login, found {:?}",
                self.target
            ));
        }
        let (length, start) = RECIPIENT;
        let is_word = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
        let key = self.recipient.trim();
        if key.len() != length || !key.starts_with(start) || !key.chars().all(is_word) {
            problems.push(format!(
                "backup.recipient: expected a public key of age-keygen, age1…, found {:?}",
                self.recipient
            ));
        }
        if self.username.is_some() != self.password.is_some() {
            problems.push("backup.username: set username and password, or neither".to_owned());
        }
        if self.username.is_some() && scheme == Some("http") {
            problems.push("backup.username: a login needs a target with https://".to_owned());
        }
        let is_digit = |it: char| it.is_ascii_hexdigit();
        let print = self.fingerprint.as_deref().map(|it| it.replace(':', ""));
        if print.is_some_and(|it| it.len() != 64 || !it.chars().all(is_digit)) {
            let why = "expected the SHA-256 of a certificate, 64 hexadecimal digits";
            problems.push(format!("backup.fingerprint: {why}"));
        }
        if let Some(text) = self.at.as_deref().filter(|text| time(text).is_none()) {
            problems.push(format!("backup.at: expected a time such as \"02:30\", found {text:?}"));
        }
        if !KEEP.contains(&self.keep) {
            let (from, to) = (KEEP.start(), KEEP.end());
            problems.push(format!("backup.keep: {} is not between {from} and {to}", self.keep));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::time;

    use super::Backup;

    const KEY: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";

    fn read(text: &str) -> Backup {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_target_needs_a_url_and_a_key() {
        let backup = read(&format!("target = \"https://nas/dav\"\nrecipient = \"{KEY}\"\n"));
        assert_eq!(backup.problems(), [""; 0]);
        assert_eq!((backup.keep, backup.time_of_day()), (14, None));
        let all = read(&format!(
            "target = \"https://nas/dav\"\nrecipient = \"{KEY}\"\nusername = \"box\"\n\
             password = \"hunter2\"\nfingerprint = \"{}\"\nat = \"2:30\"\nkeep = 30\n",
            "ab:".repeat(31) + "ab"
        ));
        assert_eq!(all.problems(), [""; 0]);
        assert_eq!(all.time_of_day(), Some(time(2, 30, 0, 0)));
        assert!(!format!("{all:?}").contains("hunter2"));
        assert!(toml::from_str::<Backup>("target = \"https://nas\"").is_err(), "without a key");
    }

    #[test]
    fn each_mistake_names_its_key() {
        let wrong = read(
            "target = \"nas/dav\"\nrecipient = \"AGE-SECRET-KEY-1\"\nusername = \"box\"\n\
             fingerprint = \"12\"\nat = \"night\"\nkeep = 0\n",
        );
        let keys: Vec<String> = wrong
            .problems()
            .iter()
            .filter_map(|it| it.split(':').next().map(str::to_owned))
            .collect();
        let expected = ["target", "recipient", "username", "fingerprint", "at", "keep"];
        assert_eq!(keys, expected.map(|key| format!("backup.{key}")));
        let plain = read(&format!(
            "target = \"http://nas/dav\"\nrecipient = \"{KEY}\"\nusername = \"a\"\npassword = \"b\""
        ));
        assert_eq!(plain.problems().len(), 1, "{:?}", plain.problems());
        let login = read(&format!("target = \"https://a:b@nas/\"\nrecipient = \"{KEY}\""));
        assert_eq!(login.problems().len(), 1);
    }
}
