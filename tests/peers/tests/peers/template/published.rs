//! Templates with the constructs of published ones: Cluster API's default template, the
//! EKS-Anywhere templates, the playground's and those of the documentation.

use serde_json::{Value, json};

/// Name and text of each template.
pub const TEMPLATES: &[(&str, &str)] = &[
    (
        "Cluster API",
        r#"version: "0.1"
name: capi
global_timeout: 6000
tasks:
  - name: "capi"
    worker: "{{.device_1}}"
    volumes:
      - /dev:/dev
    actions:
      - name: "stream image"
        image: quay.io/tinkerbell/actions/oci2disk
        timeout: 600
        environment:
          IMG_URL: ghcr.io/x/ubuntu-2204:v1.30.1.gz
          DEST_DISK: /dev/sda
          COMPRESSED: true
      - name: "add cloud-init"
        image: quay.io/tinkerbell/actions/writefile
        timeout: 90
        environment:
          DEST_DISK: {{ formatPartition "/dev/sda" 2 }}
          MODE: 0600
          DIRMODE: 0700
          UID: 0
"#,
    ),
    (
        "EKS Anywhere",
        r#"tasks:
- name: eks
  worker: "{{.device_1}}"
  actions:
  - name: network
    environment:
      STATIC_NETPLAN: true
      ADDRESS: {{ (index .Hardware.Interfaces 0).DHCP.IP.Address }}
      PREFIX: {{ netmaskToPrefixLength (index .Hardware.Interfaces 0).DHCP.IP.Netmask }}
      GATEWAY: {{ (index .Hardware.Interfaces 0).DHCP.IP.Gateway }}
"#,
    ),
    (
        "playground",
        r#"{{- $disk := index .Hardware.Disks 0 }}
worker: "{{.device_1}}"
DEST_DISK: {{ $disk }}
ROOT: {{ formatPartition ( index .Hardware.Disks 0 ) 1 }}
{{- range $i, $interface := .Hardware.Interfaces }}
eth{{ $i }}:
  mac: {{ $interface.DHCP.MAC | replace ":" "-" | upper | quote }}
  {{- if $interface.DHCP.Hostname }}
  hostname: {{ $interface.DHCP.Hostname }}
  {{- else }}
  hostname: none
  {{- end }}
  dns: [{{ range $at, $server := $interface.DHCP.NameServers -}}
    {{ if $at }}, {{ end }}{{ $server }}{{ end }}]
{{- end }}
"#,
    ),
    (
        "hook",
        r#"contents: |
{{ .Hardware.UserData | default "none" | indent 2 }}
encoded: {{ .Hardware.UserData | b64enc }}
again: {{ .Hardware.UserData | b64enc | b64dec | quote }}
arch: {{ default "x86_64" (index .Hardware.Interfaces 0).DHCP.Arch }}
{{- with (index .Hardware.Interfaces 0).DHCP }}
lease: {{ .LeaseTime }}{{ if eq .LeaseTime 1000000 }} {{ div .LeaseTime 3600 }} h{{ end }}
{{- end }}
kexec: {{ printf "/boot/vmlinuz-%s root=%s%d" "6.1" (index .Hardware.Disks 1) 3 | squote }}
name: {{ .hardware.metadata.name }}{{ with .hardware.spec.userData }} {{ len . }}{{ end }}
{{ toYaml .hardware.spec.disks | nindent 2 }}
"#,
    ),
];

/// Data of one machine, for all templates.
pub fn data() -> Value {
    let dhcp = |mac: &str, hostname: &str| {
        json!({ "DHCP": {
            "MAC": mac, "Hostname": hostname, "Arch": "",
            "NameServers": ["10.0.0.1", "1.1.1.1"], "LeaseTime": 1_000_000,
            "IP": { "Address": "10.0.0.7", "Netmask": "255.255.254.0", "Gateway": "10.0.0.1" },
        } })
    };
    json!({
        "device_1": "52:54:00:00:00:01",
        "hardware": {
            "metadata": { "name": "nuc1" },
            "spec": { "userData": "#cloud-config\n", "disks": [{ "device": "/dev/sda" }] },
        },
        "Hardware": {
            "Disks": ["/dev/nvme0n1", "/dev/sda"],
            "Interfaces": [dhcp("52:54:00:00:00:01", "nuc1"), dhcp("52:54:00:00:00:02", "")],
            "UserData": "#cloud-config\nusers: []\n",
        },
    })
}
