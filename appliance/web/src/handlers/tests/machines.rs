//! Actions of machines: who may, what is shown before, and what is written.

use std::sync::Arc;

use api::core::CONFIG_MAP;
use api::meta::Resource;
use api::network::NETWORK;
use api::tinkerbell::{HARDWARE, RETRY_REQUEST, TEMPLATE, WORKFLOW};
use axum::Router;
use axum::http::StatusCode;
use http_body_util::BodyExt as _;
use machine_actions::ACTIONS;
use objects::Objects as _;
use objects::fake::Memory as Stored;
use serde_json::{Value, json};
use stdx::SystemClock;

use super::{Example, Memory, OWNER, ask, header};
use crate::handlers::{Site, router};
use box_owner::Owner;
use page_http::form_token::masked;

/// Browser of the owner, and the objects of the box.
pub struct Browser {
    pub router: Router,
    pub cookie: String,
    pub csrf: String,
    pub stored: Arc<Stored>,
}

pub struct Answer {
    pub status: StatusCode,
    pub location: String,
    pub page: String,
}

impl Browser {
    /// Returns a browser with a session, at a box with a failed and a running workflow.
    pub fn new() -> Self {
        Self::at(Example::default())
    }

    /// Returns a browser as [`Self::new`], at another box.
    pub fn at(source: Example) -> Self {
        let owner = Arc::new(Owner::open(Arc::<Memory>::default(), Arc::new(SystemClock)).unwrap());
        let token = owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap().token;
        let csrf = masked(&owner.session(&token).unwrap().csrf);
        let stored = Arc::clone(&source.objects);
        let put = |kind: Resource, name: &str, spec: Value, status: Value| {
            let metadata = json!({ "name": name, "namespace": "default" });
            stored.put(kind, json!({ "metadata": metadata, "spec": spec, "status": status }));
        };
        for number in ["01", "07", "04"] {
            let dhcp = json!({ "mac": format!("52:54:00:77:00:{number}") });
            let bmc = json!({ "kind": "Machine", "name": format!("bmc-{number}") });
            let spec = json!({
                "interfaces": [{ "dhcp": dhcp }],
                "disks": [{ "device": "/dev/sda" }],
                "bmcRef": bmc,
            });
            put(HARDWARE, &format!("nuc-{number}"), spec, json!({}));
        }
        let work = |machine: &str| json!({ "hardwareRef": machine, "templateRef": "rocky" });
        put(WORKFLOW, "wf-14", work("nuc-07"), json!({ "state": "FAILED" }));
        put(WORKFLOW, "wf-12", work("nuc-04"), json!({ "state": "RUNNING" }));
        let network = json!({ "interface": "eth1", "address": "10.99.0.1/24", "mode": "reserved" });
        stored.put(NETWORK, json!({ "metadata": { "name": "eth1" }, "spec": network }));
        let cookie = format!("{}={token}", crate::response::COOKIE);
        Self { router: router(Site::new(owner, Arc::new(source))), cookie, csrf, stored }
    }

    pub async fn ask(&self, line: &str, form: &str) -> Answer {
        let answer = ask(&self.router, line, &[("cookie", &self.cookie)], form).await;
        let (status, location) = (answer.status(), header(&answer, "location").to_owned());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        Answer { status, location, page: String::from_utf8_lossy(&body).into_owned() }
    }

    pub async fn send(&self, path: &str, form: &str) -> Answer {
        self.ask(&format!("POST {path}"), &format!("csrf={}&{form}", self.csrf)).await
    }

    async fn workflow(&self, name: &str) -> Value {
        let all = self.stored.list(WORKFLOW, None).await.unwrap();
        all.into_iter().find(|it| it["metadata"]["name"] == name).unwrap()
    }

    pub async fn count(&self, kind: Resource) -> usize {
        self.stored.list(kind, None).await.unwrap().len()
    }
}

#[tokio::test]
async fn no_action_is_done_without_a_session_its_csrf_token_and_its_own_page() {
    let browser = Browser::new();
    for action in ACTIONS {
        let path = format!("/machines/nuc-07/{}", action.description().word);
        let form = format!("csrf={}&workflow=wf-14", browser.csrf);
        for method in ["GET", "POST"] {
            let answer = ask(&browser.router, &format!("{method} {path}"), &[], &form).await;
            assert_eq!(header(&answer, "location"), "/login", "{method} {path}");
        }
        for wrong in ["csrf=guess&workflow=wf-14", "csrf=&workflow=wf-14"] {
            let answer = browser.ask(&format!("POST {path}"), wrong).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
        }
        let foreign = [("cookie", browser.cookie.as_str()), ("sec-fetch-site", "cross-site")];
        let answer = ask(&browser.router, &format!("POST {path}"), &foreign, &form).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path}");
        let shown = browser.ask(&format!("GET {path}"), "").await;
        assert_eq!(shown.status, StatusCode::OK, "{path}");
    }
    assert_eq!(browser.workflow("wf-14").await["metadata"]["annotations"], Value::Null);
    assert_eq!(browser.count(api::bmc::JOB).await, 0);
    assert_eq!(browser.count(WORKFLOW).await, 2);
}

#[tokio::test]
async fn a_failed_machine_is_retried_by_one_button() {
    let browser = Browser::new();
    for page in ["/", "/machines/nuc-07"] {
        let shown = browser.ask(&format!("GET {page}"), "").await.page;
        assert!(shown.contains("action=\"/machines/nuc-07/retry\""), "{page}: {shown}");
        assert!(shown.contains(">Retry from image2disk</button>"), "{page}");
        assert!(shown.contains("href=\"/machines/nuc-07/start-over\""), "{page}");
    }
    let answer = browser.send("/machines/nuc-07/retry", "workflow=wf-14").await;
    assert_eq!(answer.location, "/machines/nuc-07?done=retry");
    let workflow = browser.workflow("wf-14").await;
    assert!(workflow["metadata"]["annotations"][RETRY_REQUEST].is_string());
    let shown = browser.ask("GET /machines/nuc-07?done=retry", "").await.page;
    assert!(shown.contains("The retry is requested."), "{shown}");
    let forged = browser.ask("GET /machines/nuc-07?done=%3Cscript%3E", "").await.page;
    assert!(!forged.contains("role=\"status\">The"), "only the messages of the table");
}

#[tokio::test]
async fn the_pages_of_machine_and_workflow_show_the_log_of_the_machine() {
    let browser = Browser::new();
    for page in ["/machines/nuc-07/log", "/workflows/wf-14"] {
        let shown = browser.ask(&format!("GET {page}"), "").await;
        assert_eq!(shown.status, StatusCode::OK);
        assert!(shown.page.contains("the agent of nuc-07 starts"), "{}", shown.page);
    }
    for page in ["/machines/nuc-07", "/workflows/wf-14"] {
        let shown = browser.ask(&format!("GET {page}"), "").await;
        assert!(shown.page.contains("action=\"/machines/nuc-07/retry\""), "{}", shown.page);
    }
    let link = "href=\"/workflows/wf-14\"";
    for page in ["/workflows", "/machines/nuc-07"] {
        assert!(browser.ask(&format!("GET {page}"), "").await.page.contains(link), "{page}");
    }
    let missing = browser.ask("GET /workflows/none", "").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_action_with_a_loss_shows_it_before() {
    let browser = Browser::new();
    for (path, loss) in [
        ("/machines/nuc-04/cancel", "A disk that was being written does not boot."),
        ("/machines/nuc-07/start-over", "The workflow writes its disks again."),
        ("/machines/nuc-04/power-off", "Data that the machine has not written yet is lost."),
    ] {
        let shown = browser.ask(&format!("GET {path}"), "").await;
        assert!(shown.page.contains(loss), "{path}: {}", shown.page);
        assert!(!shown.page.contains("Type the name"), "{path}");
    }
    assert_eq!(browser.ask("GET /machines/none/cancel", "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_machine_in_service_is_switched_off_only_by_its_name_and_once() {
    let browser = Browser::new();
    let path = "/machines/nuc-01/power-off";
    let shown = browser.ask(&format!("GET {path}"), "").await.page;
    assert!(shown.contains("Type the name of the machine as confirmation."), "{shown}");
    for form in ["id=0a1b2c3d", "id=0a1b2c3d&name=nuc-07"] {
        let answer = browser.send(path, form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer.page.contains("Nothing was done."), "{}", answer.page);
        assert!(answer.page.contains("value=\"0a1b2c3d\""), "the same request");
    }
    assert_eq!(browser.count(api::bmc::JOB).await, 0);
    for _ in 0..2 {
        let answer = browser.send(path, "id=0a1b2c3d&name=nuc-01").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
    }
    assert_eq!(browser.count(api::bmc::JOB).await, 1, "the form was sent twice");
}

#[tokio::test]
async fn a_refused_action_says_why() {
    let browser = Browser::new();
    let answer = browser.send("/machines/nuc-04/retry", "workflow=wf-12").await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    let why = "Cannot retry workflow wf-12: its state is running. Reload the page.";
    assert!(answer.page.contains(why), "{}", answer.page);
}

// The view of these tests never has the new machine, for which a box waits.
#[tokio::test(start_paused = true)]
async fn a_machine_is_added_by_its_mac_address_and_installed() {
    let browser = Browser::new();
    let found = browser.ask("GET /add-machine?mac=54-B2-03-A1-4C-01", "").await;
    assert_eq!(found.location, "/machines/54%3Ab2%3A03%3Aa1%3A4c%3A01/install");
    let wrong = browser.ask("GET /add-machine?mac=54:b2:03:a1:4c", "").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    let shown = browser.ask(&format!("GET {}", found.location), "").await.page;
    for words in ["value=\"debian\" required checked", "value=\"10.99.0.11\"", "power button"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let form = "id=0a1b2c3d&system=debian&name=nuc-99&address=10.99.0.11&disk=%2Fdev%2Fnvme0n1";
    let preview = browser.send(&found.location, &format!("{form}&preview=yes")).await;
    assert_eq!(preview.status, StatusCode::OK);
    assert!(preview.page.contains("DEST_DISK: &#34;/dev/nvme0n1&#34;"), "{}", preview.page);
    assert!(preview.page.contains("value=\"nuc-99\""), "the form keeps its values");
    assert_eq!(browser.count(TEMPLATE).await, 0, "a preview writes nothing");
    for _ in 0..2 {
        let answer = browser.send(&found.location, form).await;
        assert_eq!(answer.location, "/machines/nuc-99?done=install", "{}", answer.page);
    }
    let workflow = browser.workflow("nuc-99-0a1b2c3d").await;
    assert_eq!(workflow["spec"]["templateRef"], "debian");
    assert_eq!((browser.count(WORKFLOW).await, browser.count(TEMPLATE).await), (3, 1));
}

#[tokio::test]
async fn the_mistakes_of_a_form_are_shown_and_its_values_stay() {
    let browser = Browser::new();
    let path = "/machines/54%3Ab2%3A03%3Aa1%3A4c%3A01/install";
    let form = "system=ubuntu&name=Nuc+1&address=10.77.0.5&disk=nvme0n1&ssh_keys=hello";
    let answer = browser.send(path, form).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    for words in [
        "&#34;Nuc 1&#34; is not a valid name",
        "10.77.0.5 is not in a network of this box: 10.99.0.0/24.",
        "&#34;nvme0n1&#34; is not a disk",
        "Line 1 is not a public key",
        "value=\"ubuntu\" required checked",
        "value=\"10.77.0.5\"",
        ">hello</textarea>",
    ] {
        assert!(answer.page.contains(words), "{words}: {}", answer.page);
    }
    assert_eq!(browser.count(HARDWARE).await, 3);
}

#[tokio::test]
async fn a_machine_in_service_is_erased_only_by_its_name() {
    let browser = Browser::new();
    let (path, form) = ("/machines/nuc-01/install", "system=debian&disk=%2Fdev%2Fsda");
    assert!(browser.ask(&format!("GET {path}"), "").await.page.contains("its services stop"));
    let refused = browser.send(path, form).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.page.contains("This machine is called nuc-01"), "{}", refused.page);
    assert_eq!(browser.count(WORKFLOW).await, 2);
    let preview = browser.send(path, &format!("{form}&preview=yes")).await;
    assert_eq!(preview.status, StatusCode::OK, "a preview erases nothing");
    let answer = browser.send(path, &format!("{form}&typed=nuc-01")).await;
    assert_eq!(answer.location, "/machines/nuc-01?done=install", "{}", answer.page);
}

#[tokio::test]
async fn the_buttons_about_the_box_need_their_csrf_token() {
    let browser = Browser::new();
    for (path, answer) in [("/box/identify", "/box"), ("/network/serve-again", "")] {
        let foreign = browser.ask(&format!("POST {path}"), "csrf=guess").await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{path}");
        let unknown = ask(&browser.router, &format!("POST {path}"), &[], "csrf=guess").await;
        assert_eq!(header(&unknown, "location"), "/login", "{path}");
        assert_eq!(browser.send(path, "").await.location, answer, "{path}");
    }
    let refused = browser.send("/network/serve-again", "").await;
    assert!(refused.page.contains("This box serves no network."), "{}", refused.page);
}

#[tokio::test]
async fn several_new_machines_are_installed_by_one_form() {
    let browser = Browser::new();
    let now = browser.ask("GET /", "").await.page;
    assert!(now.contains("href=\"/install-several\""), "{now}");
    let shown = browser.ask("GET /install-several", "").await.page;
    assert_eq!(shown.matches("type=\"checkbox\"").count(), 2, "{shown}");
    let form = "id=0a1b2c3d&system=ubuntu&prefix=nuc-&disk=%2Fdev%2Fnvme0n1";
    let none = browser.send("/install-several", form).await;
    assert_eq!(none.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(none.page.contains("Choose 1 to 64 machines."), "{}", none.page);
    let two = "mac-0=54:b2:03:a1:4c:01&mac-1=54:b2:03:a1:4c:02";
    let foreign = format!("csrf=guess&{form}&{two}");
    let foreign = browser.ask("POST /install-several", &foreign).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    for _ in 0..2 {
        let answer = browser.send("/install-several", &format!("{form}&{two}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.page);
        // Twelve machines have the numbers before.
        for name in ["nuc-13", "nuc-14"] {
            assert!(answer.page.contains(&format!("/machines/{name}\"")), "{}", answer.page);
        }
    }
    assert_eq!((browser.count(HARDWARE).await, browser.count(WORKFLOW).await), (5, 4));
    let addresses: Vec<Value> = browser.stored.list(HARDWARE, None).await.unwrap();
    let address = |name: &str| {
        let of_name = addresses.iter().find(|it| it["metadata"]["name"] == name).unwrap();
        of_name["spec"]["interfaces"][0]["dhcp"]["ip"]["address"].clone()
    };
    assert_eq!((address("nuc-13"), address("nuc-14")), (json!("10.99.0.11"), json!("10.99.0.12")));
}

#[tokio::test]
async fn a_machine_that_cannot_be_installed_does_not_stop_the_others() {
    let browser = Browser::new();
    let form = "system=ubuntu&prefix=nuc-&disk=%2Fdev%2Fnvme0n1&mac-0=nonsense&\
                mac-1=54:b2:03:a1:4c:02";
    let answer = browser.send("/install-several", form).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.page.contains("Machine nonsense no longer exists."), "{}", answer.page);
    assert_eq!(browser.count(WORKFLOW).await, 3, "{}", answer.page);
}

#[tokio::test]
async fn new_machines_are_ignored_one_by_one_or_several_at_once_and_shown_again() {
    let browser = Browser::new();
    let ignored = async || browser.stored.peek(CONFIG_MAP, "dismissed").unwrap()["data"].clone();
    let now = browser.ask("GET /", "").await.page;
    assert!(now.contains("action=\"/machines/54%3Ab2%3A03%3Aa1%3A4c%3A01/ignore\""), "{now}");
    let one = browser.send("/machines/54:b2:03:a1:4c:01/ignore", "").await;
    assert_eq!(one.location, "/machines?done=ignore");
    let list = browser.ask("GET /machines?done=ignore", "").await.page;
    assert!(list.contains("The machine is ignored."), "{list}");
    let macs = "mac-0=54%3Ab2%3A03%3Aa1%3A4c%3A01&mac-1=54%3Ab2%3A03%3Aa1%3A4c%3A02";
    let several = browser.send("/ignore-several", macs).await;
    assert_eq!(several.location, "/machines", "{}", several.page);
    let both = json!({
        "machine.54-b2-03-a1-4c-01": "ignored",
        "machine.54-b2-03-a1-4c-02": "ignored",
    });
    assert_eq!(ignored().await, both);
    for wrong in ["", "mac-0=nuc-07", &format!("{macs}&mac-2=x")] {
        let refused = browser.send("/ignore-several", wrong).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
    }
    assert_eq!(ignored().await, both, "nothing was changed");

    // The example view has one ignored machine.
    assert!(list.contains("action=\"/machines/00%3A11%3A32%3A5c%3A9a%3A01/show-again\""), "{list}");
    let shown = browser.send("/machines/54:b2:03:a1:4c:02/show-again", "").await;
    assert_eq!(shown.location, "/machines");
    assert_eq!(ignored().await, json!({ "machine.54-b2-03-a1-4c-01": "ignored" }));
    let known = browser.send("/machines/nuc-07/ignore", "").await;
    assert_eq!(known.status, StatusCode::CONFLICT);
    assert!(known.page.contains("not the MAC address of an unknown machine"), "{}", known.page);
}

#[tokio::test]
async fn a_notice_is_dismissed_and_a_problem_of_machines_is_not() {
    let browser = Browser::new();
    let now = browser.ask("GET /", "").await.page;
    assert!(now.contains("name=\"key\" value=\"flash\""), "{now}");
    assert!(!now.contains("value=\"machine/nuc-07/Failed\""));
    for key in ["machine/nuc-07/Failed", "none"] {
        assert_eq!(browser.send("/notices/dismiss", &format!("key={key}")).await.location, "/");
        assert_eq!(browser.stored.peek(CONFIG_MAP, "dismissed"), None, "{key}");
    }
    assert_eq!(browser.send("/notices/dismiss", "key=flash").await.location, "/");
    let stored = browser.stored.peek(CONFIG_MAP, "dismissed").unwrap();
    assert_eq!(stored["data"]["notice.flash"], "2026-11-23T14:02:23Z");
}
