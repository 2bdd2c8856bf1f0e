//! Links and forms of the page of the box, below its live parts: typed text must stay.

use askama::Template;
use status::view::{StatusView, UpdateState};

use crate::html::rendered;
use crate::rights::{Permission, Visitor};

#[derive(Template)]
#[template(path = "box-links.html")]
struct BoxLinks<'a> {
    who: &'a Visitor,
    /// True for a flashed box, whose settings the pages change.
    has_settings: bool,
}

impl BoxLinks<'_> {
    fn may(&self, permission: Permission) -> bool {
        self.who.may(permission)
    }
}

#[derive(Template)]
#[template(path = "backup.html")]
struct Backup<'a> {
    csrf: &'a str,
    /// Host of the server that gets the daily backup; `None` if none is configured.
    target: Option<&'a str>,
    /// True if the visitor may set the server on the page of the settings.
    may_set: bool,
    kept: Vec<StoredBackup<'a>>,
}

/// Backup that the box made itself.
struct StoredBackup<'a> {
    name: &'a str,
    age: String,
    contents: String,
}

#[derive(Template)]
#[template(path = "update.html")]
struct UpdateForms<'a> {
    csrf: &'a str,
    /// True if an installed update waits for its restart.
    waits: bool,
    /// Version in the other slot; empty if that slot has no working system.
    other: &'a str,
}

/// Renders the forms of updates; empty for a process on another system, which has no slots.
fn update(view: &StatusView, who: &Visitor) -> String {
    use UpdateState::{Installed, Scheduled, Waiting};
    let slots = &view.system.slots;
    if slots.is_empty() {
        return String::new();
    }
    let state = view.update.as_ref().map(|update| update.state);
    let other = slots.iter().find(|slot| !slot.running && slot.good);
    rendered(&UpdateForms {
        csrf: &who.csrf,
        waits: state.is_some_and(|state| matches!(state, Installed | Scheduled | Waiting)),
        other: other.map(|slot| slot.version.as_str()).unwrap_or_default(),
    })
}

/// Returns the backups on the box's own disk.
fn kept(view: &StatusView) -> Vec<StoredBackup<'_>> {
    let shown = view.system.kept_backups.iter().map(|kept| StoredBackup {
        name: &kept.name,
        age: view.ago(kept.made),
        contents: kept.contents(),
    });
    shown.collect()
}

/// Renders the links and forms of the page of the box that the visitor may use.
pub fn forms(view: &StatusView, who: &Visitor) -> String {
    let mut body = super::identify(who);
    body.push_str(&rendered(&BoxLinks { who, has_settings: !view.slot.is_empty() }));
    if who.may(Permission::Update) {
        body.push_str(&update(view, who));
    }
    if who.may(Permission::Backup) {
        let kept = if who.may(Permission::Restore) { kept(view) } else { Vec::new() };
        body.push_str(&rendered(&Backup {
            csrf: &who.csrf,
            target: view.system.backup_target.as_ref().map(|target| target.host.as_str()),
            may_set: who.may(Permission::ChangeSettings) && !view.slot.is_empty(),
            kept,
        }));
    }
    if who.may(Permission::Leave) && !view.slot.is_empty() {
        body.push_str(&super::leave(view, who));
    }
    body
}
