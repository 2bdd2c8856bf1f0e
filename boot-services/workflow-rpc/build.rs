//! Compiles `proto/` without protoc.

/// Messages that are also stored and matched as JSON.
const ATTRIBUTES: [&str; 12] = [
    "AgentAttributes",
    "CPU",
    "Processor",
    "Memory",
    "Block",
    "Network",
    "PCI",
    "GPU",
    "Chassis",
    "BIOS",
    "Baseboard",
    "Product",
];

/// JSON names that differ from the field's own, as Tinkerbell's rule sets match on them.
const RENAMED: [(&str, &str); 4] = [
    ("block", "blockDevices"),
    ("network", "networkInterfaces"),
    ("pci", "pciDevices"),
    ("gpu", "gpuDevices"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(["tinkerbell.proto", "tinbox.proto"], ["proto"])?;
    let mut builder = tonic_prost_build::configure();
    for message in ATTRIBUTES {
        let path = format!(".proto.{message}");
        builder = builder
            .message_attribute(&path, "#[derive(serde::Serialize, serde::Deserialize)]")
            .message_attribute(&path, "#[serde(rename_all = \"camelCase\", default)]")
            .field_attribute(&path, "#[serde(skip_serializing_if = \"crate::wire::absent\")]");
    }
    for (field, name) in RENAMED {
        let path = format!(".proto.AgentAttributes.{field}");
        builder = builder.field_attribute(path, format!("#[serde(rename = \"{name}\")]"));
    }
    builder.compile_fds(files)?;
    Ok(())
}
