//! Shell commands for a workstation that connect Cluster API to the box, as `tinbox capi init` and
//! the page show them.

/// Command that connects the box to the management cluster, on a workstation with a kubeconfig for
/// the box.
pub const PAIR: &str = "tinbox capi pair fleet --management-kubeconfig ~/.kube/config";

/// Returns commands for clusterctl with the box as its registry. `host` begins with `gitlab.`;
/// `authority` is the certificate of the box's authority as PEM.
pub fn from_registry(host: &str, authority: &str) -> String {
    let text = format!(
        "SSL_CERT_FILE=\"$folder/ca.pem\" clusterctl init --infrastructure tinbox \\\n\
         \x20 --config https://{host}/clusterctl.yaml\n"
    );
    // clusterctl does not create its configuration folder.
    with_authority("folder=\"${XDG_CONFIG_HOME:-$HOME/.config}/cluster-api\"\n", authority, &text)
}

/// Returns commands for clusterctl with a copy of the release on the workstation. `pages` is the
/// URL of the box's pages, such as `https://192.168.7.1`.
pub fn from_copy(pages: &str, authority: &str) -> String {
    let text = format!(
        "curl -fsS --cacert \"$folder/ca.pem\" -o \"$folder/clusterctl.sh\" \\\n\
         \x20 '{pages}/clusterctl.sh'\n\
         sh \"$folder/clusterctl.sh\"\n\
         clusterctl init --infrastructure tinbox --config \
         \"$HOME/.config/cluster-api/tinbox/clusterctl.yaml\"\n"
    );
    let folder = "folder=$(mktemp -d)\ntrap 'rm -rf \"$folder\"' EXIT\n";
    with_authority(folder, authority, &text)
}

fn with_authority(folder: &str, authority: &str, rest: &str) -> String {
    format!(
        "set -eu\n{folder}mkdir -p \"$folder\"\n\
         cat >\"$folder/ca.pem\" <<'END'\n{authority}END\n{rest}"
    )
}
