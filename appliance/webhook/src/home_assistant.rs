//! Switch of Home Assistant, by its REST API. Rufio's `homeassistant` has the same options.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode, Uri};
use serde::Deserialize;
use serde_json::json;
use stdx::Secret;

use crate::client::{Call, Client, Login, Tls, server, url};
use crate::{Error, Power};

/// Maximum length of the name of an entity, in characters.
const ENTITY_CHARS_MAX: usize = 255;

/// Switch of Home Assistant that powers one machine.
pub struct HomeAssistant {
    client: Client,
    /// URL of the API without a slash at its end: `http://10.0.0.5:8123`.
    base: String,
    entity: String,
    /// Wait after a power operation, until the next request.
    delay: Duration,
}

#[derive(Deserialize)]
struct State {
    state: String,
}

impl HomeAssistant {
    /// Creates the switch `entity`, such as `switch.nuc1`, of the server at `base`. `token` is a
    /// long-lived access token. Sends nothing.
    ///
    /// # Errors
    /// The URL or the name of the entity is not valid.
    pub fn new(
        base: &str,
        entity: &str,
        token: Secret,
        delay: Duration,
        tls: Tls,
    ) -> Result<Self, Error> {
        let base = base.trim_end_matches('/').trim_end_matches("/api").to_owned();
        url("host", &base)?;
        let (domain, name) = entity.split_once('.').unwrap_or_default();
        let is_plain =
            |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
        let is_valid = |part: &str| !part.is_empty() && part.chars().all(is_plain);
        if !is_valid(domain) || !is_valid(name) || entity.len() > ENTITY_CHARS_MAX {
            let reason = "expected a name such as switch.nuc1".to_owned();
            return Err(Error::Invalid { field: "switchEntityID", reason });
        }
        let client = Client::new(tls, Login::Bearer(token))?;
        Ok(Self { client, base, entity: entity.to_owned(), delay })
    }

    /// Reads the state of the switch. `unavailable` and `unknown` are [`Power::Unknown`].
    ///
    /// # Errors
    /// The server cannot be reached, refuses the token, or has no such entity.
    pub async fn power(&self) -> Result<Power, Error> {
        let call = self.call(Method::GET, &format!("/api/states/{}", self.entity), "")?;
        let body = self.client.send(&call).await.map_err(|error| match error {
            Error::Status { server, what, status: StatusCode::NOT_FOUND } => Error::Refused {
                server,
                what,
                message: format!("the entity {} does not exist", self.entity),
            },
            error => error,
        })?;
        Self::read_power(&body).map_err(|reason| Error::Response {
            server: server(&call.uri),
            what: call.what,
            reason,
        })
    }

    /// Reads the power state from the response of the server.
    ///
    /// # Errors
    /// The response is not a state of an entity; the error is a sentence.
    pub fn read_power(response: &[u8]) -> Result<Power, String> {
        let state: State = serde_json::from_slice(response).map_err(|error| error.to_string())?;
        Ok(match state.state.as_str() {
            "on" => Power::On,
            "off" => Power::Off,
            _ => Power::Unknown,
        })
    }

    /// Switches on or off. The server answers 200 for an entity that does not exist, so the caller
    /// must read the state again.
    ///
    /// # Errors
    /// As [`HomeAssistant::power`].
    pub async fn set(&self, on: bool) -> Result<(), Error> {
        let service = if on { "turn_on" } else { "turn_off" };
        // The services of this domain switch entities of each domain, such as `input_boolean`.
        let path = format!("/api/services/homeassistant/{service}");
        let body = json!({ "entity_id": self.entity }).to_string();
        self.client.send(&self.call(Method::POST, &path, &body)?).await?;
        tokio::time::sleep(self.delay).await;
        Ok(())
    }

    fn call(&self, method: Method, path: &str, body: &str) -> Result<Call, Error> {
        let uri: Uri = url("host", &format!("{}{path}", self.base))?;
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        let body = Bytes::from(body.to_owned());
        Ok(Call { method, uri, headers, body, what: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Method;

    use super::HomeAssistant;
    use crate::Error;
    use crate::client::Tls;

    fn switch(base: &str, entity: &str) -> Result<HomeAssistant, Error> {
        HomeAssistant::new(base, entity, "token".into(), Duration::ZERO, Tls::Verified)
    }

    #[test]
    fn an_entity_has_a_domain_and_a_name_and_the_url_is_that_of_the_api() {
        for base in ["http://ha:8123", "http://ha:8123/", "http://ha:8123/api"] {
            let switch = switch(base, "switch.nuc_1").unwrap();
            let call = switch.call(Method::GET, "/api/states/switch.nuc_1", "").unwrap();
            assert_eq!(call.uri, "http://ha:8123/api/states/switch.nuc_1");
        }
        for entity in ["nuc1", "switch.", "switch.nuc/../x", "switch.nuc 1", ""] {
            let refused = switch("http://ha:8123", entity).err();
            assert!(matches!(refused, Some(Error::Invalid { .. })), "{entity}");
        }
        assert!(switch("10.0.0.5", "switch.nuc1").is_err());
    }
}
