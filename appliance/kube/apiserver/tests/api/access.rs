//! Tests of authentication and authorization of clients.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{AUTHORIZATION, HeaderName};
use rcgen::PublicKeyData as _;
use rustls_pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::requests::Client;
use crate::server::Server;

const HARDWARE: &str = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware";
const ALL_HARDWARE: &str = "/apis/tinkerbell.org/v1alpha1/hardware";
pub const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
pub const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const MAY_I: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const AS_USER: HeaderName = HeaderName::from_static("impersonate-user");
const AS_GROUP: HeaderName = HeaderName::from_static("impersonate-group");

pub type Headers<'a> = &'a [(HeaderName, &'a str)];

impl Client {
    pub async fn post(&mut self, path: &str, headers: Headers<'_>, body: Value) -> (u16, Value) {
        let (code, answer) = self.json("POST", path, headers, body.to_string()).await;
        (code.as_u16(), answer)
    }

    /// Creates a ServiceAccount with a cluster-wide binding to a ClusterRole, and returns its
    /// token.
    pub async fn account(&mut self, name: &str, role: &str) -> String {
        let account = json!({ "metadata": { "name": name } });
        assert_eq!(self.post(ACCOUNTS, &[], account).await.0, 201);
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": "default" }],
        });
        let (code, answer) = self.post(&format!("{RBAC}/clusterrolebindings"), &[], binding).await;
        assert_eq!(code, 201, "{answer}");
        let (code, answer) = self.post(&format!("{ACCOUNTS}/{name}/token"), &[], json!({})).await;
        assert_eq!(code, 201, "{answer}");
        answer["status"]["token"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_box_without_an_owner_tells_strangers_how_to_claim_it() {
    let owned = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&owned);
    let owned_now = move || asked.load(Ordering::Relaxed);
    let server = Server::start_with(|config| config.unclaimed_until(owned_now)).await;
    let mut client = Client::connect(&server).await;
    for token in ["", "Bearer wrong"] {
        for path in ["/api", HARDWARE] {
            let (code, status) = client.json("GET", path, &[(AUTHORIZATION, token)], "").await;
            assert_eq!((code.as_u16(), &status["reason"]), (403, &json!("Unclaimed")), "{path}");
            assert!(status["message"].as_str().unwrap().contains("tinbox box claim"), "{status}");
        }
        let (code, _) = client.json("GET", "/version", &[(AUTHORIZATION, token)], "").await;
        assert_eq!(code, 200, "a sign of life");
    }
    // The box itself has a token from the start.
    assert_eq!(client.json("GET", HARDWARE, &[], "").await.0, 200);
    owned.store(true, Ordering::Relaxed);
    let (code, status) = client.json("GET", HARDWARE, &[(AUTHORIZATION, "")], "").await;
    assert_eq!((code.as_u16(), &status["reason"]), (401, &json!("Unauthorized")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_is_who_its_token_says_until_it_is_gone() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let token = admin.account("robot", "tinbox:viewer").await;
    let mut robot = Client::connect(&server).await;
    robot.token = token.clone();
    let (code, me) = robot.post(WHOAMI, &[], json!({})).await;
    let user = &me["status"]["userInfo"];
    assert_eq!(
        (code, user["username"].as_str()),
        (201, Some("system:serviceaccount:default:robot"))
    );
    assert_eq!(
        user["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    assert!(user["extra"]["authentication.kubernetes.io/credential-id"][0].is_string(), "{me}");
    let (code, _) = robot.json("GET", ALL_HARDWARE, &[], "").await;
    assert_eq!(code, 200);

    let review = json!({ "spec": { "token": token } });
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (_, answer) = admin.post(reviews, &[], review.clone()).await;
    assert_eq!(answer["status"]["authenticated"], true, "{answer}");
    assert_eq!(answer["status"]["user"]["uid"], user["uid"]);
    let other = json!({ "spec": { "token": token, "audiences": ["vault"] } });
    let (_, answer) = admin.post(reviews, &[], other).await;
    assert!(answer["status"].get("authenticated").is_none(), "{answer}");
    assert_eq!(robot.post(reviews, &[], review.clone()).await.0, 403);

    let (code, _) = admin.json("DELETE", &format!("{ACCOUNTS}/robot"), &[], "").await;
    assert_eq!(code, 200);
    assert_eq!(robot.post(WHOAMI, &[], json!({})).await.0, 401);
    // Another account with the same name is a different account.
    admin.post(ACCOUNTS, &[], json!({ "metadata": { "name": "robot" } })).await;
    assert_eq!(robot.post(WHOAMI, &[], json!({})).await.0, 401);
    let (_, answer) = admin.post(reviews, &[], review).await;
    let why = answer["status"]["error"].as_str().unwrap();
    assert!(why.contains("does not match claim"), "{why}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_others_and_forgeries_are_refused() {
    let (server, other) = (Server::start().await, Server::start().await);
    let mut admin = Client::connect(&server).await;
    let mut stranger = Client::connect(&other).await;
    let ours = admin.account("robot", "tinbox:admin").await;
    let theirs = stranger.account("robot", "tinbox:admin").await;
    let (head, _) = ours.rsplit_once('.').unwrap();
    let (_, signature) = theirs.rsplit_once('.').unwrap();
    for token in [theirs.clone(), format!("{head}.{signature}"), format!("{head}."), head.into()] {
        admin.token = token;
        assert_eq!(admin.post(WHOAMI, &[], json!({})).await.0, 401);
    }
    admin.token = ours;
    assert_eq!(admin.post(WHOAMI, &[], json!({})).await.0, 201);
    let (_, keys) = admin.json("GET", "/openid/v1/jwks", &[], "").await;
    assert_eq!(keys["keys"][0]["kty"], "EC", "{keys}");
    server.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_decide_and_say_why_not() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let mut viewer = Client::connect(&server).await;
    viewer.token = admin.account("viewer", "tinbox:viewer").await;
    let name = "system:serviceaccount:default:viewer";
    for (method, path, message) in [
        (
            "POST",
            HARDWARE.to_owned(),
            format!(
                "hardware.tinkerbell.org is forbidden: User \"{name}\" cannot create resource \
                 \"hardware\" in API group \"tinkerbell.org\" in the namespace \"default\""
            ),
        ),
        (
            "GET",
            "/api/v1/secrets".to_owned(),
            format!(
                "secrets is forbidden: User \"{name}\" cannot list resource \"secrets\" in API \
                 group \"\" at the cluster scope"
            ),
        ),
        (
            "DELETE",
            format!("{HARDWARE}/x"),
            format!(
                "hardware.tinkerbell.org \"x\" is forbidden: User \"{name}\" cannot delete \
                 resource \"hardware\" in API group \"tinkerbell.org\" in the namespace \
                 \"default\""
            ),
        ),
        (
            "GET",
            "/metrics".to_owned(),
            format!("forbidden: User \"{name}\" cannot get path \"/metrics\""),
        ),
    ] {
        let (code, answer) = viewer.json(method, &path, &[], "").await;
        assert_eq!((code.as_u16(), answer["message"].as_str()), (403, Some(message.as_str())));
        assert_eq!(answer["reason"], "Forbidden");
    }
    let (code, _) = viewer.json("GET", "/apis", &[], "").await;
    assert_eq!(code, 200, "every user can read discovery");

    // Granted permissions take effect at once, and so do revoked ones.
    let rules = json!([{ "verbs": ["create"], "apiGroups": ["tinkerbell.org"],
        "resources": ["hardware"] }]);
    let role = json!({ "metadata": { "name": "maker" }, "rules": rules });
    admin.post(&format!("{RBAC}/namespaces/default/roles"), &[], role).await;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    for _ in 0..10 {
        let binding = json!({
            "metadata": { "name": "maker" },
            "roleRef": { "kind": "Role", "name": "maker" },
            "subjects": [{ "kind": "ServiceAccount", "name": "viewer" }],
        });
        let (code, answer) = admin.post(&bindings, &[], binding).await;
        assert_eq!(code, 201, "{answer}");
        let hardware = json!({ "metadata": { "generateName": "h-" } });
        assert_eq!(viewer.post(HARDWARE, &[], hardware.clone()).await.0, 201);
        admin.json("DELETE", &format!("{bindings}/maker"), &[], "").await;
        assert_eq!(viewer.post(HARDWARE, &[], hardware).await.0, 403);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_grants_what_they_do_not_hold() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let rules = json!([
        { "verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"],
          "resources": ["roles", "rolebindings", "clusterrolebindings"] },
        { "verbs": ["get"], "apiGroups": ["tinkerbell.org"], "resources": ["hardware"] },
    ]);
    let role = json!({ "metadata": { "name": "granter" }, "rules": rules });
    // `*` would include `escalate` and `bind`, so it is left out here.
    let mut role = role;
    role["rules"][0]["verbs"] = json!(["create", "update", "patch", "get"]);
    let (code, answer) = admin.post(&format!("{RBAC}/clusterroles"), &[], role).await;
    assert_eq!(code, 201, "{answer}");
    let mut granter = Client::connect(&server).await;
    granter.token = admin.account("granter", "granter").await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let role = |verb: &str| {
        json!({ "metadata": { "name": "new" }, "rules": [{ "verbs": [verb],
            "apiGroups": ["tinkerbell.org"], "resources": ["hardware"] }] })
    };
    let (code, answer) = granter.post(&roles, &[], role("delete")).await;
    let message = "roles.rbac.authorization.k8s.io \"new\" is forbidden: user \
        \"system:serviceaccount:default:granter\" (groups=[\"system:serviceaccounts\" \
        \"system:serviceaccounts:default\" \"system:authenticated\"]) is attempting to grant RBAC \
        permissions not currently held:\n{APIGroups:[\"tinkerbell.org\"], \
        Resources:[\"hardware\"], Verbs:[\"delete\"]}";
    assert_eq!((code, answer["message"].as_str()), (403, Some(message)));
    assert_eq!(granter.post(&roles, &[], role("get")).await.0, 201);
    // A patch cannot escalate either.
    let merge = [(http::header::CONTENT_TYPE, "application/merge-patch+json")];
    let patch = json!({ "rules": role("*")["rules"] }).to_string();
    let (code, _) = granter.json("PATCH", &format!("{roles}/new"), &merge, patch).await;
    assert_eq!(code, 403);
    let (_, kept) = admin.json("GET", &format!("{roles}/new"), &[], "").await;
    assert_eq!(kept["rules"][0]["verbs"], json!(["get"]));
    let binding = |role: &str| {
        json!({ "metadata": { "name": "mine" }, "roleRef": { "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "User", "name": "me" }] })
    };
    let bindings = format!("{RBAC}/clusterrolebindings");
    assert_eq!(granter.post(&bindings, &[], binding("cluster-admin")).await.0, 403);
    assert_eq!(granter.post(&bindings, &[], binding("granter")).await.0, 201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acting_as_somebody_else_takes_permission() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let (_, me) = admin.post(WHOAMI, &[(AS_USER, "jane"), (AS_GROUP, "dev")], json!({})).await;
    let user = &me["status"]["userInfo"];
    assert_eq!(user["username"], "jane");
    assert_eq!(user["groups"], json!(["dev", "system:authenticated"]));
    let (code, _) = admin.json("GET", ALL_HARDWARE, &[(AS_USER, "jane")], "").await;
    assert_eq!(code, 403, "jane holds nothing");
    let mut viewer = Client::connect(&server).await;
    viewer.token = admin.account("viewer", "tinbox:viewer").await;
    let (code, answer) = viewer.json("GET", ALL_HARDWARE, &[(AS_USER, "jane")], "").await;
    let message = "users \"jane\" is forbidden: User \"system:serviceaccount:default:viewer\" \
        cannot impersonate resource \"users\" in API group \"\" at the cluster scope";
    assert_eq!((code.as_u16(), answer["message"].as_str()), (403, Some(message)));
    let masters = [(AS_USER, "admin"), (AS_GROUP, "system:masters")];
    let (code, _) = viewer.json("GET", "/api/v1/secrets", &masters, "").await;
    assert_eq!(code, 403);
    let (code, _) = admin.json("GET", ALL_HARDWARE, &[(AS_GROUP, "dev")], "").await;
    assert_eq!(code, 400, "a group without a user");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_of_the_box_name_their_owner() {
    let server = Server::start().await;
    let read = |file: &str| fs::read_to_string(server.state().join("pki").join(file)).unwrap();
    let authority = rcgen::KeyPair::from_pem(&read("ca.key")).unwrap();
    // The authority's own name, derived from its key.
    let print = stdx::hex(&Sha256::digest(authority.der_bytes())[..4]);
    let mut ours = rcgen::CertificateParams::default();
    ours.distinguished_name = rcgen::DistinguishedName::new();
    let name = format!("Tinbox authority {print}");
    ours.distinguished_name.push(rcgen::DnType::CommonName, name);
    let issuer = rcgen::Issuer::new(ours, authority);
    let stranger = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "root");
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&stranger, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(stranger.serialize_der()).unwrap();
    let mut client = Client::connect_as(&server, Some((certificate.der().clone(), key))).await;
    let nobody = [(AUTHORIZATION, "")];
    let (_, me) = client.json("POST", WHOAMI, &nobody, "{}").await;
    assert_eq!(me["status"]["userInfo"]["username"], "root", "{me}");
    let (code, _) = client.json("GET", "/api/v1/secrets", &nobody, "").await;
    assert_eq!(code, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_about_access_are_answered() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let mut viewer = Client::connect(&server).await;
    viewer.token = admin.account("viewer", "tinbox:viewer").await;
    let ask = |verb: &str, resource: &str| {
        json!({ "spec": { "resourceAttributes": { "verb": verb, "group": "tinkerbell.org",
            "resource": resource, "namespace": "default" } } })
    };
    let (code, answer) = viewer.post(MAY_I, &[], ask("list", "hardware")).await;
    assert_eq!((code, &answer["status"]["allowed"]), (201, &json!(true)));
    assert_eq!(
        answer["status"]["reason"],
        "RBAC: allowed by ClusterRoleBinding \"viewer\" of ClusterRole \"tinbox:viewer\" to \
         ServiceAccount \"viewer/default\""
    );
    let (_, answer) = viewer.post(MAY_I, &[], ask("delete", "hardware")).await;
    assert_eq!(answer["status"], json!({ "allowed": false }));
    let (code, answer) = viewer.post(MAY_I, &[], json!({ "spec": {} })).await;
    assert_eq!(code, 422, "{answer}");
    let theirs = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let mut about = ask("list", "hardware");
    about["spec"]["user"] = json!("system:serviceaccount:default:viewer");
    let (_, answer) = admin.post(theirs, &[], about.clone()).await;
    assert_eq!(answer["status"]["allowed"], true);
    assert_eq!(viewer.post(theirs, &[], about.clone()).await.0, 403);
    let here = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let (_, answer) = admin.post(here, &[], about.clone()).await;
    assert_eq!(answer["status"]["allowed"], true, "{answer}");
    about["spec"]["resourceAttributes"]["namespace"] = json!("other");
    assert_eq!(admin.post(here, &[], about).await.0, 422);
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let (_, answer) = viewer.post(rules, &[], json!({ "spec": { "namespace": "default" } })).await;
    let held = answer["status"]["resourceRules"].as_array().unwrap();
    assert!(held.iter().any(|rule| rule["verbs"] == json!(["get", "list", "watch"])), "{answer}");
    let (code, _) = admin.json("GET", MAY_I, &[], "").await;
    assert_eq!(code, 405);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_leave_a_record_and_no_secret_in_it() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({ "metadata": { "generateName": "bmc-" },
        "stringData": { "password": "hunter2" } });
    let agent = [(http::header::USER_AGENT, "test/1")];
    let (_, made) = admin.post(secrets, &agent, secret).await;
    let name = made["metadata"]["name"].as_str().unwrap().to_owned();
    admin.json("GET", &format!("{secrets}/{name}"), &[], "").await;
    let jane = [(AS_USER, "jane")];
    admin.json("DELETE", &format!("{secrets}/{name}"), &jane, "").await;
    admin.post(MAY_I, &[], json!({ "spec": {} })).await;
    let path = server.state().join("audit/audit.log");
    let uid = made["metadata"]["uid"].clone();
    let _state = server.stop().await;
    // The log is complete after its last user is dropped.
    let deadline = std::time::Instant::now() + crate::server::PATIENCE;
    let log = loop {
        let log = fs::read_to_string(&path).unwrap();
        if log.lines().count() >= 3 {
            break log;
        }
        assert!(std::time::Instant::now() < deadline, "{log}");
        tokio::task::yield_now().await;
    };
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |at: usize, field: &str| records[at][field].clone();
    assert_eq!(records.len(), 3, "{log}");
    assert_eq!((told(0, "verb"), told(0, "code")), (json!("create"), json!(201)));
    assert_eq!((told(0, "name"), told(0, "uid")), (json!(name), uid));
    assert_eq!((told(0, "user"), told(0, "agent")), (json!("admin"), json!("test/1")));
    assert_eq!((told(0, "resource"), told(0, "from")), (json!("secrets"), json!("127.0.0.1")));
    assert_eq!((told(1, "verb"), told(1, "code")), (json!("get"), json!(200)));
    assert_eq!((told(2, "verb"), told(2, "code")), (json!("delete"), json!(403)));
    assert_eq!((told(2, "user"), told(2, "impersonated")), (json!("admin"), json!("jane")));
    assert!(!log.contains("hunter2") && !log.contains("aHVudGVyMg"), "{log}");
}
