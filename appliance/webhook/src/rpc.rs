//! Webhook of the owner, called as Rufio's provider `rpc` does
//! (bmclib v2.3.5 `providers/rpc`): the same headers, bodies and signatures.

mod signature;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use stdx::Secret;

pub use self::signature::Algorithm;
use self::signature::{Signed, sign};
use crate::client::{Call, Client, Login, Tls, server, url};
use crate::{Error, Power};

/// Maximum length of a message of the server in an error, in characters.
const MESSAGE_CHARS_MAX: usize = 200;
/// Format of a timestamp that the box writes, as a layout of Go's `time` package.
const RFC_3339: &str = "2006-01-02T15:04:05Z07:00";

/// Options of a webhook. The defaults are Rufio's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcOptions {
    /// URL of the webhook.
    pub consumer_url: String,
    /// HTTP method; POST by default.
    pub method: String,
    /// Value of `Content-Type`; JSON by default.
    pub content_type: String,
    /// Headers that each request has.
    pub static_headers: Vec<(String, String)>,
    /// Layout of the timestamp; only that of RFC 3339 is supported.
    pub timestamp_format: String,
    /// Header with the time of the request.
    pub timestamp_header: String,
    /// Header with the signature; the algorithm is appended to its name.
    pub signature_header: String,
    /// True if the algorithm is appended to the name of the signature's header: `-256`.
    pub has_algorithm_in_header: bool,
    /// True if a signature begins with its algorithm: `sha256=`.
    pub has_algorithm_prefix: bool,
    /// Headers whose values are signed after the body.
    pub signed_headers: Vec<String>,
    /// Secrets, each of which makes one signature.
    pub secrets: Vec<(Algorithm, Secret)>,
}

impl Default for RpcOptions {
    fn default() -> Self {
        Self {
            consumer_url: String::new(),
            method: "POST".to_owned(),
            content_type: "application/json".to_owned(),
            static_headers: Vec::new(),
            timestamp_format: RFC_3339.to_owned(),
            timestamp_header: "X-Rufio-Timestamp".to_owned(),
            signature_header: "X-Rufio-Signature".to_owned(),
            has_algorithm_in_header: true,
            has_algorithm_prefix: true,
            signed_headers: vec!["X-Rufio-Timestamp".to_owned()],
            secrets: Vec::new(),
        }
    }
}

/// Webhook that switches one machine.
pub struct Rpc {
    client: Client,
    url: Uri,
    method: Method,
    options: RpcOptions,
    host: String,
}

impl Rpc {
    /// Creates a webhook for the machine that the server knows as `host`. Sends nothing.
    ///
    /// # Errors
    /// An option is not valid.
    pub fn new(options: RpcOptions, host: &str, tls: Tls) -> Result<Self, Error> {
        let invalid = |field, reason: &str| Error::Invalid { field, reason: reason.to_owned() };
        if ![RFC_3339, "RFC3339"].contains(&options.timestamp_format.as_str()) {
            return Err(invalid("request.timestampFormat", "expected the format of RFC 3339"));
        }
        let url = url("consumerURL", &options.consumer_url)?;
        let method = options.method.parse();
        let method = method.map_err(|_| invalid("request.httpMethod", "expected a method"))?;
        let client = Client::new(tls, Login::None)?;
        let rpc = Self { client, url, method, options, host: host.to_owned() };
        // Headers are checked before the first request.
        rpc.call("ping", None, Timestamp::UNIX_EPOCH)?;
        Ok(rpc)
    }

    /// Reads the power state of the machine.
    ///
    /// # Errors
    /// The webhook cannot be reached or reports an error, or the result is not a text.
    pub async fn power(&self) -> Result<Power, Error> {
        let method = "getPowerState";
        self.read_power(&self.client.send(&self.call(method, None, Timestamp::now())?).await?)
    }

    /// Reads the power state from the response of the webhook.
    ///
    /// # Errors
    /// The response is not JSON, has an error, or its result is not a text.
    pub fn read_power(&self, response: &[u8]) -> Result<Power, Error> {
        let method = "getPowerState";
        match self.result(method, response)? {
            Value::String(state) => Ok(state_of(&state)),
            other => Err(Error::Response {
                server: server(&self.url),
                what: method.to_owned(),
                reason: format!("expected a result such as \"on\", found {}", kind(&other)),
            }),
        }
    }

    /// Requests a power state: `on`, `off`, `soft`, `cycle` or `reset`.
    ///
    /// # Errors
    /// The webhook cannot be reached or reports an error.
    pub async fn set_power(&self, state: &str) -> Result<(), Error> {
        self.send("setPowerState", json!({ "state": state })).await
    }

    /// Sets the boot device: `pxe`, `disk`, `bios`, `cdrom` or `safe`.
    ///
    /// # Errors
    /// The webhook cannot be reached or reports an error.
    pub async fn set_boot_device(
        &self,
        device: &str,
        persistent: bool,
        efi: bool,
    ) -> Result<(), Error> {
        let params = json!({ "device": device, "persistent": persistent, "efiBoot": efi });
        self.send("setBootDevice", params).await
    }

    async fn send(&self, method: &str, params: Value) -> Result<(), Error> {
        let body = self.client.send(&self.call(method, Some(params), Timestamp::now())?).await?;
        match body.is_empty() {
            true => Ok(()),
            false => self.result(method, &body).map(drop),
        }
    }

    /// Returns the result of a response.
    fn result(&self, method: &str, response: &[u8]) -> Result<Value, Error> {
        let mut answer: Value = serde_json::from_slice(response).map_err(|error| {
            let (server, what) = (server(&self.url), method.to_owned());
            Error::Response { server, what, reason: error.to_string() }
        })?;
        let code = &answer["error"]["code"];
        if !code.is_null() && code.as_f64() != Some(0.0) {
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            let message = message.chars().filter(|char| !char.is_control());
            let message: String = message.take(MESSAGE_CHARS_MAX).collect();
            return Err(Error::Refused {
                server: server(&self.url),
                what: method.to_owned(),
                message: format!("{message} (code {code})"),
            });
        }
        // An index would panic for an answer that is not a JSON object.
        Ok(answer.get_mut("result").map(Value::take).unwrap_or_default())
    }

    /// Returns the signed request for `method` at the time `now`.
    fn call(&self, method: &str, params: Option<Value>, now: Timestamp) -> Result<Call, Error> {
        let id = i64::try_from(now.as_nanosecond()).unwrap_or_default();
        let mut body = json!({ "id": id, "host": self.host, "method": method });
        if let Some(params) = params {
            body["params"] = params;
        }
        let body = body.to_string();
        let mut headers = HeaderMap::new();
        let options = &self.options;
        for (name, value) in &options.static_headers {
            let (name, value) = header("request.staticHeaders", name, value)?;
            headers.append(name, value);
        }
        let (_, content) = header("request.httpContentType", "a", &options.content_type)?;
        headers.insert(CONTENT_TYPE, content);
        let time = now.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let (name, value) = header("request.timestampHeader", &options.timestamp_header, &time)?;
        headers.insert(name, value);
        let signed = Signed::of(&body, &headers, &options.signed_headers);
        for (name, value) in sign(options, &signed) {
            let (name, value) = header("signature.headerName", &name, &value)?;
            headers.insert(name, value);
        }
        let (method_, uri) = (self.method.clone(), self.url.clone());
        let (body, what) = (Bytes::from(body), method.to_owned());
        Ok(Call { method: method_, uri, headers, body, what })
    }
}

fn header(
    field: &'static str,
    name: &str,
    value: &str,
) -> Result<(HeaderName, HeaderValue), Error> {
    let invalid = || Error::Invalid { field, reason: "expected a header of HTTP".to_owned() };
    let name = HeaderName::try_from(name).map_err(|_| invalid())?;
    Ok((name, HeaderValue::try_from(value).map_err(|_| invalid())?))
}

/// Returns the state that a text contains as a word. Rufio looks for the letters only, and reads
/// `connecting` as on.
fn state_of(text: &str) -> Power {
    let text = text.to_ascii_lowercase();
    let words: Vec<&str> = text.split(|char: char| !char.is_ascii_alphabetic()).collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    match (has(&["on", "poweredon", "running"]), has(&["off", "poweredoff", "stopped"])) {
        (true, false) => Power::On,
        (false, true) => Power::Off,
        _ => Power::Unknown,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
