//! User data of a machine: the bootstrap data of the Machine, the user data of the
//! TinkerbellMachine, or both as a MIME archive.

use std::collections::BTreeMap;
use std::fmt;

use super::InstallError;
use super::multipart;

/// Maximum size of the user data in bytes, the limit of a Secret in Kubernetes.
pub const USER_DATA_BYTES_MAX: usize = 1024 * 1024;

/// Text in the data that is replaced with the machine's provider ID, as in CAPT.
const PLACEHOLDER: &str = "PROVIDER_ID";

/// Key of bootstrap data (Cluster API, contract of bootstrap providers).
const BOOTSTRAP_KEYS: [&str; 1] = ["value"];
/// Keys of user data, in the order of the search.
const USER_KEYS: [&str; 3] = ["value", "userData", "user-data"];
const FORMAT_KEY: &str = "format";
/// First text of Talos' machine configuration, also with comments. cloud-init ignores data that
/// begin so. Talos' bootstrap provider writes no format into its Secret
/// (siderolabs/cluster-api-bootstrap-provider-talos, controllers/secrets.go).
const TALOS_START: &[u8] = b"version: v1alpha1";

const BOOTSTRAP: &str = "bootstrap data";
const USER: &str = "user data";

/// Format of user data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DataFormat {
    /// Input of cloud-init, also scripts and MIME archives. Default of Cluster API.
    #[default]
    CloudConfig,
    /// Configuration of Ignition, as JSON. Cannot be merged with other data.
    Ignition,
    /// Machine configuration of Talos. Cannot be merged with other data.
    Talos,
    /// Another format, which is passed on unchanged.
    Other(String),
}

impl DataFormat {
    fn parse(text: &str) -> Self {
        match text {
            "" | "cloud-config" => Self::CloudConfig,
            "ignition" => Self::Ignition,
            "talos" => Self::Talos,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Returns the format of data whose Secret does not name one.
    fn of_data(bytes: &[u8]) -> Self {
        match bytes.trim_ascii_start().starts_with(TALOS_START) {
            true => Self::Talos,
            false => Self::CloudConfig,
        }
    }
}

impl fmt::Display for DataFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CloudConfig => "cloud-config",
            Self::Ignition => "ignition",
            Self::Talos => "talos",
            Self::Other(other) => other,
        })
    }
}

/// Bytes of user data, or of a part, with their format. Not printed, because bootstrap data contain
/// join tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData {
    /// Bytes for the machine, not necessarily UTF-8.
    pub bytes: Vec<u8>,
    /// Format of the bytes.
    pub format: DataFormat,
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserData").field("format", &self.format).finish_non_exhaustive()
    }
}

impl UserData {
    /// Reads the decoded values of a Secret with bootstrap data.
    ///
    /// # Errors
    /// [`InstallError::SecretEmpty`].
    pub fn of_bootstrap(secret: &BTreeMap<String, Vec<u8>>) -> Result<Self, InstallError> {
        Self::of_secret(secret, BOOTSTRAP, &BOOTSTRAP_KEYS)
    }

    /// Reads the decoded values of the Secret that `userDataSecret` names.
    ///
    /// # Errors
    /// [`InstallError::SecretEmpty`].
    pub fn of_user(secret: &BTreeMap<String, Vec<u8>>) -> Result<Self, InstallError> {
        Self::of_secret(secret, USER, &USER_KEYS)
    }

    fn of_secret(
        secret: &BTreeMap<String, Vec<u8>>,
        what: &'static str,
        keys: &[&str],
    ) -> Result<Self, InstallError> {
        let value = |key: &&str| secret.get(*key).filter(|value| !value.is_empty());
        let Some(bytes) = keys.iter().find_map(value).cloned() else {
            return Err(InstallError::SecretEmpty { what, keys: keys.join(" or ") });
        };
        let format = secret.get(FORMAT_KEY).map(|text| String::from_utf8_lossy(text));
        let format = match format {
            Some(text) => DataFormat::parse(text.trim()),
            None => DataFormat::of_data(&bytes),
        };
        Ok(Self { bytes, format })
    }
}

/// Returns the user data of a machine: the only data that exist, or both data merged, in the order
/// bootstrap data, user data. Replaces each `PROVIDER_ID` with `provider_id`; all other bytes of
/// single data stay unchanged.
///
/// # Errors
/// Both data are missing, cannot be merged, are not text where text is required, or exceed
/// [`USER_DATA_BYTES_MAX`].
pub fn user_data(
    bootstrap: Option<&UserData>,
    user: Option<&UserData>,
    provider_id: &str,
) -> Result<UserData, InstallError> {
    let result = match (bootstrap, user) {
        (None, None) => return Err(InstallError::DataMissing),
        (Some(only), None) => replaced(only, BOOTSTRAP, provider_id)?,
        (None, Some(only)) => replaced(only, USER, provider_id)?,
        (Some(bootstrap), Some(user)) => {
            for data in [bootstrap, user] {
                // Checked first, so that the merge of larger data is never begun.
                within_limit(data.bytes.len())?;
            }
            let both = [&bootstrap.format, &user.format];
            if both != [&DataFormat::CloudConfig; 2] {
                let [bootstrap, user] = both.map(ToString::to_string);
                return Err(InstallError::FormatConflict { bootstrap, user });
            }
            let bootstrap = replaced(bootstrap, BOOTSTRAP, provider_id)?;
            let user = replaced(user, USER, provider_id)?;
            let merged = multipart::merge(text(&bootstrap, BOOTSTRAP)?, text(&user, USER)?)?;
            UserData { bytes: merged.into_bytes(), format: DataFormat::CloudConfig }
        }
    };
    within_limit(result.bytes.len())?;
    Ok(result)
}

fn within_limit(bytes: usize) -> Result<(), InstallError> {
    match bytes > USER_DATA_BYTES_MAX {
        true => Err(InstallError::DataTooLarge { bytes }),
        false => Ok(()),
    }
}

fn text<'a>(data: &'a UserData, what: &'static str) -> Result<&'a str, InstallError> {
    std::str::from_utf8(&data.bytes)
        .map_err(|_| InstallError::NotText { what, done: "merged with other data" })
}

fn replaced(
    data: &UserData,
    what: &'static str,
    provider_id: &str,
) -> Result<UserData, InstallError> {
    let has_placeholder =
        data.bytes.windows(PLACEHOLDER.len()).any(|bytes| bytes == PLACEHOLDER.as_bytes());
    if !has_placeholder {
        return Ok(data.clone());
    }
    let text = std::str::from_utf8(&data.bytes)
        .map_err(|_| InstallError::NotText { what, done: "given a provider ID" })?;
    let bytes = text.replace(PLACEHOLDER, provider_id).into_bytes();
    Ok(UserData { bytes, format: data.format.clone() })
}

#[cfg(test)]
mod tests;
