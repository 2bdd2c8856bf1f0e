//! Serial console of a machine: stream of its output, and characters to type.

use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::{ANSWER_TIMEOUT, Client, Path, reach, read_answer};
use crate::error::ClientError;

/// Output of a serial console.
pub struct ConsoleOutput {
    body: Incoming,
    server: String,
}

impl ConsoleOutput {
    /// Returns the next output; `None` after the end. Safe to cancel.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| reach::broken(&self.server, &error))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl Client {
    /// Opens the output of a console: the recorded output, and with `follow` also what the machine
    /// prints from then on.
    ///
    /// # Errors
    /// The box does not respond, or the machine has no console.
    pub async fn console(&self, path: &Path, follow: bool) -> Result<ConsoleOutput, ClientError> {
        let what = format!("show the {path}");
        let query = if follow { "?follow=true" } else { "" };
        let silent = |_| reach::silent(&self.server);
        let sent = timeout(ANSWER_TIMEOUT, self.send(Method::GET, path, query, None));
        let response = sent.await.map_err(silent)??;
        if !response.status().is_success() {
            let (code, body) = self.read(response).await?;
            read_answer(&what, code, &body)?;
            return Err(ClientError::Answer { what, why: format!("HTTP status {code}") });
        }
        Ok(ConsoleOutput { body: response.into_body(), server: self.server.clone() })
    }

    /// Types characters on a console.
    ///
    /// # Errors
    /// The box does not respond, or the machine accepts no characters.
    pub async fn type_characters(
        &self,
        path: &Path,
        characters: Vec<u8>,
    ) -> Result<(), ClientError> {
        let request = self.request(Method::POST, path, "", "application/octet-stream");
        let body = Full::new(characters.into()).map_err(|never| match never {}).boxed_unsync();
        let whole = async { self.read(self.ask(request, body).await?).await };
        let (code, body) =
            timeout(ANSWER_TIMEOUT, whole).await.map_err(|_| reach::silent(&self.server))??;
        read_answer(&format!("type on the {path}"), code, &body).map(drop)
    }
}
