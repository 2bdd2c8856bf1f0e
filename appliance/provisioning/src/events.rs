//! Events of machines: creation from observations of the boot services, and history for the status
//! view.

pub mod dhcp_requests;
pub mod event_history;
pub mod observers;
