use super::{Repository, SERIES, TEMPLATES};
use crate::PackagePath;

fn at<'a>(package: &'a str, version: &'a str, file: &'a str) -> PackagePath<'a> {
    PackagePath { slug: "box%2Ffirmware", package, version, file }
}

#[test]
fn the_series_of_this_version_is_in_the_metadata() {
    let mut parts = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse::<u64>().unwrap());
    let (major, minor) = (parts.next().unwrap(), parts.next().unwrap());
    assert!(SERIES.iter().any(|(a, b, _)| (*a, *b) == (major, minor)), "append {major}.{minor}");
}

#[test]
fn each_url_of_the_configuration_leads_to_the_components() {
    let repository = Repository::new("0.1.0");
    let config = repository.config("gitlab.tinbox.local:8443");
    let host = "https://gitlab.tinbox.local:8443";
    let urls: Vec<_> = config.lines().filter_map(|line| line.split_once("url: ")).collect();
    assert_eq!(urls.len(), 1);
    for (_, url) in urls {
        let path = PackagePath::parse(url.strip_prefix(host).unwrap()).unwrap();
        assert!(repository.package_file(&path).unwrap().contains("CustomResourceDefinition"));
    }
}

#[test]
fn other_versions_packages_and_files_are_not_served() {
    let repository = Repository::new("0.1.0");
    let has = |path: PackagePath<'_>| repository.package_file(&path).is_some();
    assert!(has(at("infrastructure-tinbox", "v0.1.0", "metadata.yaml")));
    assert!(!has(at("infrastructure-tinbox", "v0.2.0", "metadata.yaml")));
    assert!(!has(at("infrastructure-metal3", "v0.1.0", "metadata.yaml")));
    assert!(!has(at("bootstrap-tinbox", "v0.1.0", "metadata.yaml")));
    assert!(!has(at("infrastructure-tinbox", "v0.1.0", "cluster-template-none.yaml")));
    let current = at("infrastructure-tinbox", "v0.1.0", "metadata.yaml");
    assert!(!has(PackagePath { slug: "box", ..current }));
}

#[test]
fn each_template_is_a_file_with_yaml_documents() {
    let repository = Repository::new("0.1.0");
    for (flavor, _) in TEMPLATES {
        let name = super::template_name(flavor);
        let text = repository.package_file(&at("infrastructure-tinbox", "v0.1.0", &name)).unwrap();
        assert!(text.contains("apiVersion:") && text.contains("${CLUSTER_NAME}"), "{name}");
    }
}
