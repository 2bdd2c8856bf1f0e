use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use machine_actions::MachineActions;
use status::access::{AccessToken, TokenRequest};
use status::backup::BackupSummary;
use status::log::AuditLine;
use status::reset::BoxAction;
use status::view::work::WorkDetails;
use status::view::{Role, StatusView, example};
use stdx::{Secret, SystemClock};
use tokio::sync::mpsc::Receiver;
use tower::ServiceExt as _;

use super::{NicSetup, Setup, UpdateTimes};
use crate::handlers::{Download, Site, Source, SourceFuture, router};
use box_owner::users::User;
use box_owner::{Owner, PrivateFiles};
use page_http::form_token::masked;
use web_pages::rights::Rights;

#[derive(Default)]
struct Memory(Mutex<HashMap<String, Vec<u8>>>);

impl PrivateFiles for Memory {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().insert(name.to_owned(), content.to_vec());
        Ok(())
    }
}

/// A fake box that records the changes.
#[derive(Default)]
struct FakeSetup {
    nics: Mutex<Vec<NicSetup>>,
    times: Mutex<Option<UpdateTimes>>,
    restarts: Mutex<u32>,
}

impl Setup for FakeSetup {
    fn nics(&self) -> Vec<NicSetup> {
        let name = "eth1".to_owned();
        vec![NicSetup {
            name,
            default_route: true,
            own: "10.99.0.1/24".to_owned(),
            ..NicSetup::default()
        }]
    }
    fn set_nics(&self, nics: &[NicSetup]) -> Result<(), String> {
        if nics.iter().any(|nic| nic.mode == "pool" && nic.confirm != "ab01") {
            return Err("Type the last four digits.".to_owned());
        }
        *self.nics.lock().unwrap() = nics.to_vec();
        Ok(())
    }
    fn times(&self) -> UpdateTimes {
        UpdateTimes::default()
    }
    fn set_times(&self, times: &UpdateTimes) -> Result<(), String> {
        if times.zone == "Nowhere" {
            return Err("There is no such zone.".to_owned());
        }
        *self.times.lock().unwrap() = Some(times.clone());
        Ok(())
    }
    fn zones(&self) -> Vec<&'static str> {
        vec!["Europe/Berlin"]
    }
    fn needs_restart(&self) -> bool {
        true
    }
    fn restart(&self) -> Result<(), String> {
        *self.restarts.lock().unwrap() += 1;
        Ok(())
    }
}

struct FakeSource(Option<Arc<FakeSetup>>, MachineActions);

impl Source for FakeSource {
    fn rights<'a>(&'a self, _: &'a User) -> Pin<Box<dyn Future<Output = Rights> + Send + 'a>> {
        Box::pin(async { Rights::of(|_| true) })
    }
    fn tokens(&self) -> Vec<AccessToken> {
        Vec::new()
    }
    fn create_token(&self, _: &TokenRequest, _: &str) -> Result<Secret, String> {
        Err(String::new())
    }
    fn revoke_token(&self, _: &str) -> Result<(), String> {
        Err(String::new())
    }
    fn audit(&self, _: &str, _: usize) -> Result<Vec<AuditLine>, String> {
        Ok(Vec::new())
    }
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>> {
        Box::pin(async { example::calm() })
    }
    fn panel(&self, _: &StatusView) -> Option<Vec<u8>> {
        None
    }
    fn kubeconfig(&self, _: &str) -> Option<String> {
        None
    }
    fn rotate(&self) -> Result<(), String> {
        Ok(())
    }
    fn ca_pem(&self) -> String {
        String::new()
    }
    fn setup(&self) -> Option<&dyn Setup> {
        self.0.as_deref().map(|fake| fake as &dyn Setup)
    }
    fn backup(&self, _: Secret) -> SourceFuture<'_, Download> {
        Box::pin(async { Err(NOT_HERE.to_owned()) })
    }
    fn restore(&self, _: Receiver<Bytes>, _: Secret) -> SourceFuture<'_, BackupSummary> {
        Box::pin(async { Err(NOT_HERE.to_owned()) })
    }
    fn restore_kept(&self, _: String) -> SourceFuture<'_, BackupSummary> {
        Box::pin(async { Err(NOT_HERE.to_owned()) })
    }
    fn pair(&self, _: crate::PairRequest) -> SourceFuture<'_, ()> {
        Box::pin(async { Err(NOT_HERE.to_owned()) })
    }
    fn machine_actions(&self) -> &MachineActions {
        &self.1
    }
    fn workflow<'a>(&'a self, _: &'a str) -> SourceFuture<'a, Option<WorkDetails>> {
        Box::pin(async { Err(NOT_HERE.to_owned()) })
    }
    fn record(&self, _: crate::PageRequest) {}
    fn leave(&self, _: BoxAction) -> Result<(), String> {
        Err(NOT_HERE.to_owned())
    }
}

/// Error of a function that these tests do not use.
const NOT_HERE: &str = "nothing of the kind is done here";

struct Browser {
    router: Router,
    owner: Arc<Owner>,
    cookie: String,
}

/// Status, `Location` header and body of a response.
type PageContent = (StatusCode, String, String);

impl Browser {
    fn new(fake: Option<Arc<FakeSetup>>) -> Self {
        let keep = Arc::new(Memory::default());
        let owner = Arc::new(Owner::open(keep, Arc::new(SystemClock)).unwrap());
        let actions = MachineActions { objects: Arc::<objects::fake::Memory>::default() };
        let router = router(Site::new(Arc::clone(&owner), Arc::new(FakeSource(fake, actions))));
        Self { router, owner, cookie: String::new() }
    }

    async fn ask(&mut self, method: &str, path: &str, body: &str) -> PageContent {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "10.0.0.9")
            .header("cookie", &self.cookie)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(body.to_owned()))
            .unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let header = |name| answer.headers().get(name).map_or("", |it| it.to_str().unwrap());
        let (status, location) = (answer.status(), header("location").to_owned());
        if let Some(cookie) = header("set-cookie").split(';').next().filter(|it| !it.is_empty()) {
            self.cookie = cookie.to_owned();
        }
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, location, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn claim(&mut self) -> String {
        let code = self.owner.code().unwrap().0;
        let form = format!("code={code}&passphrase=long+enough&again=long+enough");
        self.ask("POST", "/S", &form).await.1
    }

    /// Returns the CSRF token of the session.
    fn csrf(&self) -> String {
        masked(&self.owner.session(self.cookie.split_once('=').unwrap().1).unwrap().csrf)
    }
}

#[tokio::test]
async fn whoever_claims_is_asked_for_networks_then_times_then_told_what_to_do() {
    let fake = Arc::new(FakeSetup::default());
    let mut browser = Browser::new(Some(Arc::clone(&fake)));
    for path in ["/setup", "/setup/network", "/setup/time", "/setup/done"] {
        let (status, location, _) = browser.ask("GET", path, "").await;
        assert_eq!((status, location.as_str()), (StatusCode::SEE_OTHER, "/S"), "{path}");
    }
    assert_eq!(browser.claim().await, "/setup/network");
    let (status, _, page) = browser.ask("GET", "/setup/network", "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("name=\"role.eth1\"") && page.contains("href=\"/setup/time\">Skip"));

    let csrf = browser.csrf();
    let form = "role.eth1=provisioning&mode.eth1=pool&own.eth1=10.9.0.1%2F24&pool.eth1=";
    let (status, ..) = browser.ask("POST", "/setup/network", form).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "a form without the session's secret");
    let form = format!("csrf={csrf}&{form}");
    let (status, _, page) = browser.ask("POST", "/setup/network", &form).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("Type the last four digits.") && page.contains("10.9.0.1/24"));
    assert!(fake.nics.lock().unwrap().is_empty(), "nothing was set");
    let form = format!("{form}&confirm.eth1=AB01&role.eth7=both&nonsense=1");
    let (_, location, _) = browser.ask("POST", "/setup/network", &form).await;
    assert_eq!(location, "/setup/time");
    let nics = fake.nics.lock().unwrap().clone();
    assert_eq!((nics.len(), nics[0].role, nics[0].mode.as_str()), (1, Role::Provisioning, "pool"));

    let wrong = format!("csrf={csrf}&zone=Nowhere&restart=ask&from=02%3A00&to=05%3A00");
    let (status, _, page) = browser.ask("POST", "/setup/time", &wrong).await;
    assert!(
        status == StatusCode::UNPROCESSABLE_ENTITY && page.contains("value=\"02:00\""),
        "{page}"
    );
    let right = wrong.replace("Nowhere", "Europe%2FBerlin");
    let (_, location, _) = browser.ask("POST", "/setup/time", &right).await;
    assert_eq!(location, "/setup/done");
    let times = fake.times.lock().unwrap().clone().unwrap();
    assert_eq!(
        (times.zone.as_str(), times.from.as_str(), times.ask),
        ("Europe/Berlin", "02:00", true)
    );

    let (_, _, page) = browser.ask("GET", "/setup/done", "").await;
    assert!(page.contains("/kubeconfig") && page.contains("action=\"/setup/restart\""));
    let (status, ..) = browser.ask("POST", "/setup/restart", "csrf=guess").await;
    assert_eq!((status, *fake.restarts.lock().unwrap()), (StatusCode::FORBIDDEN, 0));
    let (_, _, page) = browser.ask("POST", "/setup/restart", &format!("csrf={csrf}")).await;
    assert!(page.contains("The box restarts") && *fake.restarts.lock().unwrap() == 1);
}

#[tokio::test]
async fn a_box_on_somebody_elses_system_is_not_set_up_here() {
    let mut browser = Browser::new(None);
    assert_eq!(browser.claim().await, "/");
    let (status, _, message) = browser.ask("GET", "/setup/network", "").await;
    assert!(
        status == StatusCode::NOT_FOUND && message.contains("a program on a host system"),
        "{message}"
    );
}
