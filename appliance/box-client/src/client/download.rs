//! Download of a file in pieces.

use std::time::Duration;

use http::Method;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::time::timeout;

use super::{Client, Path, reach, read_answer};
use crate::error::ClientError;

/// Maximum time without data. The box makes the whole file before it sends the first byte.
const STALLED: Duration = Duration::from_secs(300);

impl Client {
    /// POSTs `order` and downloads the file of the response. Calls `take` with each piece, the
    /// bytes received so far and the size of the file. Returns the size.
    ///
    /// # Errors
    /// The request fails, the file is shorter than its declared size, or `take` fails.
    pub async fn download<E: From<ClientError>>(
        &self,
        path: &Path,
        order: &Value,
        mut take: impl FnMut(&[u8], u64, u64) -> Result<(), E>,
    ) -> Result<u64, E> {
        let silent = |_| reach::silent(&self.server);
        let asked = timeout(STALLED, self.send(Method::POST, path, "", Some(order)));
        let response = asked.await.map_err(silent)??;
        let what = format!("create {path}");
        let code = response.status().as_u16();
        if !response.status().is_success() {
            let (code, body) = self.read(response).await?;
            read_answer(&what, code, &body)?;
            return Err(ClientError::Answer { what, why: format!("HTTP status {code}") }.into());
        }
        let length = response.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
        let Some(whole) = length.and_then(|it| it.parse::<u64>().ok()) else {
            return Err(ClientError::Answer {
                what,
                why: format!("HTTP status {code} without a length"),
            }
            .into());
        };
        let (mut body, mut done) = (response.into_body(), 0);
        while let Some(frame) = timeout(STALLED, body.frame()).await.map_err(silent)? {
            let frame = frame.map_err(|error| reach::broken(&self.server, &error))?;
            if let Some(piece) = frame.data_ref() {
                done += piece.len() as u64;
                take(piece, done, whole)?;
            }
        }
        match done == whole {
            true => Ok(done),
            false => {
                let why = format!("received {done} of {whole} bytes");
                Err(ClientError::Answer { what, why }.into())
            }
        }
    }
}
