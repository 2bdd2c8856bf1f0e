//! Provider manifests, for managers that run as plain processes.
//!
//! In a cluster, cert-manager issues the webhooks' certificates, and a Service routes to the
//! manager's Pod. Here there are neither Pods nor Services. Objects that need them are left out,
//! and every webhook, conversions too, is called at the manager's own address. Nothing else is
//! changed.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use serde_json::{Value, json};

/// Kinds that need Pods, Services or cert-manager.
const LEFT_OUT: [&str; 4] = ["Certificate", "Deployment", "Issuer", "Service"];

/// Address and ports of a manager on the loopback network.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// Address of all ports; the certificate of the webhooks must be valid for it.
    pub address: Ipv4Addr,
    /// Port of the webhooks.
    pub webhooks: u16,
    /// Port of the health check.
    pub health: u16,
    /// Port of the metrics.
    pub metrics: u16,
}

impl Ports {
    /// Address and port of the health check.
    pub fn health_address(self) -> String {
        SocketAddrV4::new(self.address, self.health).to_string()
    }

    /// Address and port of the metrics.
    pub fn metrics_address(self) -> String {
        SocketAddrV4::new(self.address, self.metrics).to_string()
    }
}

/// Manager whose manifest is rewritten, so that the API server calls its webhooks at a loopback
/// port.
#[derive(Debug)]
pub struct WithWebhooks<'a> {
    /// Address and ports of the manager.
    pub ports: Ports,
    /// PEM of the certificate authority of the webhooks' certificate.
    pub authority: &'a str,
}

impl WithWebhooks<'_> {
    /// Reads a manifest and returns it as a List.
    ///
    /// # Errors
    /// The file cannot be read, or a webhook names no service.
    pub fn read(&self, manifest: &Path) -> anyhow::Result<Value> {
        let text = fs::read_to_string(manifest)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        let options = serde_saphyr::options! { budget: None };
        let objects: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)
            .map_err(|error| anyhow::anyhow!("{}: {error}", manifest.display()))?;
        self.list(objects)
    }

    fn list(&self, objects: Vec<Value>) -> anyhow::Result<Value> {
        let mut items = Vec::new();
        for mut object in objects {
            if LEFT_OUT.iter().any(|kind| object["kind"] == *kind) {
                continue;
            }
            for client in clients(&mut object) {
                self.redirect(client)?;
            }
            items.push(object);
        }
        Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
    }

    fn redirect(&self, client: &mut Value) -> anyhow::Result<()> {
        let Some(path) = client.pointer("/service/path").and_then(Value::as_str) else {
            bail!("a webhook's client {client} names no service with a path");
        };
        let url = format!("https://{}:{}{path}", self.ports.address, self.ports.webhooks);
        let bundle = base64::engine::general_purpose::STANDARD.encode(self.authority);
        *client = json!({"url": url, "caBundle": bundle});
        Ok(())
    }
}

/// All webhook `clientConfig`s of an object; empty for a kind without webhooks.
fn clients(object: &mut Value) -> Vec<&mut Value> {
    match object["kind"].as_str() {
        Some("CustomResourceDefinition") => {
            let client = object.pointer_mut("/spec/conversion/webhook/clientConfig");
            client.into_iter().collect()
        }
        Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            let hooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
            let hooks = hooks.into_iter().flatten();
            hooks.filter_map(|hook| hook.get_mut("clientConfig")).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;

    use super::{Ports, WithWebhooks};

    #[test]
    fn webhooks_are_called_at_the_managers_address() {
        let ports = Ports { address: Ipv4Addr::LOCALHOST, webhooks: 9443, health: 1, metrics: 2 };
        let with = WithWebhooks { ports, authority: "pem" };
        let service = json!({"service": {"name": "s", "namespace": "n", "path": "/convert"}});
        let url = json!({"url": "https://127.0.0.1:9443/convert", "caBundle": "cGVt"});
        let definition = |client| {
            json!({"kind": "CustomResourceDefinition",
                   "spec": {"conversion": {"webhook": {"clientConfig": client}}}})
        };
        let hook = |client| {
            json!({"kind": "ValidatingWebhookConfiguration",
                   "webhooks": [{"name": "x", "clientConfig": client}]})
        };
        let pod = json!({"kind": "Deployment"});
        let list = with.list(vec![pod, definition(service.clone()), hook(service)]).unwrap();
        assert_eq!(list["items"], json!([definition(url.clone()), hook(url)]));
        let nameless = json!({"kind": "MutatingWebhookConfiguration",
                              "webhooks": [{"clientConfig": {}}]});
        assert!(with.list(vec![nameless]).is_err());
    }
}
