//! Errors of an installation, each with a reason for a condition and a hint.

use api::meta::ObjectKey;
use stdx::Hint;

use super::user_data::USER_DATA_BYTES_MAX;

/// Maximum length of [`InstallError::message`] in characters. The API permits 32768 in a condition.
const MESSAGE_CHARS_MAX: usize = 1024;

/// Reason why a machine cannot be installed. No text contains user data or the query of a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// No OSImage has the name or the operating system that `osImage` names.
    #[error("osImage {name:?}: no OSImage has this name or DISTRO-VERSION; {known}")]
    ImageNotFound {
        /// Value of `osImage` of the TinkerbellMachine.
        name: String,
        /// Names of existing OSImages, as a phrase.
        known: String,
    },
    /// The OSImage does not fit the Kubernetes version or the architecture of the machine.
    #[error("osImage {name:?}: {why}")]
    ImageMismatch {
        /// Value of `osImage` of the TinkerbellMachine.
        name: String,
        /// Reason, as a clause.
        why: String,
    },
    /// Several OSImages fit equally well.
    #[error("osImage {name:?}: several OSImages fit: {images}")]
    ImageAmbiguous {
        /// Value of `osImage` of the TinkerbellMachine.
        name: String,
        /// Names of the OSImages.
        images: String,
    },
    /// A field of the OSImage cannot be used.
    #[error("OSImage {name:?}: {why}")]
    ImageInvalid {
        /// Name of the OSImage.
        name: String,
        /// Field and reason, as a clause.
        why: String,
    },
    /// The image lookup does not result in an image.
    #[error("image lookup: {why}")]
    LookupInvalid {
        /// Field and reason, as a clause.
        why: String,
    },
    /// The lookup format uses a value that is empty.
    #[error("image lookup: imageLookupFormat uses .{variable}, but {field} is empty")]
    LookupIncomplete {
        /// Variable of the format.
        variable: &'static str,
        /// Field that sets the variable.
        field: &'static str,
    },
    /// The machine has neither bootstrap data nor user data.
    #[error("the machine has no bootstrap data and no user data")]
    DataMissing,
    /// A Secret has no usable value.
    #[error("the Secret of the {what} has no value under the key {keys}")]
    SecretEmpty {
        /// `bootstrap data` or `user data`.
        what: &'static str,
        /// Permitted keys, as a phrase.
        keys: String,
    },
    /// A Secret does not exist.
    #[error("Secret {key} with the {what} does not exist")]
    SecretNotFound {
        /// `bootstrap data` or `user data`.
        what: &'static str,
        /// Key of the Secret.
        key: ObjectKey,
    },
    /// The data contain a placeholder or must be merged, but are not UTF-8 text.
    #[error("the {what} cannot be {done}, because the data are not UTF-8 text")]
    NotText {
        /// `bootstrap data` or `user data`.
        what: &'static str,
        /// Operation, as a participle.
        done: &'static str,
    },
    /// Formats that cannot be merged.
    #[error("cannot merge bootstrap data of format {bootstrap} with user data of format {user}")]
    FormatConflict {
        /// Format of the bootstrap data.
        bootstrap: String,
        /// Format of the user data.
        user: String,
    },
    /// cloud-init would not recognize the data as a part of a MIME archive.
    #[error("the {what} cannot be merged: the first line is not one of cloud-init")]
    PartUnknown {
        /// `bootstrap data` or `user data`.
        what: &'static str,
    },
    /// The result exceeds [`USER_DATA_BYTES_MAX`].
    #[error("the user data have {bytes} bytes, the limit is {USER_DATA_BYTES_MAX}")]
    DataTooLarge {
        /// Size of the result in bytes.
        bytes: usize,
    },
    /// The disk is missing or cannot be a target.
    #[error("disk {disk:?}: {why}")]
    DiskInvalid {
        /// Device path or hint.
        disk: String,
        /// Reason, as a clause.
        why: &'static str,
    },
    /// A Template that overrides the default does not exist.
    #[error("Template {0} does not exist")]
    TemplateNotFound(ObjectKey),
    /// A Template that overrides the default has no text.
    #[error("Template {0} has no spec.data")]
    TemplateEmpty(ObjectKey),
    /// The default Template cannot be written as YAML.
    #[error("cannot write the default Template: {0}")]
    TemplateUnwritten(&'static str),
    /// A name cannot be the value of a label.
    #[error("{what} {name:?} is not a valid value of a label")]
    NameInvalid {
        /// Kind of the thing that has the name, such as `TinkerbellMachine`.
        what: &'static str,
        /// Name of the thing.
        name: String,
    },
    /// The Hardware lacks a required field.
    #[error("Hardware {hardware}: {field} is missing")]
    HardwareIncomplete {
        /// Name of the Hardware.
        hardware: ObjectKey,
        /// Path of the missing field.
        field: &'static str,
    },
    /// The boot mode needs a URL of an ISO.
    #[error("boot mode isoboot needs bootOptions.isoURL, found {0:?}")]
    IsoUrl(String),
    /// The box serves no network, so machines cannot read their metadata.
    #[error("the box serves no network from which the machine can read its metadata")]
    NoNetwork,
}

impl InstallError {
    /// Returns the text of the error for a condition, without the hint. A longer text is cut at
    /// [`MESSAGE_CHARS_MAX`].
    pub fn message(&self) -> String {
        let text = self.to_string();
        match text.char_indices().nth(MESSAGE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    /// Returns the reason for a condition; its spelling never changes.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ImageNotFound { .. } => "ImageNotFound",
            Self::ImageMismatch { .. } => "ImageMismatch",
            Self::ImageAmbiguous { .. } => "ImageAmbiguous",
            Self::ImageInvalid { .. } => "ImageInvalid",
            Self::LookupInvalid { .. } => "ImageLookupInvalid",
            Self::LookupIncomplete { .. } => "ImageLookupIncomplete",
            Self::DataMissing => "BootstrapDataMissing",
            Self::SecretEmpty { .. } => "SecretValueMissing",
            Self::SecretNotFound { .. } => "SecretNotFound",
            Self::NotText { .. } => "UserDataNotText",
            Self::FormatConflict { .. } => "UserDataFormatConflict",
            Self::PartUnknown { .. } => "UserDataTypeUnknown",
            Self::DataTooLarge { .. } => "UserDataTooLarge",
            Self::DiskInvalid { .. } => "DiskInvalid",
            Self::TemplateNotFound(_) => "TemplateNotFound",
            Self::TemplateEmpty(_) => "TemplateEmpty",
            Self::TemplateUnwritten(_) => "TemplateInvalid",
            Self::NameInvalid { .. } => "NameInvalid",
            Self::HardwareIncomplete { .. } => "HardwareIncomplete",
            Self::IsoUrl(_) => "BootOptionsInvalid",
            Self::NoNetwork => "NoNetwork",
        }
    }
}

impl Hint for InstallError {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::ImageNotFound { .. } => "create the OSImage, or correct spec.osImage",
            Self::ImageMismatch { .. } => {
                "create an OSImage for this machine, or correct the fields kubernetesVersion and \
                 architecture of the OSImage"
            }
            Self::ImageAmbiguous { .. } => "set spec.osImage to the name of one OSImage",
            Self::ImageInvalid { .. } => "correct the OSImage",
            Self::LookupInvalid { .. } => {
                "correct the fields imageLookup… of the TinkerbellMachine or TinkerbellCluster, \
                 or set spec.osImage"
            }
            Self::LookupIncomplete { .. } => {
                "set the field on the TinkerbellMachine or TinkerbellCluster (the version on the \
                 Machine), or set spec.osImage"
            }
            Self::DataMissing => {
                "set bootstrap.dataSecretName of the Machine, or userDataSecret of the \
                 TinkerbellMachine"
            }
            Self::SecretEmpty { .. } => "set the key in the Secret",
            Self::SecretNotFound { .. } => "create the Secret, or correct its name",
            Self::NotText { .. } => "store the data as UTF-8 text, without compression",
            Self::FormatConflict { .. } => {
                "remove userDataSecret, and set the content with the bootstrap provider"
            }
            Self::PartUnknown { .. } => {
                "begin the data with #cloud-config, #! or the headers of a MIME archive"
            }
            Self::DataTooLarge { .. } => "shorten the user data, and download large files instead",
            Self::DiskInvalid { .. } => {
                "set the disk to a path such as /dev/sda, or to hints such as serial=S4EV"
            }
            Self::TemplateNotFound(_) => "create the Template, or remove the override",
            Self::TemplateEmpty(_) => "set spec.data of the Template, or remove the override",
            Self::TemplateUnwritten(_) => "set templateOverride of the TinkerbellMachine",
            Self::NameInvalid { .. } => {
                "use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both \
                 ends"
            }
            Self::HardwareIncomplete { .. } => "complete the Hardware",
            Self::IsoUrl(_) => "set the URL of an ISO file, or another boot mode",
            Self::NoNetwork => "create a Network of the box",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{InstallError, MESSAGE_CHARS_MAX};

    #[test]
    fn a_message_fits_in_a_condition() {
        let short = InstallError::IsoUrl("a".to_owned());
        assert_eq!(short.message(), short.to_string());
        let long = InstallError::IsoUrl("é".repeat(2 * MESSAGE_CHARS_MAX));
        assert_eq!(long.message().chars().count(), MESSAGE_CHARS_MAX + 1);
        assert!(long.message().ends_with("éé…"));
    }
}
