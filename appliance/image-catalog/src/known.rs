//! Images of popular distributions, by the addresses of their publishers.

use api::os_image::ImageFormat;

/// Image that a publisher offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownImage {
    /// Name of the OSImage.
    pub name: &'static str,
    /// Name of the system for a person.
    pub title: &'static str,
    /// Distribution, such as `debian`.
    pub distro: &'static str,
    /// Version of the distribution.
    pub version: &'static str,
    /// URL of the image.
    pub url: &'static str,
    /// URL of the publisher's file of checksums; empty if there is none that agents can read.
    pub sums_url: &'static str,
    /// Format of the image.
    pub format: ImageFormat,
}

/// Images for x86_64, most popular first.
pub const KNOWN: [KnownImage; 6] = [
    KnownImage {
        name: "debian-13",
        title: "Debian 13",
        distro: "debian",
        version: "13",
        url: "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-generic-amd64.qcow2",
        sums_url: "https://cloud.debian.org/images/cloud/trixie/latest/SHA512SUMS",
        format: ImageFormat::Qcow2,
    },
    KnownImage {
        name: "debian-12",
        title: "Debian 12",
        distro: "debian",
        version: "12",
        url: "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-generic-amd64.qcow2",
        sums_url: "https://cloud.debian.org/images/cloud/bookworm/latest/SHA512SUMS",
        format: ImageFormat::Qcow2,
    },
    KnownImage {
        name: "ubuntu-24.04",
        title: "Ubuntu 24.04 LTS",
        distro: "ubuntu",
        version: "24.04",
        url: "https://cloud-images.ubuntu.com/noble/current/noble-server-cloudimg-amd64.img",
        sums_url: "https://cloud-images.ubuntu.com/noble/current/SHA256SUMS",
        format: ImageFormat::Qcow2,
    },
    KnownImage {
        name: "fedora-43",
        title: "Fedora 43 Cloud",
        distro: "fedora",
        version: "43",
        url: "https://download.fedoraproject.org/pub/fedora/linux/releases/43/Cloud/x86_64/images/\
              Fedora-Cloud-Base-Generic-43-1.6.x86_64.qcow2",
        sums_url: "https://download.fedoraproject.org/pub/fedora/linux/releases/43/Cloud/x86_64/\
                   images/Fedora-Cloud-43-1.6-x86_64-CHECKSUM",
        format: ImageFormat::Qcow2,
    },
    KnownImage {
        name: "flatcar-stable",
        title: "Flatcar Container Linux, stable",
        distro: "flatcar",
        version: "stable",
        url: "https://stable.release.flatcar-linux.net/amd64-usr/current/\
              flatcar_production_image.bin.bz2",
        sums_url: "",
        format: ImageFormat::Raw,
    },
    KnownImage {
        name: "talos-1.11",
        title: "Talos Linux 1.11",
        distro: "talos",
        version: "1.11.2",
        // The schematic of the image factory without additions.
        url: "https://factory.talos.dev/image/\
              376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba/v1.11.2/\
              metal-amd64.raw.zst",
        sums_url: "",
        format: ImageFormat::Raw,
    },
];
