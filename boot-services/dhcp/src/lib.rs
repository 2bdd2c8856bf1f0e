//! dhcp
