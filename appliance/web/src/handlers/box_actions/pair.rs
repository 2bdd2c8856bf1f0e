//! The form of the page "Cluster API" that pairs the box with a management cluster.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::post;
use serde::{Deserialize, Deserializer};
use stdx::Secret;

use super::super::access::foreign;
use super::super::{PageResponse, Peer, Site, SiteState, asked, prove};
use crate::handlers::Caller;
use crate::response::{html, see, text};
use web_pages as page;

/// Maximum size of the form in bytes: a kubeconfig with embedded certificates, in URL encoding.
const FORM_BYTES_MAX: usize = 128 << 10;

/// Order of an owner to pair the box with a management cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairRequest {
    /// Name of the ManagementCluster on the box.
    pub name: String,
    /// Kubeconfig that the owner pasted.
    pub kubeconfig: Secret,
    /// True to keep the kubeconfig as the credential of the box. False to use it once, for the
    /// creation of the box's own identity in the management cluster, and to forget it.
    pub is_credential: bool,
    /// Only namespace of the management cluster to serve; `None` for all.
    pub namespace: Option<String>,
    /// Value of the label `cluster.x-k8s.io/watch-filter` of the objects to serve; `None` for all.
    pub watch_filter: Option<String>,
    /// Host name or address of the box in the request, without a port.
    pub host: String,
}

/// Returns the routes of this module.
pub fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/cluster-api/pair", post(pair))
        .route_layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
}

#[derive(Deserialize)]
struct PairForm {
    csrf: String,
    name: String,
    kubeconfig: Secret,
    /// `admin` or `box`: whose rights the kubeconfig has.
    rights: String,
    #[serde(default, deserialize_with = "filled")]
    namespace: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    filter: Option<String>,
    #[serde(default)]
    owner: Secret,
}

/// Reads a text field; an empty one is `None`.
fn filled<'de, D: Deserializer<'de>>(field: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(field)?;
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// Pairs the box. Requires the passphrase, because the management cluster then commands its
/// machines.
async fn pair(
    State(site): SiteState,
    peer: Peer,
    uri: Uri,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<PairForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let is_credential = match form.rights.as_str() {
        "admin" => false,
        "box" => true,
        _ => return text(StatusCode::UNPROCESSABLE_ENTITY, "Whose kubeconfig is this?"),
    };
    if let Err(answer) = prove(&site, (&headers, peer), &form.owner).await {
        return answer;
    }
    let request = PairRequest {
        name: form.name.trim().to_owned(),
        kubeconfig: form.kubeconfig,
        is_credential,
        namespace: form.namespace,
        watch_filter: form.filter,
        host: asked(&uri, &headers).unwrap_or_default(),
    };
    match site.source.pair(request).await {
        Ok(()) => see("/cluster-api"),
        Err(why) => {
            let view = site.view().await;
            html(StatusCode::UNPROCESSABLE_ENTITY, page::sentence(&view, "Not paired", &why))
        }
    }
}
