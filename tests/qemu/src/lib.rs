//! qemu
