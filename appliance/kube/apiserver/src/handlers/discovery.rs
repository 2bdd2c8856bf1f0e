//! Discovery documents: the legacy documents, which every client can read, and the aggregated
//! documents (all groups, versions and resources in one).
//!
//! The Accept header selects the form (k8s.io/apiserver, `pkg/endpoints/discovery/aggregated`). The
//! aggregated form must have exactly the requested version; in any other version, the client finds
//! no resources.

mod aggregated;
mod legacy;

use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::wire::documents::{self, Document};
use crate::wire::path::Target;
use crate::wire::{accept, response};
use aggregated::Version;
use resources::StatusError;
use resources::definition::Registry;
use resources::served;

/// Returns the discovery document of a path.
///
/// # Errors
/// 404 for a group or version that is not served, 406 if the client does not accept JSON.
pub fn respond(
    registry: &Registry,
    target: &Target,
    headers: &HeaderMap,
) -> Result<Response, StatusError> {
    let core = match target {
        Target::CoreVersions => Some(true),
        Target::Groups => Some(false),
        _ => None,
    };
    if let (Some(core), Some(version)) = (core, aggregated_form(headers)) {
        let document = aggregated::document(&served::groups(registry), core, version);
        let document = Document::new(document.to_string().into_bytes());
        let mut response = documents::conditional(&document, headers);
        if response.status() == StatusCode::OK {
            let form = HeaderValue::from_static(version.content_type());
            response.headers_mut().insert(CONTENT_TYPE, form);
        }
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        return Ok(response);
    }
    accept::takes_plain(headers)?;
    let groups = served::groups(registry);
    let document = match target {
        Target::CoreVersions => Some(legacy::core_versions(&groups)),
        Target::Groups => Some(legacy::group_list(&groups)),
        Target::Group(name) => legacy::group(&groups, name),
        Target::Resources { group, version } => legacy::resources(&groups, group, version),
        _ => None,
    };
    let document = document.ok_or_else(StatusError::no_such_resource)?;
    let mut response = response::json(StatusCode::OK, &document);
    documents::vary(&mut response);
    Ok(response)
}

/// Returns the aggregated form that the Accept header requests; `None` for the legacy form.
fn aggregated_form(headers: &HeaderMap) -> Option<Version> {
    for clause in accept::clauses(headers).filter(accept::Clause::is_json) {
        match (clause.form, clause.group) {
            ("", _) => return None,
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io") => {
                let version = Version::named(clause.version);
                if version.is_some() {
                    return version;
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
