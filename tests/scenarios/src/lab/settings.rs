//! Configuration file of the box in a lab. No I/O.

use std::path::Path;

use super::LabConfig;

/// Returns the text of `box.toml`. Machines boot files from `artifacts`; `cache` is the folder of
/// images of other servers.
pub fn box_toml(config: &LabConfig, artifacts: &Path, cache: &Path) -> String {
    let images = if config.images {
        let plain = &config.plain_registries;
        format!(
            "[images]\n\
             cache = {cache:?}\n\
             networks = [\"10.77.0.0/24\", \"10.99.0.0/24\"]\n\
             plain_registries = {plain:?}\n"
        )
    } else {
        String::new()
    };
    // The port is in the namespace of the rack's box, so racks do not disturb each other.
    let web = if config.pages { "[web]\nlisten = \"10.77.0.1:443\"\n" } else { "" };
    let api = match config.name.as_str() {
        "" => String::new(),
        name => format!("[api]\nnames = [{name:?}]\n"),
    };
    // On a busy machine an emulated timer is so late that Linux treats it as broken and panics.
    format!(
        "[network]\n\
         interface = \"eth0\"\n\
         address = \"10.77.0.1\"\n\
         {}\n\
         [boot]\n\
         artifacts = {artifacts:?}\n\
         kernel_args = [\"no_timer_check\"]\n\
         [agents]\n\
         permissive = {}\n\
         silence_secs = {}\n\
         boot_secs = 600\n\
         [bmc]\n\
         poll_secs = 5\n\
         {images}{api}{web}",
        config.network, config.stock_agents, config.silence_secs,
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use qemu::RackConfig;

    use super::{LabConfig, box_toml};

    #[test]
    fn only_a_lab_with_pages_listens_for_browsers() {
        let mut config = LabConfig::new(RackConfig::new("settings"));
        let text = |config: &LabConfig| box_toml(config, Path::new("/a"), Path::new("/c"));
        let without = text(&config);
        assert!(without.contains("artifacts = \"/a\"\n"), "{without}");
        assert!(!without.contains("[web]") && !without.contains("[images]"), "{without}");
        config.pages = true;
        assert_eq!(text(&config), without + "[web]\nlisten = \"10.77.0.1:443\"\n");
    }
}
