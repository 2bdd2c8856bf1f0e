use std::collections::BTreeSet;

use api::management_cluster::MANAGEMENT_CLUSTER;
use api::meta::Resource;
use api::os_image::OS_IMAGE;
use api::tinkerbell::{self, TEMPLATE};
use rbac::bootstrap::{cluster_role_bindings, cluster_roles};
use rbac::{Action as Request, Roles, User};

use super::{
    HARDWARE, MANAGEMENT_CLUSTERS, Need, OS_IMAGES, Permission, Rights, TEMPLATES, Visitor,
};
use box_owner::users::{ROLES, Role, User as Account};

/// CSRF token of the visitor in tests.
pub const CSRF: &str = "c5rf";

/// Returns a visitor with the rights of the default ClusterRole.
pub fn visitor(role: Role) -> Visitor {
    let ssh_keys = vec!["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA jane@laptop".to_owned()];
    let user = Account { name: "jane".to_owned(), role, ssh_keys };
    Visitor { csrf: CSRF.to_owned(), ..Visitor::new(user, rights(role), String::new()) }
}

/// Returns the rights of the default ClusterRole.
pub fn rights(role: Role) -> Rights {
    let mut roles = Roles::default();
    for (plural, objects) in
        [("clusterroles", cluster_roles()), ("clusterrolebindings", cluster_role_bindings())]
    {
        objects.iter().for_each(|object| roles.put(plural, object));
    }
    let user = User::known("jane", [role.group()]);
    Rights::of(|permission| {
        permission.needs().into_iter().all(|need| {
            let request = match need {
                Need::Resource(verb, group, plural) => Request::on(verb, group, plural, "", ""),
                Need::Path(verb, path) => Request::on_path(verb, path),
            };
            roles.authorize(&user, &request).allowed
        })
    })
}

#[test]
fn each_role_has_the_permissions_of_its_sentence() {
    let [viewer, operator, admin] = ROLES.map(rights);
    for permission in Permission::all() {
        assert!(admin.may(permission), "{permission:?}");
        let reads = permission.is_for_viewers();
        assert_eq!(viewer.may(permission), reads, "{permission:?}");
        let expected = reads || permission.is_for_operators();
        assert_eq!(operator.may(permission), expected, "{permission:?}");
    }
}

#[test]
fn the_kinds_of_the_needs_exist() {
    let of = |kind: Resource| (kind.group, kind.plural);
    assert_eq!(HARDWARE, of(tinkerbell::HARDWARE));
    assert_eq!(TEMPLATES, of(TEMPLATE));
    assert_eq!(MANAGEMENT_CLUSTERS, of(MANAGEMENT_CLUSTER));
    assert_eq!(OS_IMAGES, of(OS_IMAGE));
}

#[test]
fn each_permission_has_a_bit_of_its_own() {
    let bits: BTreeSet<u64> = Permission::all().map(Permission::bit).collect();
    assert_eq!(bits.len(), Permission::all().count());
    assert!(bits.iter().all(|bit| bit.is_power_of_two()));
    let only = Rights::of(|permission| permission == Permission::Pair);
    assert!(only.may(Permission::Pair) && !only.may(Permission::See));
}
