//! `capi`: the provider for a management cluster, and kubeconfigs for programs of other clusters.

mod init;
mod pair;
mod take_over;

use api::core::{CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_client::{ClientError, Path};
use rustls_pki_types::CertificateDer;
use serde_json::{Value, json};

use super::Context;
use crate::error::Error;
use crate::output::text;

/// Length of a line of a PEM file, in characters (RFC 7468 section 2).
const PEM_LINE: usize = 64;
const SECONDS_OF_DAY: i64 = 24 * 60 * 60;
/// Default lifetime of a token in days.
const TOKEN_DAYS: i64 = 365;

/// Connect Cluster API and other programs of other clusters
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Print the shell commands that install a provider into a management cluster
    ///
    /// The commands change the cluster of KUBECONFIG, and contain no secret. With --mode box they
    /// need clusterctl, curl and tar. With --mode capt they need clusterctl and kubectl, and the
    /// kubeconfig for the box is in a new file that only you can read, until the commands have put
    /// it into a Secret. CAPT has an external mode since v0.7.0.
    ///
    /// Example: `tinbox capi init | sh`
    #[command(verbatim_doc_comment)]
    Init(init::Arguments),
    /// Connect the box to a management cluster
    ///
    /// Creates a ServiceAccount for the box in the management cluster, outside the components that
    /// clusterctl manages, and writes its kubeconfig into a Secret of the box. The box renews the
    /// token. Repeat the command to replace the credential.
    ///
    /// Example: `tinbox capi pair fleet --management-kubeconfig ~/.kube/config`
    #[command(verbatim_doc_comment)]
    Pair(pair::PairArguments),
    /// End the connection to a management cluster; no machine is changed
    ///
    /// Prints the command that deletes the box's ServiceAccount in the management cluster, or
    /// deletes it with --management-kubeconfig.
    ///
    /// Example: `tinbox capi unpair fleet`
    #[command(verbatim_doc_comment)]
    Unpair(pair::UnpairArguments),
    /// Serve a management cluster instead of another device with a backup of this box
    ///
    /// A backup that was restored on a second device makes both the same box. Only one of them
    /// serves a management cluster; the other watches. Switch the other device off first: this
    /// one takes over after the other was silent for a minute. No machine is changed by it.
    ///
    /// Example: `tinbox capi take-over fleet`
    #[command(verbatim_doc_comment)]
    TakeOver {
        /// Name of the management cluster on the box
        name: String,
    },
    /// Print a kubeconfig with its own token, for one role
    ///
    /// Creates a ServiceAccount in the namespace, binds it to the ClusterRole "tinbox:ROLE" and
    /// requests a token. Deleting the ServiceAccount ends all its tokens immediately. The
    /// kubeconfig is a secret: write it to a private file, or directly into a Secret.
    ///
    /// Example: `tinbox capi kubeconfig --role capt > external.kubeconfig`
    #[command(verbatim_doc_comment)]
    Kubeconfig {
        /// Role of the user
        #[arg(long, value_enum)]
        role: Role,
        /// URL of the box as the user reaches it [default: the URL in your kubeconfig]
        #[arg(long, value_name = "URL")]
        server: Option<String>,
        /// Name of the ServiceAccount, created if it does not exist [default: "tinbox-ROLE"]
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
        /// Lifetime of the token in days, 1 to 3650
        #[arg(long, value_name = "DAYS", default_value_t = TOKEN_DAYS)]
        #[arg(value_parser = clap::value_parser!(i64).range(1..=3650))]
        days: i64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// Rights that Cluster API Provider Tinkerbell needs, and no others
    Capt,
    /// All rights
    Admin,
    /// Manage machines, workflows and their secrets; not users and roles
    Operator,
    /// Read everything, including user data, except Secrets, users and roles
    Viewer,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Capt => "capt",
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Viewer => "viewer",
        }
    }
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    let (role, server, account, days) = match command {
        Command::Init(arguments) => return init::run(context, &arguments).await,
        Command::Pair(arguments) => return pair::pair(context, arguments).await,
        Command::Unpair(arguments) => return pair::unpair(context, arguments).await,
        Command::TakeOver { name } => return take_over::run(context, &name).await,
        Command::Kubeconfig { role, server, account, days } => (role, server, account, days),
    };
    let server = match server {
        Some(server) => checked("--server", server)?,
        None => context.client.server().to_owned(),
    };
    let account = account.unwrap_or_else(|| format!("tinbox-{}", role.word()));
    let token = Token { role, server: &server, account: &account };
    let (kubeconfig, end) = issue(context, &token, days).await?;
    context.printer.object(&kubeconfig)?;
    context.printer.note(&format!(
        "the token ends at {end}; to end it now: kubectl delete serviceaccount {account} -n {}",
        context.namespace
    ));
    Ok(())
}

/// Token of a kubeconfig, before it is issued.
struct Token<'a> {
    role: Role,
    /// URL of the box as the user reaches it.
    server: &'a str,
    /// Name of the ServiceAccount.
    account: &'a str,
}

/// Creates the ServiceAccount and its binding, and returns a kubeconfig with a new token and the
/// time when the token ends.
async fn issue(context: &Context, token: &Token<'_>, days: i64) -> Result<(Value, String), Error> {
    let Token { role, server, account } = *token;
    let namespace = &context.namespace;
    ensure_account(context, account).await?;
    ensure_binding(context, role, account).await?;
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": { "expirationSeconds": days * SECONDS_OF_DAY },
    });
    let path = Path::token(namespace, account);
    let answer = context.client.create(&path, &request).await?;
    let user = User { server, namespace, account, answer: &answer };
    let end = text(&answer, "/status/expirationTimestamp").to_owned();
    Ok((kubeconfig(&user, &context.authorities)?, end))
}

fn checked(option: &str, server: String) -> Result<String, Error> {
    let host = server.strip_prefix("https://").unwrap_or_default();
    let plain = !host.is_empty() && !host.contains(['@', '?', '#', ' ', '\'']);
    let wrong = || Error::Usage(format!("{option} must be a URL such as https://box:6443"));
    plain.then(|| server.trim_end_matches('/').to_owned()).ok_or_else(wrong)
}

/// Creates the ServiceAccount if it does not exist. An existing account gets another token.
async fn ensure_account(context: &Context, account: &str) -> Result<(), Error> {
    let object = json!({
        "apiVersion": SERVICE_ACCOUNT.api_version(),
        "kind": SERVICE_ACCOUNT.kind,
        "metadata": { "name": account },
    });
    let path = Path::collection(SERVICE_ACCOUNT, &context.namespace);
    taken_is_fine(context.client.create(&path, &object).await)?;
    Ok(())
}

/// Binds the account to the role. An existing binding of this name must be equal.
async fn ensure_binding(context: &Context, role: Role, account: &str) -> Result<(), Error> {
    let namespace = &context.namespace;
    let name = format!("tinbox:{}:{namespace}:{account}", role.word());
    let group = CLUSTER_ROLE_BINDING.group;
    let role = format!("tinbox:{}", role.word());
    let object = json!({
        "apiVersion": CLUSTER_ROLE_BINDING.api_version(),
        "kind": CLUSTER_ROLE_BINDING.kind,
        "metadata": { "name": name },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }],
    });
    let path = Path::collection(CLUSTER_ROLE_BINDING, "");
    if taken_is_fine(context.client.create(&path, &object).await)?.is_some() {
        return Ok(());
    }
    let path = Path::object(CLUSTER_ROLE_BINDING, "", &name);
    let live = context.client.get(&path).await?;
    let same = |pointer: &str| live.pointer(pointer) == object.pointer(pointer);
    if same("/roleRef/name") && same("/subjects/0/name") && same("/subjects/0/namespace") {
        return Ok(());
    }
    Err(Error::Unable {
        what: format!("bind {account} to {role}"),
        why: format!("ClusterRoleBinding {name} exists with another role or subject"),
        hint: "delete that binding, or choose another --account",
    })
}

fn taken_is_fine(answer: Result<Value, ClientError>) -> Result<Option<Value>, ClientError> {
    match answer {
        Ok(made) => Ok(Some(made)),
        Err(ClientError::Refused { code: 409, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fields of a kubeconfig for one user.
struct User<'a> {
    server: &'a str,
    namespace: &'a str,
    account: &'a str,
    /// Response to the TokenRequest, with the token.
    answer: &'a Value,
}

fn kubeconfig(user: &User<'_>, authorities: &[CertificateDer<'_>]) -> Result<Value, Error> {
    let token = user.answer["status"]["token"].as_str().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| ClientError::Answer {
        what: format!("read the token of serviceaccount/{}", user.account),
        why: "it contains no token".to_owned(),
    })?;
    let pem = bundle(authorities);
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tinbox",
        "clusters": [{ "name": "tinbox", "cluster": {
            "server": user.server,
            "certificate-authority-data": STANDARD.encode(pem),
        } }],
        "users": [{ "name": user.account, "user": { "token": token } }],
        "contexts": [{ "name": "tinbox", "context": {
            "cluster": "tinbox",
            "user": user.account,
            "namespace": user.namespace,
        } }],
    }))
}

/// Returns the certificates as one PEM text.
fn bundle(authorities: &[CertificateDer<'_>]) -> String {
    authorities.iter().map(|one| pem(one)).collect()
}

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines: Vec<_> = text.as_bytes().chunks(PEM_LINE).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;
    use serde_json::json;

    use super::{User, checked, kubeconfig, pem};

    #[test]
    fn servers() {
        assert_eq!(
            checked("--server", "https://box:6443/".to_owned()).unwrap(),
            "https://box:6443"
        );
        for bad in ["box:6443", "http://box", "https://", "https://user@box", "https://a'b"] {
            assert!(checked("--server", bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_certificate_comes_back_from_its_pem() {
        for length in [0, 1, 47, 48, 49, 500] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let text = pem(&bytes);
            assert!(text.lines().all(|line| line.len() <= 64), "{text}");
            assert_eq!(CertificateDer::from_pem_slice(text.as_bytes()).unwrap().as_ref(), bytes);
        }
    }

    #[test]
    fn the_kubeconfig_as_it_is_printed() {
        let answer = json!({ "status": { "token": "eyJ.a.b" } });
        let user = User {
            server: "https://box:6443",
            namespace: "tinkerbell",
            account: "tinbox-capt",
            answer: &answer,
        };
        let made = kubeconfig(&user, &[CertificateDer::from(vec![1, 2, 3])]).unwrap();
        golden::check("capi-kubeconfig.yaml", &format!("{}\n", crate::output::yaml(&made)));
        let nothing = User { answer: &json!({}), ..user };
        assert!(kubeconfig(&nothing, &[]).is_err());
    }
}
