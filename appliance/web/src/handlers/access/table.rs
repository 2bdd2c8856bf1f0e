//! Access to each path of the pages. A path that is not in the table is refused.

use axum::http::Method;
use machine_actions::Action;

use web_pages::rights::Permission;

/// Condition under which a path may be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone, also without a session.
    Open,
    /// The claim of a box without an owner.
    Claim,
    /// The login of a box with an owner.
    Login,
    /// Every session, of any role.
    Session,
    /// A session whose user has the permission.
    Need(Permission),
}

/// Returns the condition of a route, by the pattern of its path. Returns `None` for a route that
/// has no row here.
pub fn access(method: &Method, route: &str) -> Option<Access> {
    let reads = *method == Method::GET || *method == Method::HEAD;
    let by = |read, write| Access::Need(if reads { read } else { write });
    Some(match route {
        "/assets/style.css" | "/assets/live.js" | "/assets/keys.js" | "/assets/console.js"
        | "/ca.pem" => Access::Open,
        "/S" | "/S/{code}" | "/S/restore" => Access::Claim,
        "/login" => Access::Login,
        "/logout" | "/theme" | "/account" | "/account/passphrase" | "/account/ssh-keys" => {
            Access::Session
        }
        "/events" | "/panel.png" | "/search" => Access::Need(Permission::See),
        "/machines/{name}/console/output" => Access::Need(Permission::ReadConsole),
        "/templates" | "/templates/{name}" => by(Permission::See, Permission::EditTemplates),
        "/templates/add" | "/templates/{name}/delete" => Access::Need(Permission::EditTemplates),
        "/add-machine" => Access::Need(Permission::Act(Action::Add)),
        "/machines/{name}/show-again" | "/ignore-several" => {
            Access::Need(Permission::Act(Action::Ignore))
        }
        "/notices/dismiss" => Access::Need(Permission::DismissNotices),
        "/install-several" => Access::Need(Permission::Act(Action::Install)),
        "/network/serve-again" => Access::Need(Permission::ServeAgain),
        "/os-images" => by(Permission::See, Permission::EditOsImages),
        "/os-images/upload" | "/os-images/{operation}" => Access::Need(Permission::EditOsImages),
        "/images/{operation}" => Access::Need(Permission::ChangeImages),
        "/cluster-api/pair" => Access::Need(Permission::Pair),
        "/machines/{name}/identify" => Access::Need(Permission::IdentifyMachine),
        "/box/identify" => Access::Need(Permission::Identify),
        "/box/leave" => Access::Need(Permission::Leave),
        "/box/update" | "/box/update/{request}" => Access::Need(Permission::Update),
        "/backup" | "/backup/send" => Access::Need(Permission::Backup),
        "/backup/kept" => Access::Need(Permission::Restore),
        "/tokens" | "/tokens/revoke" | "/kubeconfig" | "/kubeconfig/rotate" => {
            Access::Need(Permission::ChangeTokens)
        }
        "/settings"
        | "/settings/{revision}"
        | "/settings/{revision}/restore"
        | "/setup"
        | "/setup/network"
        | "/setup/time"
        | "/setup/done"
        | "/setup/restart" => Access::Need(Permission::ChangeSettings),
        "/users" | "/users/{name}" | "/users/{name}/{change}" => {
            Access::Need(Permission::ChangeUsers)
        }
        "/audit" => Access::Need(Permission::SeeAudit),
        _ => {
            let word = route.strip_prefix("/machines/{name}/")?;
            Access::Need(Permission::Act(Action::named(word)?))
        }
    })
}
