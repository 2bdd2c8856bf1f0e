//! Smart plugs, relays and switch ports whose requests are data: presets in the folder `presets`,
//! or requests of the owner.
//!
//! A plug switches the outlet and not the machine. The machine starts with its outlet only if its
//! firmware says so ("After power failure: power on"). With a meter, an outlet that is on while
//! the machine draws almost nothing is a machine that is off.

mod preset;
mod reading;

use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderMap;
use http::{HeaderName, HeaderValue, Uri};

pub use self::preset::{Authentication, PRESETS, PlugRequest, PlugState, Preset};
use self::reading::Reader;
use crate::client::{Call, Client, Login, Tls, server, url};
use crate::{Error, Power};

/// Pause without power in a cycle, so that the power supply of a machine drains.
pub const PAUSE: Duration = Duration::from_secs(10);
/// Power in watts below which a machine is off. A NUC that is shut down draws 0.5 to 2 W.
pub const OFF_BELOW_WATTS: f64 = 3.0;

/// State of an outlet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlet {
    /// True if the outlet is switched on; `None` if the plug does not know.
    pub is_on: Option<bool>,
    /// Power of the machine in watts; `None` without a meter.
    pub watts: Option<f64>,
}

impl Outlet {
    /// Returns the power state of the machine. An outlet without a meter has the state of the
    /// outlet.
    pub fn power(self, off_below_watts: f64) -> Power {
        match self {
            Self { is_on: None, .. } => Power::Unknown,
            Self { is_on: Some(false), .. } => Power::Off,
            Self { watts: Some(watts), .. } if watts < off_below_watts => Power::Off,
            Self { is_on: Some(true), .. } => Power::On,
        }
    }
}

/// Address and outlet of a plug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlugAddress {
    /// Scheme, host and port: `http://10.0.0.7`.
    pub base: String,
    /// Number or name of the outlet; empty for that of the preset.
    pub outlet: String,
}

/// Plug with one outlet for one machine.
pub struct Plug {
    client: Client,
    preset: Preset,
    address: PlugAddress,
    reader: Reader,
}

impl Plug {
    /// Creates a plug. Sends nothing. `login` has user and password if the owner gave them.
    ///
    /// # Errors
    /// A URL, a header or a pattern of the preset is not valid.
    pub fn new(
        preset: Preset,
        mut address: PlugAddress,
        login: Option<(String, stdx::Secret)>,
        tls: Tls,
    ) -> Result<Self, Error> {
        if address.outlet.is_empty() {
            address.outlet.clone_from(&preset.outlet);
        }
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.*".contains(char);
        if !address.outlet.chars().all(is_plain) {
            let reason = "expected letters, digits, -, _, . and *".to_owned();
            return Err(Error::Invalid { field: "outlet", reason });
        }
        let login = match (preset.authentication, login) {
            (Authentication::Basic, Some((user, password))) => Login::Basic(user, password),
            (Authentication::Digest, Some((user, password))) => Login::Digest(user, password),
            (Authentication::Bearer, Some((_, token))) => Login::Bearer(token),
            (Authentication::None, _) | (_, None) => Login::None,
        };
        let reader = Reader::new(&preset.state, &address.outlet)?;
        let plug = Self { client: Client::new(tls, login)?, preset, address, reader };
        let preset = &plug.preset;
        let all = [Some(&preset.on), Some(&preset.off), preset.cycle.as_ref()];
        for request in all.into_iter().flatten().chain([&preset.state.request]) {
            plug.call(request, "")?;
        }
        Ok(plug)
    }

    /// Reads the state of the outlet.
    ///
    /// # Errors
    /// The plug cannot be reached, refuses the login, or sends no state.
    pub async fn outlet(&self) -> Result<Outlet, Error> {
        let call = self.call(&self.preset.state.request, "state")?;
        let body = self.client.send(&call).await?;
        self.read(&body).map_err(|reason| Error::Response {
            server: server(&call.uri),
            what: call.what,
            reason,
        })
    }

    /// Reads the state of the outlet from the response of the plug.
    ///
    /// # Errors
    /// The response has no state; the error is a sentence.
    pub fn read(&self, response: &[u8]) -> Result<Outlet, String> {
        self.reader.read(response)
    }

    /// Switches the outlet. Success does not confirm the new state: see [`Plug::outlet`].
    ///
    /// # Errors
    /// As [`Plug::outlet`].
    pub async fn set(&self, on: bool) -> Result<(), Error> {
        let (request, what) = if on { (&self.preset.on, "on") } else { (&self.preset.off, "off") };
        self.client.send(&self.call(request, what)?).await.map(drop)
    }

    /// Switches the outlet off, and on again after [`PAUSE`]: by one request if the plug has it, so
    /// that a power cut of the box leaves no machine without power.
    ///
    /// # Errors
    /// As [`Plug::outlet`].
    pub async fn cycle(&self) -> Result<(), Error> {
        if let Some(request) = &self.preset.cycle {
            self.client.send(&self.call(request, "cycle")?).await?;
            // Until then the outlet has no power.
            tokio::time::sleep(PAUSE).await;
            return Ok(());
        }
        self.set(false).await?;
        tokio::time::sleep(PAUSE).await;
        self.set(true).await
    }

    fn call(&self, request: &PlugRequest, what: &str) -> Result<Call, Error> {
        let invalid = |field, reason: &str| Error::Invalid { field, reason: reason.to_owned() };
        let method = request.method.parse();
        let method = method.map_err(|_| invalid("method", "expected a method of HTTP"))?;
        let base = self.address.base.trim_end_matches('/');
        let path = self.filled(&request.path);
        if !path.starts_with('/') {
            return Err(invalid("path", "expected a path that begins with /"));
        }
        let uri: Uri = url("host and path", &format!("{base}{path}"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &request.headers {
            let name = HeaderName::try_from(name.as_str());
            let value = HeaderValue::try_from(value.as_str());
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(invalid("headers", "expected headers of HTTP"));
            };
            headers.insert(name, value);
        }
        let body = Bytes::from(self.filled(&request.body));
        Ok(Call { method, uri, headers, body, what: what.to_owned() })
    }

    /// Replaces the placeholders `{outlet}` and, in seconds and in tenths, `{pause}` and
    /// `{pause10}`.
    fn filled(&self, text: &str) -> String {
        text.replace("{outlet}", &self.address.outlet)
            .replace("{pause}", &PAUSE.as_secs().to_string())
            .replace("{pause10}", &(PAUSE.as_secs() * 10).to_string())
    }
}

#[cfg(test)]
mod tests;
