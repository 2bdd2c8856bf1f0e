//! Users besides the owner, with their roles and SSH keys: file `STATE/users.json`.
//!
//! The owner is a user too: the name [`OWNER_NAME`], the role [`Role::Admin`]. The file has only
//! the owner's SSH keys; the passphrase is in `owner.json`.

use std::io;

use serde::{Deserialize, Serialize};

use super::{AccessError, Inner, Owner, chance};
use crate::passphrase::{self, Hash};

/// File with the users and their SSH keys.
pub const USERS: &str = "users.json";
/// User name of the owner. An empty name in the login form means the owner too.
pub const OWNER_NAME: &str = "owner";
/// Maximum number of users besides the owner.
pub const USERS_MAX: usize = 64;
/// Maximum length of a user name in bytes.
const NAME_MAX: usize = 32;
/// Names that audit records use for other callers.
const TAKEN: [&str; 5] = [OWNER_NAME, "admin", "local", "root", "system"];

/// Role of a user. The users of a role are the group `tinbox:ROLE`, which the default
/// ClusterRoleBinding of this name binds to the ClusterRole `tinbox:ROLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads everything except Secrets, access rules and settings.
    Viewer,
    /// Also installs machines, switches them, and changes Hardware, Templates and Workflows.
    Operator,
    /// Does everything, also changes users and settings.
    Admin,
}

/// All roles, the weakest first.
pub const ROLES: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

impl Role {
    /// Returns the name: `viewer`.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// Returns the rights of the role as a sentence.
    pub const fn effect(self) -> &'static str {
        match self {
            Role::Viewer => "Sees everything except secrets, and changes nothing.",
            Role::Operator => "Also installs, erases and switches machines, and edits templates.",
            Role::Admin => "Also changes users, settings, backups and the box itself.",
        }
    }

    /// Returns the role with this name.
    pub fn named(word: &str) -> Option<Self> {
        ROLES.into_iter().find(|role| role.word() == word)
    }

    /// Returns the group of the role in RBAC: `tinbox:viewer`.
    pub fn group(self) -> String {
        format!("tinbox:{}", self.word())
    }
}

/// User without the passphrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// User name; [`OWNER_NAME`] for the owner.
    pub name: String,
    /// Role of the user.
    pub role: Role,
    /// Public SSH keys, each one line as in `authorized_keys` (sshd(8)).
    pub ssh_keys: Vec<String>,
}

impl User {
    /// Returns true for the owner.
    pub fn is_owner(&self) -> bool {
        self.name == OWNER_NAME
    }
}

/// Content of the file.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct UserFile {
    owner_keys: Vec<String>,
    users: Vec<StoredUser>,
}

/// User with the hash of the passphrase.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredUser {
    name: String,
    role: Role,
    passphrase: Hash,
    #[serde(default)]
    ssh_keys: Vec<String>,
}

impl UserFile {
    fn find(&self, name: &str) -> Option<&StoredUser> {
        self.users.iter().find(|user| user.name == name)
    }

    fn find_mut(&mut self, name: &str) -> Result<&mut StoredUser, AccessError> {
        let user = self.users.iter_mut().find(|user| user.name == name);
        user.ok_or_else(|| AccessError::NoUser(name.to_owned()))
    }

    /// Returns a user; `None` for a name that no user has.
    pub fn user(&self, name: &str) -> Option<User> {
        if name == OWNER_NAME {
            return Some(User {
                name: name.to_owned(),
                role: Role::Admin,
                ssh_keys: self.owner_keys.clone(),
            });
        }
        self.find(name).map(|it| User {
            name: it.name.clone(),
            role: it.role,
            ssh_keys: it.ssh_keys.clone(),
        })
    }

    /// Returns the hash of the passphrase of a user besides the owner.
    pub fn hash(&self, name: &str) -> Option<Hash> {
        self.find(name).map(|user| user.passphrase.clone())
    }
}

/// Returns the name that a typed name means: trimmed, and [`OWNER_NAME`] for an empty one.
pub fn typed_name(text: &str) -> String {
    let name = text.trim();
    if name.is_empty() { OWNER_NAME.to_owned() } else { name.to_owned() }
}

/// Checks the name of a new user.
fn check_name(name: &str) -> Result<(), AccessError> {
    let is_valid = name.len() <= NAME_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte)
        });
    match is_valid {
        false => Err(AccessError::UserName),
        true if TAKEN.contains(&name) => Err(AccessError::Taken(name.to_owned())),
        true => Ok(()),
    }
}

/// Returns the SSH keys of a text with one key a line; ignores empty lines and comments (`#`).
///
/// # Errors
/// A line is not a public key, or there are too many.
pub fn ssh_keys(text: &str) -> Result<Vec<String>, AccessError> {
    public_key::lines(text).map_err(|mistakes| {
        let texts: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        AccessError::SshKey(texts.join(" "))
    })
}

impl Owner {
    /// Returns the owner and all other users, in the order of their names after the owner.
    pub fn users(&self) -> Vec<User> {
        let inner = self.inner();
        let mut names: Vec<&str> = inner.users.users.iter().map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        let all = std::iter::once(OWNER_NAME).chain(names);
        all.filter_map(|name| inner.users.user(name)).collect()
    }

    /// Adds a user. Blocks: it hashes and writes to disk.
    ///
    /// # Errors
    /// The name or the passphrase is not allowed, or the file cannot be written.
    pub fn add_user(&self, name: &str, role: Role, passphrase: &str) -> Result<(), AccessError> {
        check_name(name)?;
        passphrase::check(passphrase).map_err(AccessError::Passphrase)?;
        let hash = Hash::of(passphrase, chance()).ok_or(AccessError::Busy)?;
        self.change(|file| {
            if file.find(name).is_some() {
                return Err(AccessError::Taken(name.to_owned()));
            }
            if file.users.len() >= USERS_MAX {
                return Err(AccessError::TooManyUsers);
            }
            let (name, ssh_keys) = (name.to_owned(), Vec::new());
            file.users.push(StoredUser { name, role, passphrase: hash, ssh_keys });
            Ok(())
        })
    }

    /// Changes the role of a user; the owner stays administrator.
    ///
    /// # Errors
    /// No user besides the owner has this name, or the file cannot be written.
    pub fn set_role(&self, name: &str, role: Role) -> Result<(), AccessError> {
        self.change(|file| file.find_mut(name).map(|user| user.role = role))
    }

    /// Removes a user, and ends the user's sessions.
    ///
    /// # Errors
    /// No user besides the owner has this name, or the file cannot be written.
    pub fn remove_user(&self, name: &str) -> Result<(), AccessError> {
        self.change(|file| {
            file.find_mut(name)?;
            file.users.retain(|user| user.name != name);
            Ok(())
        })?;
        self.inner().sessions.end_of(name);
        Ok(())
    }

    /// Replaces the passphrase of a user who has forgotten it, ends the user's sessions and removes
    /// the user's SSH keys: another person may have added them. Blocks: it hashes and writes to
    /// disk.
    ///
    /// # Errors
    /// The passphrase is not allowed, no user besides the owner has this name, or the file cannot
    /// be written.
    pub fn reset_passphrase(&self, name: &str, passphrase: &str) -> Result<(), AccessError> {
        passphrase::check(passphrase).map_err(AccessError::Passphrase)?;
        let hash = Hash::of(passphrase, chance()).ok_or(AccessError::Busy)?;
        self.change(|file| {
            let user = file.find_mut(name)?;
            user.passphrase = hash;
            user.ssh_keys.clear();
            Ok(())
        })?;
        self.inner().sessions.end_of(name);
        Ok(())
    }

    /// Replaces the SSH keys of a user. `keys` come from [`ssh_keys`].
    ///
    /// # Errors
    /// No user has this name, or the file cannot be written.
    pub fn set_ssh_keys(&self, name: &str, keys: Vec<String>) -> Result<(), AccessError> {
        self.change(|file| match name {
            OWNER_NAME => {
                file.owner_keys = keys;
                Ok(())
            }
            _ => file.find_mut(name).map(|user| user.ssh_keys = keys),
        })
    }

    /// Changes the users; the change is on disk when this function returns.
    fn change(
        &self,
        work: impl FnOnce(&mut UserFile) -> Result<(), AccessError>,
    ) -> Result<(), AccessError> {
        self.change_in(&mut self.inner(), work)
    }

    pub(super) fn change_in(
        &self,
        inner: &mut Inner,
        work: impl FnOnce(&mut UserFile) -> Result<(), AccessError>,
    ) -> Result<(), AccessError> {
        if inner.users_damaged {
            return Err(AccessError::Damaged);
        }
        let mut file = inner.users.clone();
        work(&mut file)?;
        let bytes = serde_json::to_vec(&file).map_err(io::Error::from);
        let kept = bytes.and_then(|bytes| self.keep.replace(USERS, &bytes));
        kept.map_err(AccessError::Disk)?;
        inner.users = file;
        Ok(())
    }

    pub(super) fn set_hash(
        &self,
        inner: &mut Inner,
        name: &str,
        hash: Hash,
    ) -> Result<(), AccessError> {
        self.change_in(inner, |file| file.find_mut(name).map(|user| user.passphrase = hash))
    }
}
