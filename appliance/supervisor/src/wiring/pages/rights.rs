//! Rights of the users of the pages, by the roles of the API.

use apiserver::Authorizer;
use box_owner::users::User;
use rbac::{Action, MASTERS};
use web_pages::rights::{Need, Permission, Rights};

/// Returns the rights of a user now. The owner has all, also if the roles cannot be read.
pub async fn of(authorizer: &Authorizer, user: &User) -> Rights {
    let group = if user.is_owner() { MASTERS.to_owned() } else { user.role.group() };
    let needs: Vec<(Permission, Action)> = Permission::all()
        .flat_map(|permission| permission.needs().into_iter().map(move |it| (permission, it)))
        .map(|(permission, need)| (permission, action(need)))
        .collect();
    let actions: Vec<Action> = needs.iter().map(|(_, action)| action.clone()).collect();
    let allowed = authorizer.allowed(&rbac::User::known(&user.name, [group]), &actions).await;
    let denied: Vec<Permission> = needs
        .iter()
        .zip(allowed)
        .filter(|(_, allowed)| !allowed)
        .map(|((permission, _), _)| *permission)
        .collect();
    Rights::of(|permission| !denied.contains(&permission))
}

fn action(need: Need) -> Action {
    match need {
        Need::Resource(verb, group, plural) => Action::on(verb, group, plural, "", ""),
        Need::Path(verb, path) => Action::on_path(verb, path),
    }
}
