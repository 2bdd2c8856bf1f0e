//! Endpoint of the control plane of a cluster.

use std::net::IpAddr;

use api::infrastructure::cluster_api::Cluster;
use api::infrastructure::{Endpoint, TinkerbellClusterSpec};

use super::error::ClusterError;
use super::live_host::LiveHost;
use super::observe::Observed;

/// Port of a Kubernetes API server, if neither object has a port.
const DEFAULT_PORT: u16 = 6443;

/// Returns the endpoint: the host of the TinkerbellCluster, else of its Cluster. `None` without a
/// host. The port of the Cluster is used only for the same host.
pub fn of(spec: &TinkerbellClusterSpec, owner: Option<&Cluster>) -> Option<Endpoint> {
    let own = &spec.control_plane_endpoint;
    let unset = Endpoint::default();
    let other = owner.and_then(|it| it.spec.control_plane_endpoint.as_ref()).unwrap_or(&unset);
    let host = [&own.host, &other.host].into_iter().find(|host| !host.is_empty())?;
    let is_same_host = other.host.is_empty() || other.host == *host;
    let ports = [own.port, if is_same_host { other.port } else { 0 }, DEFAULT_PORT];
    let port = ports.into_iter().find(|port| *port != 0)?;
    Some(Endpoint { host: host.clone(), port })
}

/// Returns the IP address in the host of an endpoint; `None` for a name. An IPv6 address may be in
/// brackets, and an IPv4 address may be mapped into IPv6.
pub fn address(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Returns the endpoint if the control plane can use it. The address is checked only before the
/// infrastructure was first provisioned: afterwards a machine of the control plane may have it.
/// A box knows only its own Hardware, so of several boxes, one without a conflict provisions the
/// cluster.
pub fn check(observed: &Observed) -> Result<Endpoint, ClusterError> {
    let spec = &observed.cluster.spec;
    if !spec.template_override.is_empty() && spec.template_override_ref.is_some() {
        return Err(ClusterError::TemplateOverrideConflict);
    }
    let endpoint = of(spec, observed.owner.as_ref()).ok_or(ClusterError::EndpointMissing)?;
    if observed.was_provisioned() {
        return Ok(endpoint);
    }
    let (host, box_name) = (status::plain(&endpoint.host), observed.box_name.clone());
    if observed.is_own_address {
        return Err(ClusterError::BoxAddress { host, box_name });
    }
    // The smallest key, so that the message does not depend on the order of the list.
    if let Some(hardware) = observed.conflicts.iter().min().cloned() {
        return Err(ClusterError::HardwareAddress { host, hardware, box_name });
    }
    match observed.live_host.clone() {
        Some(LiveHost { mac, interface }) => {
            Err(ClusterError::LiveHost { host, mac, interface, box_name })
        }
        None => Ok(endpoint),
    }
}

#[cfg(test)]
mod tests {
    use api::infrastructure::{Endpoint, TinkerbellClusterSpec};
    use serde_json::json;

    use super::{address, of};

    #[test]
    fn the_endpoint_of_the_infrastructure_takes_precedence() {
        let rows = [
            // Own endpoint, endpoint of the Cluster, result.
            (("", 0), ("", 0), None),
            (("", 7443), ("", 0), None),
            (("a", 0), ("", 0), Some(("a", 6443))),
            (("a", 7443), ("b", 8443), Some(("a", 7443))),
            (("a", 0), ("b", 8443), Some(("a", 6443))),
            (("a", 0), ("a", 8443), Some(("a", 8443))),
            (("a", 0), ("", 8443), Some(("a", 8443))),
            (("", 0), ("b", 8443), Some(("b", 8443))),
            (("", 7443), ("b", 8443), Some(("b", 7443))),
            (("", 0), ("b", 0), Some(("b", 6443))),
        ];
        let endpoint = |(host, port): (&str, u16)| Endpoint { host: host.into(), port };
        for (own, other, expected) in rows {
            let spec = TinkerbellClusterSpec {
                control_plane_endpoint: endpoint(own),
                ..Default::default()
            };
            let object = json!({ "spec": { "controlPlaneEndpoint": endpoint(other) } });
            let owner = serde_json::from_value(object).unwrap();
            assert_eq!(of(&spec, Some(&owner)), expected.map(endpoint), "{own:?} {other:?}");
        }
        assert_eq!(of(&TinkerbellClusterSpec::default(), None), None);
    }

    #[test]
    fn addresses_are_compared_in_one_form() {
        let rows = [
            ("10.0.0.1", Some("10.0.0.1")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("[2001:db8:0::1]", Some("2001:db8::1")),
            ("[10.0.0.1", None),
            ("api.example.org", None),
            ("", None),
        ];
        for (host, expected) in rows {
            assert_eq!(address(host), expected.map(|it| it.parse().unwrap()), "{host}");
        }
    }
}
