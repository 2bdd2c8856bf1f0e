use std::sync::Arc;

use futures_util::FutureExt as _;
use rbac::{Action, User};
use serde_json::json;
use stdx::SystemClock;
use store::{Options, Store};

use super::{Authorizer, LiveRoles};
use resources::builtin;
use resources::engine::{DeleteOptions, Engine, WriteOptions};

const BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";
const ROLES: &str = "rbac.authorization.k8s.io/clusterroles";

#[tokio::test]
async fn what_somebody_took_in_who_left_is_not_forgotten() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("objects.redb"), Options::default()).unwrap();
    let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(SystemClock));
    let role = json!({ "metadata": { "name": "reader" }, "rules": [
        { "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"] },
    ] });
    engine.create(ROLES, "", role, WriteOptions::default()).await.unwrap();
    let jane = User::known("jane", []);
    let read = Action::on("get", "", "secrets", "default", "a");
    let roles = LiveRoles::new(engine.clone());
    for polls in 1..12 {
        for allowed in [true, false] {
            if allowed {
                let binding = json!({
                    "metadata": { "name": "jane" },
                    "roleRef": { "kind": "ClusterRole", "name": "reader" },
                    "subjects": [{ "kind": "User", "name": "jane" }],
                });
                engine.create(BINDINGS, "", binding, WriteOptions::default()).await.unwrap();
            } else {
                let gone = engine.delete(BINDINGS, "", "jane", DeleteOptions::default()).await;
                gone.unwrap();
            }
            {
                let mut asking = std::pin::pin!(roles.now());
                for _ in 0..polls {
                    if asking.as_mut().now_or_never().is_some() {
                        break;
                    }
                }
            }
            let decision = roles.authorize(&jane, &read).await.unwrap();
            assert_eq!(decision.allowed, allowed, "after {polls} polls");
        }
    }
}

#[tokio::test]
async fn the_users_of_the_pages_have_the_rights_of_their_role_as_it_is_stored_now() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("objects.redb"), Options::default()).unwrap();
    let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(SystemClock));
    let authorizer = Authorizer::new(engine.clone());
    let actions = [
        Action::on("list", "tinbox.dev", "status", "", ""),
        Action::on("create", "tinkerbell.org", "workflows", "", ""),
        Action::on("update", "box.tinbox.dev", "settings", "", ""),
        Action::on_path("post", "/backup"),
    ];
    let of = |group: &str| User::known("jane", [group.to_owned()]);
    let viewer = of("tinbox:viewer");
    assert_eq!(authorizer.allowed(&viewer, &actions).await, [false; 4], "no roles are stored yet");
    resources::roles::ensure(&engine).await.unwrap();
    assert_eq!(authorizer.allowed(&viewer, &actions).await, [true, false, false, false]);
    let operator = of("tinbox:operator");
    assert_eq!(authorizer.allowed(&operator, &actions).await, [true, true, false, false]);
    for administrator in [of("tinbox:admin"), of(rbac::MASTERS)] {
        assert_eq!(authorizer.allowed(&administrator, &actions).await, [true; 4]);
    }
    let gone = engine.delete(BINDINGS, "", "tinbox:viewer", DeleteOptions::default()).await;
    gone.unwrap();
    assert_eq!(authorizer.allowed(&viewer, &actions).await, [false; 4]);
}
