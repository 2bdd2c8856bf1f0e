//! Events of machines: created from observations of boot services, read for the status view.

pub mod dhcp_requests;
pub mod event_history;
pub mod observers;
