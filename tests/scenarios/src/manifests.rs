//! Manifests that an owner writes for the virtual NUCs.

use std::fmt::Write as _;

use poe_sim::PoePorts;
use qemu::{BmcAccess, BmcKind, Nuc, Segment};

/// An image to install.
#[derive(Debug, Clone)]
pub struct Image {
    /// URL for the agent.
    pub url: String,
    /// SHA-256 of the file as served.
    pub sha256: String,
}

/// Secret, bmc Machine and Hardware of one NUC, as one file. With `reserved` the Hardware contains
/// the machine's address.
pub fn nuc_manifest(
    nuc: &Nuc,
    uefi: bool,
    reserved: bool,
    ssh_key: &str,
    user_data: &str,
) -> String {
    let number = nuc.number();
    let (name, mac, bmc) = (format!("nuc{number}"), nuc.mac(), nuc.bmc());
    let subnet = match nuc.config().segment {
        Segment::Near => "10.77.0",
        Segment::Far => "10.78.0",
    };
    let ip = if reserved {
        let address = format!("{subnet}.{}", 10 + number);
        format!("      ip: {{address: {address}, netmask: 255.255.255.0, gateway: {subnet}.1}}\n")
    } else {
        String::new()
    };
    let vlan = match nuc.config().vlan {
        Some(vlan) => format!("      vlan_id: \"{vlan}\"\n"),
        None => String::new(),
    };
    let indented = user_data.lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "    {line}");
        text
    });
    let machine = bmc_manifest(&name, bmc);
    format!(
        "{machine}\
         ---\n\
         apiVersion: tinkerbell.org/v1alpha1\n\
         kind: Hardware\n\
         metadata: {{name: {name}}}\n\
         spec:\n\
         \x20 bmcRef: {{apiGroup: bmc.tinkerbell.org, kind: Machine, name: bmc-{name}}}\n\
         \x20 disks: [{{device: /dev/vda}}]\n\
         \x20 interfaces:\n\
         \x20 - netboot: {{allowPXE: false}}\n\
         \x20   dhcp:\n\
         \x20     mac: \"{mac}\"\n\
         \x20     hostname: {name}\n\
         \x20     lease_time: 86400\n\
         \x20     uefi: {uefi}\n\
         \x20     arch: x86_64\n\
         \x20     name_servers: [10.77.0.1]\n\
         {ip}{vlan}\
         \x20 metadata:\n\
         \x20   instance:\n\
         \x20     id: \"{mac}\"\n\
         \x20     hostname: {name}\n\
         \x20     ssh_keys: [\"{ssh_key}\"]\n\
         \x20 userData: |\n{indented}",
    )
}

/// Secret and bmc Machine of a NUC.
fn bmc_manifest(name: &str, bmc: &BmcAccess) -> String {
    let (address, password) = (bmc.address, bmc.password.expose());
    let secret = |data: String| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: bmc-{name}}}\nstringData: \
             {{{data}}}\n---\n"
        )
    };
    let login = || secret(format!("username: {}, password: \"{password}\"", bmc.user));
    let reference = format!("    authSecretRef: {{name: bmc-{name}, namespace: default}}\n");
    let (secret, host, options) = match bmc.kind {
        BmcKind::Ipmi => (login(), address.to_string(), reference),
        BmcKind::Amt => {
            let amt = "    providerOptions: {intelAMT: {hostScheme: http}}\n";
            (login(), address.to_string(), format!("{reference}{amt}"))
        }
        BmcKind::Redfish => {
            let redfish = "    providerOptions: {redfish: {}}\n";
            (login(), address.to_string(), format!("{reference}{redfish}"))
        }
        BmcKind::Poe => {
            let keys = format!(
                "username: {}, password: {}, privacyPassword: \"{password}\"",
                bmc.user,
                PoePorts::PASSWORD
            );
            let (group, index) = PoePorts::PORT;
            let poe = format!(
                "    providerOptions: {{poe: {{outlet: \"{group}.{index}\", \
                 portName: {name}-port{index}}}}}\n"
            );
            (secret(keys), address.to_string(), format!("{reference}{poe}"))
        }
        BmcKind::WakeOnLan => {
            let options = "    providerOptions: {wakeOnLAN: {}}\n";
            (String::new(), name.to_owned(), options.to_owned())
        }
        BmcKind::Webhook => {
            let port = BmcAccess::WEBHOOK_PORT;
            let options = format!(
                "\x20   providerOptions:\n\
                 \x20     rpc:\n\
                 \x20       consumerURL: http://{address}:{port}/\n\
                 \x20       hmac:\n\
                 \x20         secrets: {{sha256: [{{name: bmc-{name}, namespace: default}}]}}\n"
            );
            (secret(format!("secret: \"{password}\"")), address.to_string(), options)
        }
    };
    format!(
        "{secret}\
         apiVersion: bmc.tinkerbell.org/v1alpha1\n\
         kind: Machine\n\
         metadata: {{name: bmc-{name}}}\n\
         spec:\n\
         \x20 connection:\n\
         \x20   host: {host}\n\
         \x20   port: 623\n\
         \x20   insecureTLS: false\n\
         {options}"
    )
}

/// A file that a template writes into the installed system.
#[derive(Debug, Clone, Copy)]
pub struct TemplateFile {
    /// Name of the action.
    pub action: &'static str,
    /// Path in the installed system.
    pub path: &'static str,
    /// Lines of the file.
    pub lines: &'static [&'static str],
}

/// Files that configure Debian's cloud-init for the box, as the default template of Cluster API
/// Provider Tinkerbell does.
pub const CLOUD_INIT: &[TemplateFile] = &[
    TemplateFile {
        action: "name-the-metadata-service",
        path: "/etc/cloud/cloud.cfg.d/10_tinkerbell.cfg",
        lines: &[
            "datasource:",
            "  Ec2:",
            "    metadata_urls: [\"http://10.77.0.1:50061\"]",
            "    strict_id: false",
            "manage_etc_hosts: localhost",
            "warnings:",
            "  dsid_missing_source: off",
        ],
    },
    TemplateFile {
        action: "choose-the-datasource",
        path: "/etc/cloud/ds-identify.cfg",
        lines: &["datasource: Ec2"],
    },
];

/// File with the URL of the box's metadata service, for the small system.
pub const METADATA_URL: &[TemplateFile] = &[TemplateFile {
    action: "name-the-metadata-service",
    path: "/etc/metadata_url",
    lines: &["http://10.77.0.1:50061"],
}];

/// A template that installs `image`, writes `files` into it and reboots.
pub fn install_template(name: &str, image: &Image, files: &[TemplateFile]) -> String {
    let files: String = files.iter().map(write_file).collect();
    format!(
        "version: \"0.1\"\n\
         name: {name}\n\
         global_timeout: 3600\n\
         tasks:\n\
         - name: install\n\
         \x20 worker: \"{{{{.device_1}}}}\"\n\
         \x20 volumes:\n\
         \x20 - /dev:/dev\n\
         \x20 actions:\n\
         \x20 - name: stream-image\n\
         \x20   image: quay.io/tinkerbell/actions/image2disk:latest\n\
         \x20   timeout: 2400\n\
         \x20   environment:\n\
         \x20     IMG_URL: {url}\n\
         \x20     IMG_SHA256: {sha256}\n\
         \x20     DEST_DISK: \"{{{{ index .Hardware.Disks 0 }}}}\"\n\
         \x20     COMPRESSED: true\n\
         {files}\
         \x20 - name: reboot\n\
         \x20   image: quay.io/tinkerbell/actions/reboot:latest\n\
         \x20   timeout: 60\n",
        url = image.url,
        sha256 = image.sha256,
    )
}

fn write_file(file: &TemplateFile) -> String {
    let TemplateFile { action: name, path, lines } = file;
    let contents = lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "        {line}");
        text
    });
    format!(
        "\x20 - name: {name}\n\
         \x20   image: quay.io/tinkerbell/actions/writefile:latest\n\
         \x20   timeout: 90\n\
         \x20   environment:\n\
         \x20     DEST_DISK: \"{{{{ formatPartition (index .Hardware.Disks 0) 1 }}}}\"\n\
         \x20     FS_TYPE: ext4\n\
         \x20     DEST_PATH: {path}\n\
         \x20     UID: 0\n\
         \x20     GID: 0\n\
         \x20     MODE: 0600\n\
         \x20     DIRMODE: 0700\n\
         \x20     CONTENTS: |\n{contents}"
    )
}
