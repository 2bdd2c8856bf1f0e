//! Address of the metadata service for the configuration of installed machines.

use std::net::Ipv4Addr;
use std::sync::Arc;

use api::tinkerbell::Hardware;
use capi_controllers::tinkerbell_machine::MetadataUrls;
use config::Config;

/// Address of the metadata service on each network of the box.
pub struct MetadataAddress {
    /// Configuration with the networks.
    pub config: Arc<Config>,
    /// TCP port of the metadata service.
    pub port: u16,
}

impl MetadataUrls for MetadataAddress {
    fn metadata_url(&self, hardware: &Hardware) -> Option<String> {
        let dhcp = hardware.spec.interfaces.iter().filter_map(|it| it.dhcp.as_ref());
        let mut addresses = dhcp.filter_map(|it| it.ip.as_ref()?.address.parse().ok());
        let near: Option<Ipv4Addr> = addresses.next();
        self.config.networks.first()?;
        Some(format!("http://{}:{}", self.config.address_near(near), self.port))
    }
}
