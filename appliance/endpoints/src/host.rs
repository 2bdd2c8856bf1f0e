//! Access to the addresses of the host.

use std::future::Future;
use std::pin::Pin;

use platform::net::{Claim, Confirmation, VirtualAddress};

/// Future of a method of [`AddressHost`]; boxed, so that [`AddressHost`] can be a trait object.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, platform::Error>> + Send + 'a>>;

/// Virtual addresses of the host, with a fake in tests.
pub trait AddressHost: Send + Sync + 'static {
    /// Lists the virtual addresses, including those of an earlier process.
    fn all(&self) -> Pending<'_, Vec<VirtualAddress>>;
    /// Takes an address, unless another machine answers for it.
    fn take<'a>(&'a self, address: &'a VirtualAddress) -> Pending<'a, Claim>;
    /// Checks an address that was taken, and announces it again if `announce` is set.
    fn confirm<'a>(
        &'a self,
        address: &'a VirtualAddress,
        announce: bool,
    ) -> Pending<'a, Confirmation>;
    /// Removes an address from its interface; an address that is gone may be an error.
    fn give_back<'a>(&'a self, address: &'a VirtualAddress) -> Pending<'a, ()>;
}

/// Virtual addresses of the kernel (rtnetlink).
pub struct KernelAddresses;

impl AddressHost for KernelAddresses {
    fn all(&self) -> Pending<'_, Vec<VirtualAddress>> {
        Box::pin(VirtualAddress::all())
    }

    fn take<'a>(&'a self, address: &'a VirtualAddress) -> Pending<'a, Claim> {
        Box::pin(address.take())
    }

    fn confirm<'a>(
        &'a self,
        address: &'a VirtualAddress,
        announce: bool,
    ) -> Pending<'a, Confirmation> {
        Box::pin(address.confirm(announce))
    }

    fn give_back<'a>(&'a self, address: &'a VirtualAddress) -> Pending<'a, ()> {
        Box::pin(address.give_back())
    }
}
