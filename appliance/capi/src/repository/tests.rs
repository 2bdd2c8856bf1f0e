use super::{CLASS_YAML, Repository, SERIES, TEMPLATES};

/// Path of the current release in the registry.
const RELEASE: &str =
    "/api/v4/projects/box%2Ffirmware/packages/generic/infrastructure-tinbox/v0.1.0";

#[test]
fn the_series_of_this_version_is_in_the_metadata() {
    let mut parts = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse::<u64>().unwrap());
    let (major, minor) = (parts.next().unwrap(), parts.next().unwrap());
    assert!(SERIES.iter().any(|(a, b, _)| (*a, *b) == (major, minor)), "append {major}.{minor}");
}

#[test]
fn the_url_of_the_configuration_leads_to_the_components() {
    let repository = Repository::new("0.1.0");
    let config = repository.config("gitlab.tinbox.local:8443");
    let urls: Vec<&str> = config.lines().filter_map(|line| line.strip_prefix("  url: ")).collect();
    let paths =
        urls.iter().map(|url| url.strip_prefix("https://gitlab.tinbox.local:8443").unwrap());
    let paths: Vec<&str> = paths.collect();
    assert_eq!(paths[0], format!("{RELEASE}/infrastructure-components.yaml"));
    assert_eq!(repository.package_file(paths[0]), Some(repository.components()));
    assert_eq!(paths.len(), 3);
    for path in paths {
        assert!(repository.package_file(path).unwrap().contains("CustomResourceDefinition"));
        let metadata = path.replace("infrastructure-components", "metadata");
        let version = path.rsplit('/').nth(1).unwrap();
        let minor = version.split('.').nth(1).unwrap();
        let series = repository.package_file(&metadata).unwrap();
        assert!(series.contains(&format!("minor: {minor}\n")), "{version}: {series}");
    }
}

#[test]
fn other_paths_are_not_served() {
    let repository = Repository::new("0.1.0");
    let metadata = format!("{RELEASE}/metadata.yaml");
    assert!(repository.package_file(&metadata).is_some());
    for (part, other) in [
        ("v0.1.0", "v0.2.0"),
        ("infrastructure-tinbox", "infrastructure-metal3"),
        ("box%2Ffirmware", "box"),
        ("box%2Ffirmware", "box/firmware"),
        ("/api/v4", "/api/v3"),
        ("metadata.yaml", "cluster-template-none.yaml"),
        ("metadata.yaml", ""),
        ("metadata.yaml", "/metadata.yaml"),
        ("metadata.yaml", "metadata.yaml/more"),
    ] {
        let path = metadata.replacen(part, other, 1);
        assert_eq!(repository.package_file(&path), None, "{path}");
    }
}

#[test]
fn each_template_is_a_file_with_yaml_documents() {
    let repository = Repository::new("0.1.0");
    for (flavor, _) in TEMPLATES {
        let name = super::template_name(flavor);
        let text = repository.package_file(&format!("{RELEASE}/{name}")).unwrap();
        assert!(text.contains("apiVersion:") && text.contains("${CLUSTER_NAME}"), "{name}");
    }
}

#[test]
fn a_name_of_an_image_stays_text() {
    for (flavor, text) in TEMPLATES.into_iter().chain([("class", CLASS_YAML)]) {
        let mut lines = text.lines().filter(|line| line.contains("${OS_IMAGE"));
        // Talos has no image that the box could look up by a Kubernetes version.
        let value = if flavor == "talos" { "${OS_IMAGE}" } else { "${OS_IMAGE:=\"\"}" };
        assert!(lines.all(|line| line.ends_with(&format!(": !!str {value}"))), "{flavor}");
    }
}

#[test]
fn a_cluster_without_a_name_of_an_image_keeps_its_machines() {
    let (_, patch) = CLASS_YAML.split_once("- name: os-image\n").unwrap();
    let (patch, _) = patch.split_once("- name: infrastructure\n").unwrap();
    assert!(patch.contains("enabledIf: '{{ if .osImage }}true{{ end }}'"), "{patch}");
}
