//! Addresses of the box, for the Cluster API controllers.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use api::tinkerbell::Hardware;
use capi_controllers::tinkerbell_cluster::{BoxAddresses, OtherHost};
use capi_controllers::tinkerbell_machine::MetadataUrls;
use config::Config;

use provisioning::images::is_own;

/// Addresses of the box on its networks.
pub struct OwnAddresses {
    /// Configuration with the networks.
    pub config: Arc<Config>,
    /// TCP port of the metadata service.
    pub metadata_port: u16,
}

impl MetadataUrls for OwnAddresses {
    fn metadata_url(&self, hardware: &Hardware) -> Option<String> {
        let dhcp = hardware.spec.interfaces.iter().filter_map(|it| it.dhcp.as_ref());
        let mut addresses = dhcp.filter_map(|it| it.ip.as_ref()?.address.parse().ok());
        let near: Option<Ipv4Addr> = addresses.next();
        self.config.networks.first()?;
        Some(format!("http://{}:{}", self.config.address_near(near), self.metadata_port))
    }
}

impl BoxAddresses for OwnAddresses {
    fn has(&self, address: IpAddr) -> bool {
        is_own(address)
    }

    fn other_host<'a>(&'a self, interface: &'a str, address: Ipv4Addr) -> OtherHost<'a> {
        Box::pin(async move {
            match dhcp::arp::Checker::open(interface).await {
                Ok(checker) => checker.in_use(address).await,
                Err(error) => {
                    let error = stdx::chain(&error);
                    tracing::warn!(interface, %address, error, "cannot look for another host");
                    None
                }
            }
        })
    }
}
