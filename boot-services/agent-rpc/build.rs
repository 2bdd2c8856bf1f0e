//! Compiles the files of `proto/` with protox, without the program protoc.

/// Messages that the box also stores as JSON, for Tinkerbell's rule sets.
const STORED: [&str; 21] = [
    "proto.AgentAttributes",
    "proto.CPU",
    "proto.Processor",
    "proto.Memory",
    "proto.Block",
    "proto.Network",
    "proto.PCI",
    "proto.GPU",
    "proto.Chassis",
    "proto.BIOS",
    "proto.Baseboard",
    "proto.Product",
    "tinbox.v1.Inventory",
    "tinbox.v1.MemoryModule",
    "tinbox.v1.Disk",
    "tinbox.v1.Health",
    "tinbox.v1.Interface",
    "tinbox.v1.Neighbour",
    "tinbox.v1.Tpm",
    "tinbox.v1.Efi",
    "tinbox.v1.BootEntry",
];

/// Fields of AgentAttributes and their names in JSON, which Tinkerbell's rule sets use.
const RENAMED: [(&str, &str); 4] = [
    ("block", "blockDevices"),
    ("network", "networkInterfaces"),
    ("pci", "pciDevices"),
    ("gpu", "gpuDevices"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(["tinkerbell.proto", "tinbox.proto"], ["proto"])?;
    let mut builder = tonic_prost_build::configure()
        .extern_path(".proto.AnyActionStatus", "crate::wire::AnyActionStatus");
    for message in STORED {
        let path = format!(".{message}");
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
