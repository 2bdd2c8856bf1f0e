use std::pin::Pin;
use std::sync::Arc;

use audit_log::AuditLog;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use panel::model::{ACTIONS, Action};
use status::source::ViewSource;
use status::view::{StatusView, example};
use stdx::SystemClock;

use super::{PATH, meant, router, warned, warning};
use crate::audit::Audit;

struct Example;

impl ViewSource for Example {
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>> {
        let view = StatusView { name: "box-7f3a".into(), ..example::working() };
        Box::pin(std::future::ready(view))
    }
}

fn view_source() -> Arc<dyn ViewSource> {
    Arc::new(Example)
}

/// Creates an audit log whose folder is already removed.
fn audit() -> Audit {
    let folder = tempfile::tempdir().unwrap();
    Audit::new(AuditLog::open(folder.path()).unwrap(), Arc::new(SystemClock))
}

async fn ask(router: Router, method: &str, body: &str) -> (StatusCode, String) {
    use tower::ServiceExt as _;
    let request = Request::builder().method(method).uri(PATH);
    let request = request.header("content-type", "application/json");
    let answer: Response<Body> =
        router.oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let status = answer.status();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn what_a_reset_erases_is_told_and_only_who_names_the_box_resets_it() {
    let (status, response) = ask(router(Some(view_source()), audit()), "GET", "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(response.contains(r#""name":"box-7f3a","machines":12,"keys":3"#), "{response}");
    for name in ["", "box-7f3b"] {
        let wish = format!(r#"{{"level":"factory","name":"{name}"}}"#);
        let (status, response) = ask(router(Some(view_source()), audit()), "POST", &wish).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(response.contains("this box is called box-7f3a"), "{response}");
    }
    let (status, _) =
        ask(router(Some(view_source()), audit()), "POST", r#"{"level":"explode"}"#).await;
    assert!(status.is_client_error());
}

#[tokio::test]
async fn a_guest_resets_nothing() {
    for (method, body) in [("GET", ""), ("POST", r#"{"level":"restart"}"#)] {
        let (status, response) = ask(router(None, audit()), method, body).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(response.contains("a program on a host system"), "{response}");
    }
}

#[tokio::test]
async fn every_answer_of_safe_mode_says_so() {
    use tower::ServiceExt as _;
    for (why, expected) in [(None, false), (Some("the file \"reset\" requested it"), true)] {
        let request = Request::builder().uri(PATH).body(Body::empty()).unwrap();
        let answer = warned(router(None, audit()), why).oneshot(request).await.unwrap();
        let warning = answer.headers().get("warning").map(|it| it.to_str().unwrap());
        assert_eq!(warning.is_some(), expected);
        assert!(warning.is_none_or(|it| it.ends_with("the file 'reset' requested it\"")));
    }
    assert!(warning(&"é\n".repeat(500)).is_some());
}

#[test]
fn what_leaves_the_box_is_known() {
    let leaving: Vec<Action> =
        ACTIONS.into_iter().filter(|action| meant(*action).is_some()).collect();
    let wanted = [Action::SafeMode, Action::Restart, Action::PowerOff, Action::FactoryReset];
    assert_eq!(leaving, wanted);
}
