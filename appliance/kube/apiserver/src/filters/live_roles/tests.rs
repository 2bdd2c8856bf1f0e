use std::sync::Arc;

use futures_util::FutureExt as _;
use rbac::{Action, User};
use serde_json::json;
use stdx::SystemClock;
use store::{Options, Store};

use super::LiveRoles;
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
