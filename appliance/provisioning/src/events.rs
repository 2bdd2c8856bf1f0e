//! Events of machines: made from observations of the boot services, and read for the status view.

pub mod dhcp_requests;
pub mod event_history;
pub mod observers;
