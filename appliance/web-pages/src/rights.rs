//! Rights of a person on the pages. Each permission names the requests to the API that it stands
//! for, so the roles of the API (RBAC) decide about the pages too.

use box_owner::users::{Role, User};
use machine_actions::{ACTIONS, Action};

use page_http::form_token::{is_masked, masked};

/// API group of data that the box does not store as objects.
const OWN: &str = "tinbox.dev";
/// API group and plural name of Hardware.
const HARDWARE: (&str, &str) = ("tinkerbell.org", "hardware");
/// API group and plural name of Templates.
const TEMPLATES: (&str, &str) = ("tinkerbell.org", "templates");
/// API group and plural name of OSImages.
const OS_IMAGES: (&str, &str) = ("tinbox.dev", "osimages");
/// API group and plural name of the management clusters that the box is paired with.
const MANAGEMENT_CLUSTERS: (&str, &str) = ("tinbox.dev", "managementclusters");
/// API group of the box's own system, which only administrators may use.
const SYSTEM: &str = "box.tinbox.dev";

/// Something that a person may or may not do on the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Reads the pages about machines, workflows, networks and images.
    See,
    /// Reads the Hardware of machines, with the user data of the installed systems.
    ReadHardware,
    /// Reads sensors, event log and inventory from the BMC of a machine.
    ReadBmc,
    /// Reads the log of a machine.
    ReadLog,
    /// Reads the serial console of a machine.
    ReadConsole,
    /// Reads the log of the box.
    SeeLog,
    /// Requests an action on a machine.
    Act(Action),
    /// Creates, changes and deletes Templates.
    EditTemplates,
    /// Dismisses notices about the box.
    DismissNotices,
    /// Lets DHCP serve again after another server was found.
    ServeAgain,
    /// Pins, unpins and removes images.
    ChangeImages,
    /// Uploads, adds and deletes OS images.
    EditOsImages,
    /// Lets the box blink, so that a person finds it.
    Identify,
    /// Lets a machine blink by its BMC.
    IdentifyMachine,
    /// Changes the settings of the box.
    ChangeSettings,
    /// Restarts, switches off and resets the box.
    Leave,
    /// Installs updates of the box's system, and returns to the previous system.
    Update,
    /// Downloads a backup of all data.
    Backup,
    /// Replaces all data by a backup.
    Restore,
    /// Pairs the box with a management cluster.
    Pair,
    /// Downloads the administrator's kubeconfig and replaces tokens.
    ChangeTokens,
    /// Adds, changes and removes users.
    ChangeUsers,
    /// Reads the audit log.
    SeeAudit,
}

/// Permissions besides those of [`ACTIONS`], in the order of their bits.
const OTHERS: [Permission; 22] = [
    Permission::See,
    Permission::ReadHardware,
    Permission::ReadBmc,
    Permission::ReadLog,
    Permission::ReadConsole,
    Permission::SeeLog,
    Permission::EditTemplates,
    Permission::DismissNotices,
    Permission::ServeAgain,
    Permission::ChangeImages,
    Permission::EditOsImages,
    Permission::Identify,
    Permission::IdentifyMachine,
    Permission::ChangeSettings,
    Permission::Leave,
    Permission::Update,
    Permission::Backup,
    Permission::Restore,
    Permission::Pair,
    Permission::ChangeTokens,
    Permission::ChangeUsers,
    Permission::SeeAudit,
];

/// Request to the API that a permission stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Verb, API group and resource, at the cluster scope.
    Resource(&'static str, &'static str, &'static str),
    /// HTTP method in lower case, and path.
    Path(&'static str, &'static str),
}

impl Permission {
    /// Returns all permissions, in the order of their bits.
    pub fn all() -> impl Iterator<Item = Self> {
        OTHERS.into_iter().chain(ACTIONS.map(Self::Act))
    }

    /// Returns the requests to the API that a person must be allowed to send.
    pub fn needs(self) -> Vec<Need> {
        match self {
            Self::See => vec![Need::Resource("list", OWN, "status")],
            Self::ReadHardware => vec![Need::Resource("get", HARDWARE.0, HARDWARE.1)],
            Self::ReadBmc => {
                let on = |reading| Need::Resource("get", OWN, reading);
                ["bmcmachines/sensors", "bmcmachines/inventory", "bmcmachines/events"]
                    .map(on)
                    .into()
            }
            Self::ReadLog => vec![Need::Resource("get", OWN, "hardware/log")],
            Self::ReadConsole => vec![Need::Resource("get", OWN, "hardware/console")],
            Self::SeeLog => vec![Need::Resource("list", SYSTEM, "log")],
            Self::Act(action) => {
                let needs = action.description().needs.iter();
                needs.map(|(verb, kind)| Need::Resource(verb, kind.group, kind.plural)).collect()
            }
            Self::EditTemplates => {
                let (group, plural) = TEMPLATES;
                let on = |verb| Need::Resource(verb, group, plural);
                ["create", "update", "delete"].map(on).to_vec()
            }
            Self::DismissNotices => {
                ["create", "update"].map(|verb| Need::Resource(verb, "", "configmaps")).to_vec()
            }
            Self::ServeAgain => vec![Need::Resource("create", OWN, "probes")],
            Self::ChangeImages => vec![Need::Resource("create", OWN, "images")],
            Self::EditOsImages => {
                let on = |verb| Need::Resource(verb, OS_IMAGES.0, OS_IMAGES.1);
                let mut needs = ["create", "update", "delete"].map(on).to_vec();
                needs.push(Need::Resource("create", OWN, "images"));
                needs
            }
            Self::Identify => vec![Need::Resource("create", OWN, "identify")],
            Self::IdentifyMachine => {
                vec![Need::Resource("create", OWN, "bmcmachines/identify")]
            }
            Self::ChangeSettings => vec![Need::Resource("update", SYSTEM, "settings")],
            Self::Leave => vec![Need::Resource("create", SYSTEM, "reset")],
            Self::Update => vec![Need::Resource("create", SYSTEM, "update")],
            Self::Backup => vec![Need::Path("post", "/backup")],
            Self::Restore => vec![Need::Path("post", "/backup/restore")],
            Self::Pair => {
                let (group, plural) = MANAGEMENT_CLUSTERS;
                let clusters = Need::Resource("create", group, plural);
                vec![clusters, Need::Resource("create", "", "secrets")]
            }
            Self::ChangeTokens => vec![Need::Resource("create", SYSTEM, "access")],
            Self::ChangeUsers => vec![Need::Resource("create", SYSTEM, "users")],
            Self::SeeAudit => vec![Need::Resource("list", SYSTEM, "audit")],
        }
    }

    fn bit(self) -> u64 {
        let at = Self::all().position(|one| one == self);
        at.map_or(0, |at| 1 << at)
    }
}

/// Permissions of one person, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rights(u64);

impl Rights {
    /// Creates the set of the permissions for which `allowed` returns true.
    pub fn of(allowed: impl Fn(Permission) -> bool) -> Self {
        Self(Permission::all().filter(|one| allowed(*one)).fold(0, |set, one| set | one.bit()))
    }

    /// Returns true if the set has the permission.
    pub fn may(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }
}

/// Person who sees a page.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// User of the session.
    pub user: User,
    /// Rights of the user now.
    pub rights: Rights,
    /// Masked CSRF token of the session, which the forms contain; another one in each response.
    pub csrf: String,
    /// CSRF token of the session, which no response contains.
    secret: String,
}

impl Visitor {
    /// Creates the visitor of one response. `csrf` is the CSRF token of the session.
    pub fn new(user: User, rights: Rights, csrf: String) -> Self {
        Self { user, rights, csrf: masked(&csrf), secret: csrf }
    }

    /// Creates the visitor of parts that several visitors with the same rights share. Their forms
    /// have no CSRF token, and nothing in them depends on the user.
    pub fn shared(rights: Rights) -> Self {
        let user = User { name: String::new(), role: Role::Viewer, ssh_keys: Vec::new() };
        Self { user, rights, csrf: String::new(), secret: String::new() }
    }

    /// Returns true if the person has the permission.
    pub fn may(&self, permission: Permission) -> bool {
        self.rights.may(permission)
    }

    /// Returns true if `given` is the masked CSRF token of the session.
    pub fn sent(&self, given: &str) -> bool {
        is_masked(given, &self.secret)
    }

    /// Returns the sentence for a request without the permission.
    pub fn refusal(&self, permission: Permission) -> String {
        let needs = permission.needs();
        let need = match needs.first() {
            Some(Need::Resource(verb, "", plural)) => format!("{verb} {plural}"),
            Some(Need::Resource(verb, group, plural)) => format!("{verb} {plural}.{group}"),
            Some(Need::Path(verb, path)) => format!("{verb} {path}"),
            None => String::new(),
        };
        let least = if self.user.role == Role::Viewer && permission.is_for_operators() {
            "an operator or an administrator"
        } else {
            "an administrator"
        };
        format!(
            "You are logged in as {}, with the role {}, which may not {need:?}. Let {least} do it, \
             or change your role.",
            self.user.name,
            self.user.role.word(),
        )
    }
}

impl Permission {
    /// Returns true for the permissions that the role viewer has.
    pub fn is_for_viewers(self) -> bool {
        matches!(
            self,
            Self::See | Self::ReadHardware | Self::ReadBmc | Self::ReadLog | Self::ReadConsole
        )
    }

    /// Returns true for the permissions that the role operator has beyond the role viewer.
    pub fn is_for_operators(self) -> bool {
        matches!(
            self,
            Self::Act(_)
                | Self::EditTemplates
                | Self::DismissNotices
                | Self::ServeAgain
                | Self::ChangeImages
                | Self::EditOsImages
                | Self::Identify
                | Self::IdentifyMachine
                | Self::Pair
        )
    }
}

#[cfg(test)]
pub(crate) mod tests;
