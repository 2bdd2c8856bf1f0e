//! Exit codes of the program. A released code never gets another meaning.

use box_client::ClientError;
use image_catalog::CatalogError;
use machine_actions::ActionError;
use objects::ObjectError;

use super::Error;

/// The operation failed, for a reason that no other code has.
const FAILED: u8 = 1;
/// The command line is not valid, or a confirmation is missing.
const USAGE: u8 = 2;
/// No object has the name.
const NOT_FOUND: u8 = 3;
/// The state of an object does not permit the operation.
const CONFLICT: u8 = 4;
/// The box cannot be reached, or another one answered.
const NO_BOX: u8 = 5;
/// The user has no right to the operation.
const NOT_ALLOWED: u8 = 6;
/// The wait ended before the operation, which continues.
const TIMED_OUT: u8 = 7;
/// Some of several objects were written.
const PARTLY: u8 = 8;
/// The kubeconfig is not valid.
const CONFIGURATION: u8 = 64;
/// Ctrl-C ended the command, as in shells: 128 and the number of the signal.
const INTERRUPTED: u8 = 130;

impl Error {
    /// Returns the exit code, which scripts rely on.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_)
            | Error::Retired(_)
            | Error::Argument { .. }
            | Error::Read { .. }
            | Error::Content { .. }
            | Error::Client(ClientError::NoKubeconfig(_) | ClientError::Read { .. })
            | Error::Action(ActionError::Fields(_) | ActionError::NeedsForm(_)) => USAGE,
            Error::Client(ClientError::Unknown { .. } | ClientError::Refused { code: 404, .. })
            | Error::NoMachine(_)
            | Error::Catalog(
                CatalogError::Missing(_) | CatalogError::Object(ObjectError::NotFound(_)),
            )
            | Error::Action(
                ActionError::NoMachine(_)
                | ActionError::NoWorkflow(_)
                | ActionError::Object(ObjectError::NotFound(_)),
            ) => NOT_FOUND,
            Error::Client(
                ClientError::Ambiguous { .. } | ClientError::Refused { code: 409 | 412, .. },
            )
            | Error::State { .. }
            | Error::Catalog(
                CatalogError::Taken(_)
                | CatalogError::Object(ObjectError::Conflict(_) | ObjectError::AlreadyExists(_)),
            )
            | Error::Action(
                ActionError::Ambiguous { .. }
                | ActionError::OtherMachine { .. }
                | ActionError::State { .. }
                | ActionError::NoBmc(_)
                | ActionError::Owned { .. }
                | ActionError::Object(ObjectError::Conflict(_) | ObjectError::AlreadyExists(_)),
            ) => CONFLICT,
            Error::Client(
                ClientError::Reach { .. }
                | ClientError::Untrusted { .. }
                | ClientError::Answer { .. },
            ) => NO_BOX,
            Error::Client(ClientError::Refused { code: 401 | 403, .. }) => NOT_ALLOWED,
            Error::TooLate { .. } => TIMED_OUT,
            Error::Partly { .. } => PARTLY,
            Error::Client(ClientError::Kubeconfig { .. } | ClientError::Unusable { .. }) => {
                CONFIGURATION
            }
            Error::Interrupted => INTERRUPTED,
            Error::Client(ClientError::Refused { .. })
            | Error::Unable { .. }
            | Error::Flash(_)
            | Error::Catalog(_)
            | Error::Action(_)
            | Error::NeedsPerson(_)
            | Error::Write { .. }
            | Error::Output(_)
            | Error::Failed { .. } => FAILED,
        }
    }
}
