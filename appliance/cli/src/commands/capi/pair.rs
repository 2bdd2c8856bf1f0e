//! `capi pair` and `capi unpair`: the connection of the box to a management cluster.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use api::core::{NAMESPACE, SECRET};
use api::management_cluster::MANAGEMENT_CLUSTER;
use api::meta::ObjectKey;
use box_client::{Path, read_text};
use capi::management::lease_key;
use capi::pairing::{self, Identity, PairingError, TOKEN_LIFETIME};
use capi::remote::Kubeconfig;
use serde_json::Value;
use stdx::{Hint as _, Secret};

use crate::commands::Context;
use crate::error::Error;

/// Maximum looks at the state of the connection, until it is printed.
const LOOKS_MAX: u32 = 5;
/// Interval of looks; longer than the box needs to notice a new credential.
const LOOK_INTERVAL: Duration = Duration::from_secs(3);

/// Kubeconfig of an administrator of the management cluster.
#[derive(Debug, clap::Args)]
struct Admin {
    /// Kubeconfig of an administrator of the management cluster; stays on this computer
    #[arg(long, value_name = "FILE")]
    management_kubeconfig: Option<PathBuf>,
    /// Context in that kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME", requires = "management_kubeconfig")]
    context: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("source").required(true)
    .args(["management_kubeconfig", "credential"])))]
pub struct PairArguments {
    /// Name of the management cluster on the box
    name: String,
    #[command(flatten)]
    admin: Admin,
    /// Kubeconfig that the box uses as it is, instead of its own ServiceAccount
    #[arg(long, value_name = "FILE")]
    credential: Option<PathBuf>,
    /// URL by which the box reaches the API server [default: the URL in the kubeconfig]
    #[arg(long, value_name = "URL", conflicts_with = "credential")]
    server: Option<String>,
    /// Only namespace of the management cluster to serve, and to give rights in [default: all]
    #[arg(long, value_name = "NAME")]
    management_namespace: Option<String>,
    /// Serve only objects whose label cluster.x-k8s.io/watch-filter has this value
    #[arg(long, value_name = "VALUE")]
    watch_filter: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct UnpairArguments {
    /// Name of the management cluster on the box
    name: String,
    #[command(flatten)]
    admin: Admin,
}

impl Admin {
    fn read(&self) -> Result<Option<Kubeconfig>, Error> {
        let Some(file) = &self.management_kubeconfig else { return Ok(None) };
        let text = read(file)?;
        Kubeconfig::parse_context(text.expose(), self.context.as_deref())
            .map(Some)
            .map_err(|error| refused(&PairingError::from(error)))
    }
}

fn read(file: &FilePath) -> Result<Secret, Error> {
    let named = |source| Error::Read { file: file.display().to_string(), source };
    read_text(file).map(Secret::from).map_err(named)
}

fn refused(error: &PairingError) -> Error {
    let hint = error.hint().unwrap_or("check the rights of the kubeconfig").to_owned();
    Error::Argument { why: error.to_string(), hint }
}

pub async fn pair(context: &Context, arguments: PairArguments) -> Result<(), Error> {
    let PairArguments { name, admin, credential, server, management_namespace, watch_filter } =
        arguments;
    let namespace = management_namespace.as_deref();
    let server = server.map(|server| super::checked("--server", server)).transpose()?;
    let kubeconfig = match (admin.read()?, credential) {
        (Some(admin), _) => {
            let authority = context.authorities.first().map_or(&[][..], |der| der);
            let box_name = pairing::box_name(context.client.server(), authority);
            let identity = Identity::new(&box_name, &name, namespace);
            pairing::create_identity(&admin, &identity, server.as_deref(), TOKEN_LIFETIME)
                .await
                .map_err(|error| refused(&error))?
        }
        (None, file) => {
            let text = read(&file.unwrap_or_default())?;
            Kubeconfig::parse(text.expose()).map_err(|error| refused(&error.into()))?;
            text
        }
    };
    let key = ObjectKey::new(&context.namespace, &name);
    for (kind, object) in
        pairing::box_objects(&key, &kubeconfig, namespace, watch_filter.as_deref())
    {
        let object_name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = context.path(kind, object_name);
        let (stored, what) = match context.client.get_if_any(&path).await? {
            Some(stored) => {
                let changed = pairing::changed(stored, &object);
                (context.client.replace(&path, &changed).await?, "changed")
            }
            None => {
                let all = Path::collection(kind, &context.namespace);
                (context.client.create(&all, &object).await?, "created")
            }
        };
        context.printer.done(&stored, what)?;
    }
    show_connection(context, &name).await
}

/// Waits until the box is connected, or the wait is over, and prints the state.
async fn show_connection(context: &Context, name: &str) -> Result<(), Error> {
    let path = context.path(MANAGEMENT_CLUSTER, name);
    for look in 1..=LOOKS_MAX {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let (is_connected, state) = pairing::state(&context.client.get(&path).await?);
        if is_connected || look == LOOKS_MAX {
            context.printer.note(&state);
            break;
        }
    }
    Ok(())
}

/// Returns namespace and name of the Lease of this box in a management cluster.
async fn lease(context: &Context, namespace: Option<&str>) -> Result<ObjectKey, Error> {
    // The ID of a box is the UID of this namespace.
    let object = context.client.get(&Path::object(NAMESPACE, "", "default")).await?;
    let box_id = object["metadata"]["uid"].as_str().unwrap_or_default();
    Ok(lease_key(box_id, namespace))
}

pub async fn unpair(context: &Context, arguments: UnpairArguments) -> Result<(), Error> {
    let UnpairArguments { name, admin } = arguments;
    let admin = admin.read()?;
    let cluster = context.find(MANAGEMENT_CLUSTER, &name).await?;
    let text = |pointer: &str| cluster.pointer(pointer).and_then(Value::as_str);
    let secret = text("/spec/kubeconfigSecretRef/name").unwrap_or_default().to_owned();
    let stored = context.client.get_if_any(&context.path(SECRET, &secret)).await?;
    let identity =
        stored.as_ref().and_then(|stored| pairing::identity_of(stored, text("/spec/namespace")));
    if let (Some(admin), Some(identity)) = (&admin, &identity) {
        let removed = pairing::remove_identity(admin, identity).await;
        removed.map_err(|error| refused(&error))?;
    }
    let lease = lease(context, text("/spec/namespace")).await?;
    if let Some(admin) = &admin {
        pairing::remove_lease(admin, &lease).await.map_err(|error| refused(&error))?;
    }
    context.remove(MANAGEMENT_CLUSTER, vec![cluster]).await?;
    // A Secret of another name may have other users.
    if let Some(stored) = stored.filter(|_| secret == pairing::secret_name(&name)) {
        context.remove(SECRET, vec![stored]).await?;
    }
    match (admin, identity) {
        (None, Some(identity)) => {
            context.printer.note("delete the box's identity in the management cluster:");
            context.printer.line(&identity.removal_command(&lease))
        }
        (Some(_), None) => {
            context.printer.note("the credential is not of `capi pair`: it was not deleted");
            Ok(())
        }
        _ => Ok(()),
    }
}
