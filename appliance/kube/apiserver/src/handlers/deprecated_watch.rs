//! Old paths of watches, deprecated since Kubernetes 1.11 in favor of `?watch=1` and still used by
//! old clients: `/api/v1/watch/…` and `/apis/GROUP/VERSION/watch/…`.

use axum::extract::Request;
use http::Uri;
use http::uri::PathAndQuery;

/// Rewrites a request with an old watch path to `?watch=1`, before other code reads the path.
pub(super) async fn rewrite(mut request: Request) -> Request {
    if let Some(uri) = of_today(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

/// Returns the URI with `watch=1` for an old watch path; `None` for any other path.
fn of_today(uri: &Uri) -> Option<Uri> {
    let parts: Vec<&str> = uri.path().trim_end_matches('/').split('/').skip(1).collect();
    let (version, rest) = match parts.as_slice() {
        ["api", version, "watch", rest @ ..] => (format!("/api/{version}"), rest),
        ["apis", group, version, "watch", rest @ ..] => (format!("/apis/{group}/{version}"), rest),
        _ => return None,
    };
    let (place, name) = match rest {
        ["namespaces", namespace, plural] => (format!("namespaces/{namespace}/{plural}"), None),
        ["namespaces", namespace, plural, name] => {
            (format!("namespaces/{namespace}/{plural}"), Some(*name))
        }
        [plural] => ((*plural).to_owned(), None),
        [plural, name] => ((*plural).to_owned(), Some(*name)),
        _ => return None,
    };
    let one = name.map(|name| format!("&fieldSelector=metadata.name%3D{name}"));
    let (one, query) = (one.unwrap_or_default(), uri.query().unwrap_or_default());
    let and = if query.is_empty() { "" } else { "&" };
    let path = format!("{version}/{place}?watch=true{one}{and}{query}");
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::of_today;

    #[test]
    fn a_watch_of_an_old_path_is_the_watch_of_today() {
        for (old, today) in [
            ("/api/v1/watch/namespaces", Some("/api/v1/namespaces?watch=true")),
            (
                "/api/v1/watch/namespaces/one?resourceVersion=5",
                Some(
                    "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Done\
                     &resourceVersion=5",
                ),
            ),
            (
                "/api/v1/watch/namespaces/one/configmaps?labelSelector=a%3Db",
                Some("/api/v1/namespaces/one/configmaps?watch=true&labelSelector=a%3Db"),
            ),
            (
                "/apis/tinkerbell.org/v1alpha1/watch/namespaces/one/hardware/nuc%2D1/",
                Some(
                    "/apis/tinkerbell.org/v1alpha1/namespaces/one/hardware?watch=true\
                     &fieldSelector=metadata.name%3Dnuc%2D1",
                ),
            ),
            ("/apis/tinkerbell.org/v1alpha1/watch", None),
            ("/api/v1/watch/namespaces/one/pods/two/log", None),
            ("/api/v1/namespaces/watch/configmaps", None),
            ("/watch/api/v1/namespaces", None),
        ] {
            let rewritten = of_today(&old.parse().unwrap());
            assert_eq!(rewritten.map(|uri| uri.to_string()).as_deref(), today, "{old}");
        }
    }
}
