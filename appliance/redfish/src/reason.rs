//! Reason of a refusal, as the service writes it (DSP0266 §8.6, `@Message.ExtendedInfo`).

use std::fmt;

use serde_json::Value;

use crate::document::text;

/// Maximum length of a shown message, in characters.
const MESSAGE_CHARS_MAX: usize = 300;
/// Maximum messages of one response that are read.
const MESSAGES_MAX: usize = 16;
/// Ends of message identifiers that say only that there is another message, or none.
const EMPTY_IDS: [&str; 4] = ["GeneralError", "Success", "ExtendedInfo", "ExtendedError"];

/// Messages of an error response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reason {
    /// Identifier of the message, such as `Base.1.8.PropertyValueNotInList`; may be empty.
    pub id: String,
    /// Message as the service writes it, in one line; may be empty.
    pub message: String,
    /// Identifiers, messages, arguments and property names of all messages.
    all: String,
}

impl Reason {
    /// Reads the body of a response of any status and form.
    pub fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(json) => Self::of(&json),
            Err(_) => Self { message: plain(&String::from_utf8_lossy(body)), ..Self::default() },
        }
    }

    /// Reads an error object, or a resource with messages such as a Task.
    pub fn of(json: &Value) -> Self {
        let places = ["/error/@Message.ExtendedInfo", "/@Message.ExtendedInfo", "/Messages"];
        let messages: Vec<&Value> = places
            .iter()
            .filter_map(|place| json.pointer(place))
            .flat_map(|found| match found {
                Value::Array(messages) => messages.iter().collect(),
                // Some firmware writes one object instead of an array.
                other => vec![other],
            })
            .take(MESSAGES_MAX)
            .collect();
        let id = |message: &&Value| text(message, "/MessageId").unwrap_or_default().to_owned();
        let is_empty = |message: &&Value| EMPTY_IDS.iter().any(|end| id(message).ends_with(end));
        let shown = messages.iter().find(|it| !is_empty(it)).or(messages.first());
        let general = || text(json, "/error/message").unwrap_or_default();
        let all: Vec<String> = messages.iter().map(|message| message.to_string()).collect();
        Self {
            id: brief(&shown.map(id).unwrap_or_default()),
            message: brief(shown.and_then(|it| text(it, "/Message")).unwrap_or_else(general)),
            all: all.join(" "),
        }
    }

    /// Returns true if the reason of a refusal is the permission of the user, or is not given.
    pub fn is_about_rights(&self) -> bool {
        self.id.is_empty() || self.names("Privilege") || self.names("AccessDenied")
    }

    /// Returns true if a message is about `word`: an identifier, an argument or a property.
    pub fn names(&self, word: &str) -> bool {
        self.all.contains(word) || self.id.contains(word) || self.message.contains(word)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.id.as_str(), self.message.as_str()) {
            ("", "") => f.write_str("the BMC gave no reason"),
            ("", message) => f.write_str(message),
            (id, "") => f.write_str(id),
            (id, message) => write!(f, "{id}: {message}"),
        }
    }
}

/// Returns the text in one line of limited length.
pub fn brief(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|char| !char.is_control()).take(MESSAGE_CHARS_MAX).collect()
}

/// Returns the text of a page without its tags.
fn plain(page: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for char in page.chars() {
        match char {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push(' ');
            }
            char if !is_tag => text.push(char),
            _ => {}
        }
    }
    brief(&text)
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn the_most_telling_message_is_shown() {
        let array = br#"{"error": {"code": "Base.1.0.GeneralError", "message": "see below",
            "@Message.ExtendedInfo": [{"MessageId": "Base.1.0.GeneralError"}, {"MessageId":
            "Base.1.8.PropertyUnknown", "Message": "No\nsuch property.", "MessageArgs":
            ["BootSourceOverrideMode"]}]}}"#;
        let reason = Reason::read(array);
        assert_eq!(reason.to_string(), "Base.1.8.PropertyUnknown: No such property.");
        assert!(reason.names("BootSourceOverrideMode") && !reason.names("Enabled"));
        let object = br#"{"error": {"@Message.ExtendedInfo": {"MessageId": "iLO.2.8.Busy"}}}"#;
        assert_eq!(Reason::read(object).to_string(), "iLO.2.8.Busy");
        let general = br#"{"error": {"code": "x", "message": "broken"}}"#;
        assert_eq!(Reason::read(general).to_string(), "broken");
        let page = b"<html><body><h1>404</h1>Not here</body></html>";
        assert_eq!(Reason::read(page).to_string(), "404 Not here");
        assert_eq!(Reason::read(b"").to_string(), "the BMC gave no reason");
    }
}
