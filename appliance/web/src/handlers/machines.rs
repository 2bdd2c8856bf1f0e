//! Actions of machines: the pages before them, and the requests.

pub(crate) mod console;
mod several;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use machine_actions::{
    ACTIONS, Action, ActionError, ActionRequest, Confirmation, FieldError, InstallForm,
    confirmation,
};
use serde::Deserialize;
use status::view::{Machine, StatusView};
use stdx::MacAddr;
use tokio::time::sleep;

use super::access::foreign;
use super::{PageResponse, Site, SiteState};
use crate::handlers::Caller;
use crate::response::{html, see};
use web_pages::machine::forms::{self as machine_forms, InstallPage};
use web_pages::rights::Visitor;
use web_pages::{self as page, link};

/// Maximum size of a form in bytes: keys and user data at their limits, in URL encoding.
const FORM_BYTES_MAX: usize = 320 << 10;
/// Number of hexadecimal digits of a request id.
const ID_DIGITS: usize = 8;
/// Maximum number of looks for a new machine in the view, before its page is shown.
const LOOKS_MAX: u32 = 20;
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    let mut router = Router::new()
        .route("/add-machine", get(add_by_mac))
        .route("/machines/{name}/identify", post(identify));
    for action in ACTIONS {
        let row = action.description();
        let path = format!("/machines/{{name}}/{}", row.word);
        let methods = match row.confirmation {
            Confirmation::Form => {
                let show = move |state, name, who| show_form(action, state, name, who);
                let send = move |state, name, who, form| send_form(action, state, name, who, form);
                get(show).post(send)
            }
            _ => {
                let show = move |state, name, who| show(action, state, name, who);
                let send = move |state, name, who, form| send(action, state, name, who, form);
                get(show).post(send)
            }
        };
        router = router.route(&path, methods);
    }
    router
        .merge(several::routes())
        .route_layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .merge(console::routes())
}

/// Returns a new id of a request.
fn id() -> String {
    stdx::random_hex(ID_DIGITS / 2)
}

/// Returns the id of a form; a new one if the form has none that is valid.
fn id_of(text: &str) -> String {
    let is_valid = text.len() == ID_DIGITS && text.bytes().all(|it| it.is_ascii_hexdigit());
    if is_valid { text.to_ascii_lowercase() } else { id() }
}

fn unknown(view: &StatusView, name: &str) -> PageResponse {
    let why = format!("No machine is called {name}.");
    html(StatusCode::NOT_FOUND, page::sentence(view, "Not found", &why))
}

#[derive(Deserialize)]
struct MacQuery {
    mac: String,
}

#[derive(Deserialize)]
struct IdentifyForm {
    csrf: String,
}

/// Lets a machine blink by its BMC, so that a person finds it.
async fn identify(
    State(site): SiteState,
    Path(name): Path<String>,
    who: Caller,
    Form(form): Form<IdentifyForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let (status, text) = match site.source.identify_machine(&name).await {
        Ok(()) => (StatusCode::OK, format!("{name} blinks for a minute.")),
        Err(why) => (StatusCode::CONFLICT, why),
    };
    html(status, page::sentence(&*site.view().await, "Identify", &text))
}

/// Leads to the form for the machine with a typed MAC address.
async fn add_by_mac(State(site): SiteState, Query(query): Query<MacQuery>) -> PageResponse {
    let typed = query.mac.trim().to_ascii_lowercase().replace('-', ":");
    match typed.parse::<MacAddr>() {
        Ok(mac) => {
            let name = mac.to_string();
            see(&format!("{}/{}", link(&name), Action::Install.description().word))
        }
        Err(_) => {
            let view = site.view().await;
            let why = format!(
                "{typed:?} is not a MAC address: expected six pairs of digits, such as \
                 54:b2:03:a1:4c:01."
            );
            html(StatusCode::UNPROCESSABLE_ENTITY, page::sentence(&view, "Not added", &why))
        }
    }
}

/// Shows the effect of an action, with the button that requests it.
async fn show(
    action: Action,
    State(site): SiteState,
    Path(name): Path<String>,
    who: Caller,
) -> PageResponse {
    let view = site.view().await;
    let Some(machine) = view.machines.iter().find(|it| it.name.as_str() == name) else {
        return unknown(&view, &name);
    };
    let page = machine_forms::confirm(&view, &who, (action, machine), (&id(), ""));
    html(StatusCode::OK, page)
}

#[derive(Deserialize)]
struct ConfirmForm {
    csrf: String,
    #[serde(default)]
    id: String,
    /// Workflow that the person saw.
    #[serde(default)]
    workflow: String,
    /// Name of the machine, typed as confirmation.
    #[serde(default)]
    name: String,
}

/// Requests an action, after the confirmation that it needs.
async fn send(
    action: Action,
    State(site): SiteState,
    Path(name): Path<String>,
    who: Caller,
    Form(form): Form<ConfirmForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let view = site.view().await;
    let Some(machine) = view.machines.iter().find(|it| it.name.as_str() == name) else {
        return unknown(&view, &name);
    };
    let wants_name = confirmation(action, machine) == Confirmation::Name;
    if wants_name && form.name.trim() != name {
        let why = format!("This machine is called {name}, not {:?}. Nothing was done.", form.name);
        let page = machine_forms::confirm(&view, &who, (action, machine), (&form.id, &why));
        return html(StatusCode::UNPROCESSABLE_ENTITY, page);
    }
    let (workflow, id) = (form.workflow, id_of(&form.id));
    let request = ActionRequest { action, machine: name.clone(), workflow, id };
    match site.source.machine_actions().request(&request).await {
        Ok(()) => done(&site, action, &name).await,
        Err(error) => {
            let title = action.description().label;
            html(StatusCode::CONFLICT, page::sentence(&view, title, &stdx::sentences(&error)))
        }
    }
}

/// Leads to the page of the machine, or to the list, with a message about the action.
async fn done(site: &Site, action: Action, machine: &str) -> PageResponse {
    *site.shown.lock().await = None;
    let word = action.description().word;
    match action {
        // The machine has no page any more.
        Action::Ignore => see(&format!("/machines?done={word}")),
        _ => see(&format!("{}?done={word}", link(machine))),
    }
}

/// Shows the form of an installation with proposed values.
async fn show_form(
    action: Action,
    State(site): SiteState,
    Path(name): Path<String>,
    who: Caller,
) -> PageResponse {
    let view = site.view().await;
    let Some(machine) = machine_forms::machine(&view, &name) else { return unknown(&view, &name) };
    form_page(&site, (&view, &who), (action, &machine), FilledForm::default()).await
}

/// Form as a person filled it, with the result of its check.
#[derive(Default)]
struct FilledForm {
    /// Values; `None` for a form with proposed values.
    values: Option<InstallForm>,
    mistakes: Vec<FieldError>,
    error: String,
    preview: String,
}

async fn form_page(
    site: &Site,
    (view, who): (&StatusView, &Visitor),
    (action, machine): (Action, &Machine),
    filled: FilledForm,
) -> PageResponse {
    let title = action.description().label;
    let choices = match site.source.machine_actions().choices(&machine.name).await {
        Ok(choices) => choices,
        Err(error) => {
            return html(
                StatusCode::CONFLICT,
                page::sentence(view, title, &stdx::sentences(&error)),
            );
        }
    };
    let refused = !filled.mistakes.is_empty() || !filled.error.is_empty();
    let values = filled.values.unwrap_or_else(|| InstallForm {
        machine: machine.name.to_string(),
        system: choices.systems.first().map(|it| it.name.clone()).unwrap_or_default(),
        name: choices.name.clone(),
        disk: choices.disks.first().map_or("/dev/nvme0n1", |it| it.device.as_str()).to_owned(),
        address: choices.address.clone(),
        ssh_keys: choices.ssh_keys.clone(),
        user_data: String::new(),
        id: id(),
    });
    let page = machine_forms::install(
        view,
        who,
        &InstallPage {
            action,
            machine,
            choices: &choices,
            form: &values,
            mistakes: &filled.mistakes,
            error: &filled.error,
            preview: &filled.preview,
        },
    );
    html(if refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK }, page)
}

#[derive(Deserialize)]
struct SentForm {
    csrf: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    system: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    disk: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    ssh_keys: String,
    #[serde(default)]
    user_data: String,
    /// Name of the machine, typed as confirmation.
    #[serde(default)]
    typed: String,
    /// Present if the person wants to see the workflow first.
    #[serde(default)]
    preview: String,
}

/// Requests an installation, or adds a machine.
async fn send_form(
    action: Action,
    State(site): SiteState,
    Path(name): Path<String>,
    who: Caller,
    Form(sent): Form<SentForm>,
) -> PageResponse {
    if !who.sent(&sent.csrf) {
        return foreign();
    }
    let view = site.view().await;
    let Some(machine) = machine_forms::machine(&view, &name) else { return unknown(&view, &name) };
    let previews = !sent.preview.is_empty();
    let wants_typed = confirmation(action, &machine) == Confirmation::Name && !previews;
    let typed = sent.typed.trim().to_owned();
    let values = InstallForm {
        machine: name.clone(),
        system: sent.system,
        name: sent.name,
        disk: sent.disk,
        address: sent.address,
        ssh_keys: sent.ssh_keys,
        user_data: sent.user_data,
        id: id_of(&sent.id),
    };
    let mut filled = FilledForm { values: Some(values.clone()), ..FilledForm::default() };
    if wants_typed && typed != name {
        filled.error = format!("This machine is called {name}, not {typed:?}. Nothing was done.");
        return form_page(&site, (&view, &who), (action, &machine), filled).await;
    }
    let actions = site.source.machine_actions();
    let requested = match (action, previews) {
        (_, true) => {
            actions.preview(&values).await.map(|text| filled.preview = text).map(|()| None)
        }
        (Action::Add, _) => actions.add(&values).await.map(Some),
        _ => actions.install(&values).await.map(|installed| Some(installed.machine)),
    };
    match requested {
        Ok(Some(machine)) => {
            wait_for(&site, &machine).await;
            return done(&site, action, &machine).await;
        }
        Ok(None) => {}
        Err(ActionError::Fields(mistakes)) => filled.mistakes = mistakes,
        Err(error) => filled.error = stdx::sentences(&error),
    }
    form_page(&site, (&view, &who), (action, &machine), filled).await
}

/// Waits a moment until the view has a new machine, whose page is shown next.
async fn wait_for(site: &Site, machine: &str) {
    for _ in 0..LOOKS_MAX {
        *site.shown.lock().await = None;
        let view = site.view().await;
        if view.machines.iter().any(|it| it.name.as_str() == machine) {
            return;
        }
        sleep(LOOK_EVERY).await;
    }
}
