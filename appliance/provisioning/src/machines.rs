//! Views of a Hardware for the boot services, and further inputs of a boot: boot token, boot
//! loader, preserved disks.

pub mod boot_token;
pub mod hardware_views;
pub mod instances;
pub mod learned_loaders;
pub mod preserve;
