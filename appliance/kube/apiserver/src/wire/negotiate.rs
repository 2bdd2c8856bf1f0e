//! Content negotiation: form of the response, and media type of the request body.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::accept::{self, Clause};
use resources::{Reason, StatusError};

/// Form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Objects in the form of their kind.
    Object,
    /// Response as a `Table`.
    Table(MetaVersion),
    /// Response as a `PartialObjectMetadata`.
    Metadata(MetaVersion),
    /// Response as a `PartialObjectMetadataList`.
    MetadataList(MetaVersion),
}

/// Version of `meta.k8s.io`; both versions have the same fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    fn named(version: &str) -> Option<Self> {
        match version {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// Returns `meta.k8s.io/v1` or `meta.k8s.io/v1beta1`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// Returns the first served form in the Accept header; [`Shape::Object`] without a header.
///
/// # Errors
/// 406 if no form in the Accept header can be served.
pub fn accepted(headers: &HeaderMap) -> Result<Shape, StatusError> {
    let mut all = accept::clauses(headers).peekable();
    if all.peek().is_none() {
        return Ok(Shape::Object);
    }
    if let Some(shape) = all.find_map(|clause| served(&clause)) {
        return Ok(shape);
    }
    Err(StatusError::new(
        Reason::NotAcceptable,
        "only the following media types are accepted: application/json, application/yaml, \
         application/json;as=Table;v=v1;g=meta.k8s.io",
    ))
}

fn served(clause: &Clause<'_>) -> Option<Shape> {
    if !clause.is_served() {
        return None;
    }
    let meta = MetaVersion::named(clause.version).filter(|_| clause.group == "meta.k8s.io");
    match clause.form {
        "" => Some(Shape::Object),
        "Table" => meta.map(Shape::Table),
        "PartialObjectMetadata" => meta.map(Shape::Metadata),
        "PartialObjectMetadataList" => meta.map(Shape::MetadataList),
        _ => None,
    }
}

/// Returns the media type of a body, without parameters, in lower case; the default is JSON.
pub fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match text.split(';').next().map(str::trim).unwrap_or_default() {
        "" => "application/json".to_owned(),
        media => media.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::{MetaVersion, Shape, accepted, media_type};
    use http::HeaderMap;
    use http::header::{ACCEPT, CONTENT_TYPE};

    #[test]
    fn the_first_clause_that_can_be_served() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        for (accept, expected) in [
            ("", Some(Shape::Object)),
            ("*/*", Some(Shape::Object)),
            ("application/json, */*", Some(Shape::Object)),
            (table, Some(Shape::Table(MetaVersion::V1))),
            (&format!("{discovery},application/json"), Some(Shape::Object)),
            ("application/vnd.kubernetes.protobuf,application/json", Some(Shape::Object)),
            ("application/json;stream=watch", Some(Shape::Object)),
            (
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                Some(Shape::Table(MetaVersion::V1Beta1)),
            ),
            ("application/json;as=Table;v=v2;g=meta.k8s.io,*/*", Some(Shape::Object)),
            ("application/yaml", Some(Shape::Object)),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Some(Shape::MetadataList(MetaVersion::V1)),
            ),
            ("application/vnd.kubernetes.protobuf", None),
            (discovery, None),
            ("text/html", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(accepted(&headers).ok(), expected, "{accept}");
        }
    }

    #[test]
    fn a_body_without_type_is_json() {
        let mut headers = HeaderMap::new();
        assert_eq!(media_type(&headers), "application/json");
        headers.insert(CONTENT_TYPE, "Application/JSON; charset=utf-8".parse().unwrap());
        assert_eq!(media_type(&headers), "application/json");
    }
}
