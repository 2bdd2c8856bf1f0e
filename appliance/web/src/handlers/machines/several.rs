//! Installation of several new machines by one form.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use dismissals::ObjectError;
use machine_actions::{InstallForm, SystemChoice};
use serde::Deserialize;
use status::view::{Machine, MachineState, StatusView};
use stdx::MacAddr;

use super::{id, id_of, unknown};
use crate::handlers::Caller;
use crate::handlers::access::foreign;
use crate::handlers::audit::about;
use crate::handlers::{PageResponse, Site, SiteState};
use crate::response::{html, see};
use web_pages::machine::several::{self, PATH, SeveralPage, SeveralResult};
use web_pages::{link, sentence};

/// Maximum number of machines in one request.
const MACHINES_MAX: usize = 64;
/// Proposed start of the names.
const PREFIX: &str = "nuc-";

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route(PATH, get(show).post(send))
        .route("/ignore-several", post(ignore))
        .route("/machines/{name}/show-again", post(show_again))
}

fn new_machines(view: &StatusView) -> impl Iterator<Item = &Machine> {
    view.machines.iter().filter(|it| it.state == MachineState::New)
}

/// Returns the systems that every new machine can get.
async fn systems(site: &Site, view: &StatusView) -> Vec<SystemChoice> {
    let Some(first) = new_machines(view).next() else { return Vec::new() };
    let choices = site.source.machine_actions().choices(&first.name).await;
    choices.map(|choices| choices.systems).unwrap_or_default()
}

async fn show(State(site): SiteState, who: Caller) -> PageResponse {
    let view = site.view().await;
    let systems = systems(&site, &view).await;
    let values = InstallForm {
        system: systems.first().map(|it| it.name.clone()).unwrap_or_default(),
        disk: "/dev/nvme0n1".to_owned(),
        id: id(),
        ..InstallForm::default()
    };
    let (systems, form) = (&systems[..], &values);
    let page = SeveralPage { systems, form, prefix: PREFIX, chosen: None, error: "" };
    html(StatusCode::OK, several::form(&view, &who, &page))
}

#[derive(Deserialize)]
struct SeveralForm {
    csrf: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    system: String,
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    disk: String,
    #[serde(default)]
    ssh_keys: String,
    /// The chosen MAC addresses, as `mac-0`, `mac-1`.
    #[serde(flatten)]
    rest: BTreeMap<String, String>,
}

/// Installs each chosen machine. A machine that cannot be installed does not stop the others.
async fn send(State(site): SiteState, who: Caller, Form(sent): Form<SeveralForm>) -> PageResponse {
    if !who.sent(&sent.csrf) {
        return foreign();
    }
    let view = site.view().await;
    let values = InstallForm {
        system: sent.system,
        disk: sent.disk,
        ssh_keys: sent.ssh_keys,
        id: id_of(&sent.id),
        ..InstallForm::default()
    };
    let macs = chosen(sent.rest);
    if macs.is_empty() || macs.len() > MACHINES_MAX {
        let error = format!("Choose 1 to {MACHINES_MAX} machines.");
        let (systems, prefix) = (systems(&site, &view).await, &sent.prefix);
        let (systems, form, chosen) = (&systems[..], &values, Some(&macs[..]));
        let page = SeveralPage { systems, form, prefix, chosen, error: &error };
        return html(StatusCode::UNPROCESSABLE_ENTITY, several::form(&view, &who, &page));
    }
    let mut results = Vec::new();
    let mut names = Names::new(&view, sent.prefix.trim());
    for mac in macs {
        results.push(install(&site, &values, mac, names.next()).await);
    }
    *site.shown.lock().await = None;
    let failed = results.iter().any(|it| it.failed);
    let status = if failed { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    html(status, several::results(&view, &who, &results))
}

/// Returns the chosen MAC addresses of a form, sorted.
fn chosen(fields: BTreeMap<String, String>) -> Vec<String> {
    let macs = fields.into_iter().filter(|(name, _)| name.starts_with("mac-"));
    let mut macs: Vec<String> = macs.map(|(_, mac)| mac).collect();
    // `mac-10` comes before `mac-2` in the map.
    macs.sort_unstable();
    macs
}

#[derive(Deserialize)]
struct IgnoreForm {
    csrf: String,
    #[serde(flatten)]
    rest: BTreeMap<String, String>,
}

/// Ignores each chosen machine.
async fn ignore(State(site): SiteState, who: Caller, Form(sent): Form<IgnoreForm>) -> PageResponse {
    if !who.sent(&sent.csrf) {
        return foreign();
    }
    let typed = chosen(sent.rest);
    let macs: Vec<MacAddr> = typed.iter().filter_map(|mac| mac.parse().ok()).collect();
    if macs.is_empty() || macs.len() < typed.len() || macs.len() > MACHINES_MAX {
        let why = format!("Choose 1 to {MACHINES_MAX} machines. Nothing was changed.");
        let view = site.view().await;
        return html(StatusCode::UNPROCESSABLE_ENTITY, sentence(&view, "Ignore", &why));
    }
    let ignored = site.dismissals().ignore(&macs).await;
    about(listed(&site, ignored).await, &typed.join(" "))
}

/// Ends the ignoring of a machine.
async fn show_again(
    State(site): SiteState,
    Path(name): Path<String>,
    who: Caller,
    Form(sent): Form<IgnoreForm>,
) -> PageResponse {
    if !who.sent(&sent.csrf) {
        return foreign();
    }
    let Ok(mac) = name.parse() else { return unknown(&*site.view().await, &name) };
    let shown = site.dismissals().show_again(mac).await;
    listed(&site, shown).await
}

/// Leads to the list of machines after a change of the ignored machines.
async fn listed(site: &Site, changed: Result<(), ObjectError>) -> PageResponse {
    match changed {
        Ok(()) => {
            *site.shown.lock().await = None;
            see("/machines")
        }
        Err(error) => {
            let view = site.view().await;
            html(StatusCode::CONFLICT, sentence(&view, "Ignore", &stdx::sentences(&error)))
        }
    }
}

async fn install(site: &Site, values: &InstallForm, mac: String, name: String) -> SeveralResult {
    let actions = site.source.machine_actions();
    // The address is free now: the machine before has its own already.
    let requested = match actions.choices(&mac).await {
        Ok(choices) => {
            let (machine, address) = (mac.clone(), choices.address);
            let form = InstallForm { machine, name, address, ..values.clone() };
            actions.install(&form).await
        }
        Err(error) => Err(error),
    };
    match requested {
        Ok(installed) => SeveralResult {
            mac,
            link: link(&installed.machine),
            name: installed.machine,
            failed: false,
            text: "The installation is requested. Switch the machine on.".to_owned(),
        },
        Err(error) => SeveralResult {
            mac,
            name: String::new(),
            link: String::new(),
            failed: true,
            text: stdx::sentences(&error),
        },
    }
}

/// Names for new machines: the prefix and the numbers that no machine has.
struct Names<'a> {
    view: &'a StatusView,
    prefix: &'a str,
    number: u32,
}

impl<'a> Names<'a> {
    fn new(view: &'a StatusView, prefix: &'a str) -> Self {
        Self { view, prefix, number: 0 }
    }

    fn next(&mut self) -> String {
        loop {
            self.number += 1;
            let name = format!("{}{:02}", self.prefix, self.number);
            if self.view.machines.iter().all(|it| it.name.as_str() != name) {
                return name;
            }
        }
    }
}
