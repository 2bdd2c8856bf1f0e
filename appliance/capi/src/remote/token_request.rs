//! Tokens of ServiceAccounts, by the TokenRequest API.

use std::time::Duration;

use api::core::SERVICE_ACCOUNT;
use api::meta::ObjectKey;
use http::{Request, header};
use objects::ObjectError;
use serde_json::json;
use stdx::Secret;

use super::failure::{self, Subject};
use super::{RemoteObjects, path, send};

impl RemoteObjects {
    /// Requests a token of a ServiceAccount. The server may issue a shorter one.
    ///
    /// # Errors
    /// The server issues no token.
    pub async fn request_token(
        &self,
        account: &ObjectKey,
        lifetime: Duration,
    ) -> Result<Secret, ObjectError> {
        let subject = Subject::object(SERVICE_ACCOUNT, account);
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "expirationSeconds": lifetime.as_secs() },
        });
        let parent = path::parent(SERVICE_ACCOUNT, account)?;
        let request = Request::post(format!("{parent}/{}/token", account.name))
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes());
        let request = request.map_err(kube::core::request::Error::BuildRequest);
        let answer = send(&self.connection, &subject, request).await?;
        let token = answer["status"]["token"].as_str().filter(|token| !token.is_empty());
        let token = token.map(Secret::from);
        // The response is not shown, because it may contain a token.
        token.ok_or_else(|| failure::of_unexpected(&subject, "a token", "another response"))
    }

    /// Uses another token from the next request on, in all clones.
    pub fn set_token(&self, token: &Secret) {
        self.connection.set_token(token);
    }
}
