//! Form that installs several new machines, and its result.

use askama::Template;
use machine_actions::{Action, InstallForm, SystemChoice};
use status::view::{MachineState, StatusView};

use crate::html::rendered;
use crate::rights::{Permission, Visitor};
use crate::shell::with_rail;

/// Path of the form.
pub const PATH: &str = "/install-several";

#[derive(Template)]
#[template(path = "install-several.html")]
struct Several<'a> {
    csrf: &'a str,
    machines: Vec<Row>,
    systems: &'a [SystemChoice],
    prefix: &'a str,
    form: &'a InstallForm,
    error: &'a str,
    may_ignore: bool,
}

struct Row {
    mac: String,
    detail: String,
    chosen: bool,
}

/// Content of the form.
pub struct SeveralPage<'a> {
    /// Systems to choose from.
    pub systems: &'a [SystemChoice],
    /// Values that all machines share.
    pub form: &'a InstallForm,
    /// Start of the names.
    pub prefix: &'a str,
    /// MAC addresses that are checked; `None` for all.
    pub chosen: Option<&'a [String]>,
    /// Reason why the last request was refused; may be empty.
    pub error: &'a str,
}

/// Result for one machine.
pub struct SeveralResult {
    /// MAC address of the machine.
    pub mac: String,
    /// Name of the machine; empty if it was not requested.
    pub name: String,
    /// Path of the machine's page; empty if it was not requested.
    pub link: String,
    /// True if nothing was requested for the machine.
    pub failed: bool,
    /// Result as a sentence.
    pub text: String,
}

#[derive(Template)]
#[template(path = "install-results.html")]
struct Results<'a> {
    results: &'a [SeveralResult],
}

/// Renders the form for all new machines of the view.
pub fn form(view: &StatusView, who: &Visitor, page: &SeveralPage<'_>) -> String {
    let new = view.machines.iter().filter(|it| it.state == MachineState::New);
    let machines = new.map(|it| Row {
        mac: it.name.to_string(),
        detail: it.last_seen.map(|at| format!("last request {}", view.ago(at))).unwrap_or_default(),
        chosen: page.chosen.is_none_or(|chosen| chosen.iter().any(|mac| *mac == it.name.as_str())),
    });
    let SeveralPage { systems, form, prefix, error, .. } = *page;
    let mut machines: Vec<Row> = machines.collect();
    machines.sort_by(|one, other| one.mac.cmp(&other.mac));
    let (csrf, may_ignore) = (&who.csrf, who.may(Permission::Act(Action::Ignore)));
    let body = rendered(&Several { csrf, machines, systems, prefix, form, error, may_ignore });
    with_rail(view, who, ("Install", "/"), &body)
}

/// Renders the result of each machine.
pub fn results(view: &StatusView, who: &Visitor, results: &[SeveralResult]) -> String {
    with_rail(view, who, ("Install", "/"), &rendered(&Results { results }))
}
