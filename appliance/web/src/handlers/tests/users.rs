//! Tests of users: what each role may request, and the pages that change users.

use box_owner::users::{ROLES, Role};

use super::*;

const PASSPHRASE: &str = "correct horse";

/// Box with a user of each role, who are called as their roles.
struct Staffed {
    owner: Arc<Owner>,
    router: Router,
}

/// Session of one browser.
struct Session {
    cookie: String,
    csrf: String,
}

impl Staffed {
    fn new() -> Self {
        let (owner, router) = site();
        owner.claim(&owner.code().unwrap().0, PASSPHRASE, OWNER).unwrap();
        for role in ROLES {
            let name = if role == Role::Admin { "adam" } else { role.word() };
            owner.add_user(name, role, PASSPHRASE).unwrap();
        }
        Self { owner, router }
    }

    async fn login(&self, name: &str, passphrase: &str) -> Option<Session> {
        let passphrase = passphrase.replace(' ', "+");
        let form = format!("name={name}&passphrase={passphrase}");
        let answer = ask(&self.router, "POST /login", &[], &form).await;
        let cookie = header(&answer, "set-cookie").split(';').next()?.to_owned();
        let csrf = masked(&self.owner.session(cookie.split_once('=')?.1)?.csrf);
        Some(Session { cookie, csrf })
    }

    async fn send(&self, session: &Session, line: &str, form: &str) -> (StatusCode, String) {
        let form = format!("csrf={}&{form}", session.csrf);
        let answer = ask(&self.router, line, &[("cookie", &session.cookie)], &form).await;
        let status = answer.status();
        if header(&answer, "content-type") == "text/event-stream" {
            return (status, String::new());
        }
        let location = header(&answer, "location").to_owned();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, location + &String::from_utf8_lossy(&body))
    }
}

/// Requests with a form that is refused for another reason, so that nothing is done.
const VIEWER: [&str; 17] = [
    "GET /",
    "GET /machines",
    "GET /machines/nuc-07",
    "GET /machines/nuc-07/hardware",
    "GET /machines/nuc-07/bmc",
    "GET /machines/nuc-07/yaml",
    "GET /workflows",
    "GET /templates",
    "GET /network",
    "GET /images",
    "GET /os-images",
    "GET /cluster-api",
    "GET /box",
    "GET /search?q=nuc",
    "GET /events?page=/",
    "GET /account",
    "POST /account/ssh-keys",
];
const OPERATOR: [&str; 29] = [
    "GET /machines/nuc-07/retry",
    "POST /machines/nuc-07/retry",
    "GET /machines/nuc-07/install",
    "POST /machines/nuc-07/install",
    "POST /machines/nuc-07/add",
    "POST /machines/nuc-07/erase",
    "POST /machines/nuc-07/power-off",
    "POST /machines/nuc-07/dismiss",
    "POST /machines/nuc-07/ignore",
    "POST /machines/nuc-07/show-again",
    "POST /ignore-several",
    "POST /notices/dismiss",
    "GET /install-several",
    "POST /install-several",
    "GET /add-machine?mac=1",
    "POST /templates",
    "POST /templates/add",
    "POST /templates/debian",
    "POST /templates/debian/delete",
    "POST /network/serve-again",
    "POST /box/identify",
    "POST /machines/nuc-07/identify",
    "POST /images/pin",
    "POST /os-images",
    "POST /os-images/known",
    "POST /os-images/fetch",
    "POST /os-images/delete",
    "POST /os-images/upload",
    "POST /cluster-api/pair",
];
const ADMIN: [&str; 31] = [
    "GET /kubeconfig",
    "POST /kubeconfig",
    "POST /kubeconfig/rotate",
    "GET /tokens",
    "POST /tokens",
    "POST /tokens/revoke",
    "POST /backup",
    "POST /backup/kept",
    "POST /backup/send",
    "POST /box/leave",
    "POST /box/update",
    "POST /box/update/restart",
    "POST /box/update/rollback",
    "GET /settings",
    "POST /settings",
    "GET /settings/1",
    "POST /settings/1/restore",
    "GET /setup",
    "GET /setup/network",
    "POST /setup/network",
    "GET /setup/time",
    "POST /setup/time",
    "GET /setup/done",
    "POST /setup/restart",
    "GET /users",
    "POST /users",
    "GET /users/viewer",
    "POST /users/viewer/role",
    "POST /users/viewer/passphrase",
    "POST /users/viewer/remove",
    "GET /audit",
];
/// Values of all fields of the forms above; most are refused.
const FORM: &str = "name=none&text=x&revision=1&image=none&workflow=&level=none&passphrase=a\
    &again=b&kubeconfig=k&rights=none&role=none&typed=none&keys=&mac-0=none&machine=&days=30\
    &id=9f86d081884c&key=none";

#[tokio::test]
async fn each_role_may_request_its_paths_and_those_of_the_weaker_roles_only() {
    let box_ = Staffed::new();
    for (name, rank) in [("viewer", 0), ("operator", 1), ("adam", 2), ("", 2)] {
        let session = box_.login(name, PASSPHRASE).await.unwrap();
        for (least, lines) in [(0, &VIEWER[..]), (1, &OPERATOR[..]), (2, &ADMIN[..])] {
            for line in lines {
                let (status, page) = box_.send(&session, line, FORM).await;
                let refused = status == StatusCode::FORBIDDEN && page.contains("Not allowed");
                assert_eq!(refused, rank < least, "{name} {line}: {status}");
            }
        }
    }
}

#[tokio::test]
async fn no_path_of_the_table_is_served_without_a_session() {
    let box_ = Staffed::new();
    for line in VIEWER.iter().chain(&OPERATOR).chain(&ADMIN) {
        let answer = ask(&box_.router, line, &[], FORM).await;
        let is_login = header(&answer, "location") == "/login";
        assert!(is_login || answer.status() == StatusCode::UNAUTHORIZED, "{line}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_role_and_who_can_help() {
    let box_ = Staffed::new();
    let viewer = box_.login("viewer", PASSPHRASE).await.unwrap();
    let (_, page) = box_.send(&viewer, "POST /machines/nuc-07/retry", "").await;
    assert!(page.contains("You are logged in as viewer, with the role viewer"), "{page}");
    assert!(page.contains("patch workflows.tinkerbell.org"), "{page}");
    assert!(page.contains("Let an operator or an administrator do it"), "{page}");
}

#[tokio::test]
async fn an_administrator_adds_changes_and_removes_a_user() {
    let box_ = Staffed::new();
    let adam = box_.login("adam", PASSPHRASE).await.unwrap();
    let add = "name=jane&role=viewer&passphrase=first+words";
    let (status, to) = box_.send(&adam, "POST /users", add).await;
    assert_eq!((status, to.as_str()), (StatusCode::SEE_OTHER, "/users"));
    let (status, page) = box_.send(&adam, "POST /users", add).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(page.contains("The user name jane is taken."), "{page}");
    let bad = "name=Jane+Doe&role=viewer&passphrase=first+words";
    let (status, page) = box_.send(&adam, "POST /users", bad).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("value=\"Jane Doe\""), "the typed name stays: {page}");

    let jane = box_.login("jane", "first words").await.unwrap();
    let install = "GET /machines/nuc-07/install";
    assert_eq!(box_.send(&jane, install, "").await.0, StatusCode::FORBIDDEN);
    box_.send(&adam, "POST /users/jane/role", "role=operator").await;
    assert_ne!(box_.send(&jane, install, "").await.0, StatusCode::FORBIDDEN, "counts at once");
    let key = "keys=ssh-ed25519+\
        AAAAC3NzaC1lZDI1NTE5AAAAIGk0X1w7K6s3yT1p8h2v5Jc9bq0eRkUuZ4mWnDfLxTgA+jane";
    assert_eq!(box_.send(&jane, "POST /account/ssh-keys", key).await.0, StatusCode::SEE_OTHER);
    let (status, page) = box_.send(&jane, "POST /account/ssh-keys", "keys=AAAA").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{page}");
    assert!(box_.send(&adam, "GET /users/jane", "").await.1.contains("DfLxTgA jane"));

    box_.send(&adam, "POST /users/jane/passphrase", "passphrase=second+words").await;
    assert_eq!(box_.send(&jane, "GET /", "").await.1, "/login", "her session has ended");
    assert!(box_.login("jane", "first words").await.is_none());
    let jane = box_.login("jane", "second words").await.unwrap();
    let (status, page) = box_.send(&adam, "POST /users/jane/remove", "typed=joe").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{page}");
    box_.send(&adam, "POST /users/jane/remove", "typed=jane").await;
    assert_eq!(box_.send(&jane, "GET /", "").await.1, "/login");
    for line in ["GET /users/jane", "GET /users/owner", "POST /users/owner/remove"] {
        assert_eq!(box_.send(&adam, line, "typed=owner").await.0, StatusCode::NOT_FOUND, "{line}");
    }
}

#[tokio::test]
async fn the_audit_log_names_the_user() {
    let box_ = Staffed::new();
    let viewer = box_.login("viewer", PASSPHRASE).await.unwrap();
    box_.send(&viewer, "POST /box/identify", "").await;
    let adam = box_.login("adam", PASSPHRASE).await.unwrap();
    let (status, page) = box_.send(&adam, "GET /audit?q=viewer", "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("POST /box/identify") && page.contains(">refused<"), "{page}");
    assert!(page.contains("POST /login") && !page.contains(">adam</td>"), "{page}");
}

#[tokio::test]
async fn an_administrator_creates_and_revokes_tokens() {
    let box_ = Staffed::new();
    let adam = box_.login("adam", PASSPHRASE).await.unwrap();
    let form = format!("csrf={}&name=ci&role=viewer&days=30", adam.csrf);
    let answer = ask(&box_.router, "POST /tokens", &[("cookie", &adam.cookie)], &form).await;
    assert_eq!(header(&answer, "content-disposition"), "attachment; filename=\"ci.kubeconfig\"");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "ci 30 10.0.0.9");
    let (status, page) = box_.send(&adam, "POST /tokens", "name=ci&role=root&days=30").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("Nothing was created: there is no role root."), "{page}");
    assert!(page.contains("value=\"ci\"") && page.contains("<option selected>30"), "{page}");
    let (_, page) = box_.send(&adam, "POST /tokens/revoke", "id=9f86d081884c").await;
    assert!(page.contains("it is the last."), "{page}");
    let (status, to) = box_.send(&adam, "POST /tokens/revoke", "id=60303ae22b99").await;
    assert_eq!((status, to.as_str()), (StatusCode::SEE_OTHER, "/tokens"));
}
