//! Virtual addresses of control planes, which DHCP must not lease.

use api::meta::ObjectKey;

use super::Index;

impl Index {
    /// Adds or updates the address of a ControlPlaneEndpoint. A text that is not an IPv4 address
    /// reserves none.
    pub fn put_endpoint(&self, key: ObjectKey, address: &str) {
        match address.parse() {
            Ok(address) => drop(self.write().endpoints.insert(key, address)),
            Err(_) => self.remove_endpoint(&key),
        }
    }

    /// Removes the address of a ControlPlaneEndpoint.
    pub fn remove_endpoint(&self, key: &ObjectKey) {
        self.write().endpoints.remove(key);
    }
}
