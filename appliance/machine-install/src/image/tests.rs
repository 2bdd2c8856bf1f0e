use api::os_image::OsImage;
use serde_json::{Value, json};
use stdx::Hint as _;

use super::{Checksum, Image, ImageLocation, ImageLookup, ImageRequest, resolve};

fn image(name: &str, more: &Value) -> OsImage {
    let mut spec = json!({
        "url": format!("http://10.77.0.1:7080/images/{name}.raw.zst"),
        "os": { "distro": "ubuntu", "version": "20.04" },
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

fn named(name: &str) -> ImageRequest {
    ImageRequest {
        os_image: Some(name.to_owned()),
        kubernetes_version: "v1.33.1".to_owned(),
        architecture: Some("x86_64".to_owned()),
        ..ImageRequest::default()
    }
}

fn lookup(fields: [&str; 4]) -> ImageLookup {
    let [format, base_registry, os_distro, os_version] = fields.map(|it| Some(it.to_owned()));
    ImageLookup { format, base_registry, os_distro, os_version }
}

fn registry(image: Result<Image, super::InstallError>) -> String {
    match image.unwrap().location {
        ImageLocation::Registry(reference) => reference,
        ImageLocation::Url(url) => panic!("{url} is not in a registry"),
    }
}

fn looked_up(version: &str, machine: ImageLookup, cluster: ImageLookup) -> ImageRequest {
    let kubernetes_version = version.to_owned();
    ImageRequest { kubernetes_version, machine, cluster, ..ImageRequest::default() }
}

#[test]
fn an_image_is_found_by_name_and_by_operating_system() {
    let sum = "a".repeat(64);
    let other = json!({
        "os": { "distro": "Debian", "version": "12" },
        "checksum": { "sha256": sum },
        "format": "oci",
        "url": "oci://ghcr.io/owner/debian:12",
    });
    let images = [image("focal", &json!({})), image("bookworm", &other)];
    let url = "http://10.77.0.1:7080/images/focal.raw.zst".to_owned();
    let (distro, version) = ("ubuntu".to_owned(), "20.04".to_owned());
    let focal = Image { location: ImageLocation::Url(url), checksum: None, distro, version };
    assert_eq!(resolve(&named("focal"), &images).unwrap(), focal);
    assert_eq!(resolve(&named("ubuntu-20.04"), &images).unwrap(), focal);
    let bookworm = resolve(&named("debian-12"), &images).unwrap();
    assert_eq!(bookworm.location, ImageLocation::Registry("ghcr.io/owner/debian:12".to_owned()));
    assert_eq!((bookworm.checksum, &*bookworm.distro), (Some(Checksum::Sha256(sum)), "debian"));
}

#[test]
fn a_name_is_preferred_to_an_operating_system() {
    let images = [image("a", &json!({})), image("ubuntu-20.04", &json!({}))];
    let found = resolve(&named("ubuntu-20.04"), &images).unwrap();
    let url = "http://10.77.0.1:7080/images/ubuntu-20.04.raw.zst".to_owned();
    assert_eq!(found.location, ImageLocation::Url(url));
}

#[test]
fn an_unknown_image_is_an_error_with_the_known_names() {
    let error = resolve(&named("windows-11"), &[]).unwrap_err();
    assert_eq!(error.reason(), "ImageNotFound");
    assert_eq!(
        error.to_string(),
        "osImage \"windows-11\": no OSImage has this name or DISTRO-VERSION; the namespace has no \
         OSImage"
    );
    assert_eq!(error.hint(), Some("create the OSImage, or correct spec.osImage"));
    let images: Vec<OsImage> =
        (0..13).rev().map(|at| image(&format!("i{at:02}"), &json!({}))).collect();
    let error = resolve(&named("x"), &images).unwrap_err().to_string();
    assert!(
        error.ends_with("; known: i00, i01, i02, i03, i04, i05, i06, i07, i08, i09 and 3 more"),
        "{error}"
    );
}

#[test]
fn of_several_images_the_one_for_the_version_and_the_architecture_is_used() {
    let images = [
        image("any", &json!({})),
        image("minor", &json!({ "kubernetesVersion": "1.33" })),
        image("arm", &json!({ "kubernetesVersion": "v1.33.1", "architecture": "aarch64" })),
        image("old", &json!({ "kubernetesVersion": "v1.32.9" })),
        image("intel", &json!({ "kubernetesVersion": "v1.33", "architecture": "x86_64" })),
    ];
    let found = |request: &ImageRequest| match resolve(request, &images).unwrap().location {
        ImageLocation::Url(url) => url.rsplit('/').next().unwrap().replace(".raw.zst", ""),
        ImageLocation::Registry(reference) => reference,
    };
    let os = named("ubuntu-20.04");
    assert_eq!(found(&os), "intel");
    let go_name = ImageRequest { architecture: Some("arm64".to_owned()), ..os.clone() };
    assert_eq!(found(&go_name), "arm");
    let old = ImageRequest { kubernetes_version: "v1.32.9".to_owned(), ..os.clone() };
    assert_eq!(found(&old), "old");
    let other = ImageRequest { kubernetes_version: "v1.3.0".to_owned(), ..os.clone() };
    assert_eq!(found(&other), "any");
    let error = resolve(&named("old"), &images).unwrap_err();
    assert_eq!(error.reason(), "ImageMismatch");
    let why = "OSImage old has Kubernetes v1.32.9, but the Machine has version v1.33.1";
    assert_eq!(error.to_string(), format!("osImage \"old\": {why}"));
    let error = resolve(&named("ubuntu-20.04"), &images[2..4]).unwrap_err().to_string();
    let why = "OSImage arm is for aarch64, but the Hardware is x86_64";
    assert_eq!(error, format!("osImage \"ubuntu-20.04\": {why}"));
    let twice = [image("b", &json!({})), image("a", &json!({}))];
    let error = resolve(&os, &twice).unwrap_err();
    assert_eq!(error.reason(), "ImageAmbiguous");
    assert!(error.to_string().ends_with("several OSImages fit: a, b"), "{error}");
}

#[test]
fn an_invalid_image_is_refused() {
    let sums = json!({ "sha256": "a", "md5": "b" });
    for (more, why) in [
        (json!({ "url": "ghcr.io/a/b:c" }), "spec.url: expected an http or https URL"),
        (json!({ "url": "http://u:p@host/a" }), "spec.url: expected an http or https URL"),
        (json!({ "url": "http:///a" }), "spec.url: expected an http or https URL"),
        (json!({ "url": "http://host/a b" }), "spec.url: expected an http or https URL"),
        (json!({ "url": "http://host/a", "format": "oci" }), "spec.url: expected a reference"),
        (json!({ "url": "ghcr.io/a/b", "format": "oci" }), "spec.url: \"ghcr.io/a/b\" is not"),
        (json!({ "checksum": sums }), "spec.checksum: expected one field, found several"),
        (json!({ "checksum": { "url": "SHA256SUMS" } }), "spec.checksum.url: expected an http"),
    ] {
        let error = resolve(&named("a"), &[image("a", &more)]).unwrap_err();
        assert_eq!(error.reason(), "ImageInvalid", "{more}");
        assert!(error.to_string().starts_with(&format!("OSImage \"a\": {why}")), "{error}");
    }
}

#[test]
fn the_lookup_has_the_defaults_of_capt() {
    let unset = ImageLookup::default;
    let request = looked_up("v1.23.5", unset(), unset());
    let default = "ghcr.io/tinkerbell/cluster-api-provider-tinkerbell/ubuntu-2004:v1.23.5.gz";
    assert_eq!(registry(resolve(&request, &[])), default);
    // An empty osImage is absent, and the lookup does not search the OSImages.
    let request = ImageRequest { os_image: Some(String::new()), ..request };
    assert_eq!(registry(resolve(&request, &[image("a", &json!({}))])), default);
}

#[test]
fn the_machine_precedes_the_cluster_and_the_cluster_the_defaults() {
    let format = "{{.BaseRegistry}}/x/{{.OSDistro}}-{{.OSVersion}}:{{.KubernetesVersion}}";
    let cluster = lookup([format, "quay.io/c", "Debian", "12.1"]);
    let request = looked_up("v1.33.1", ImageLookup::default(), cluster.clone());
    let found = resolve(&request, &[]);
    assert_eq!(found.as_ref().unwrap().distro, "debian");
    assert_eq!(registry(found), "quay.io/c/x/debian-121:v1.33.1");
    let machine = lookup(["", "ghcr.io/m", "", "13"]);
    let found = resolve(&looked_up("v1.33.1", machine, cluster.clone()), &[]);
    assert_eq!(registry(found), "ghcr.io/m/x/debian-13:v1.33.1");
    let url = "http://10.0.0.5/{{.OSDistro}}/{{ .KubernetesVersion | trimPrefix \"v\" }}.raw.gz";
    let machine = lookup([url, "", "", ""]);
    let found = resolve(&looked_up("v1.33.1", machine, cluster), &[]).unwrap();
    let url = "http://10.0.0.5/debian/1.33.1.raw.gz".to_owned();
    assert_eq!(found.location, ImageLocation::Url(url));
}

#[test]
fn an_incomplete_lookup_names_the_field() {
    let unset = ImageLookup::default;
    let no_registry = ImageLookup { base_registry: Some(String::new()), ..unset() };
    let no_version = ImageLookup { os_distro: Some("debian".to_owned()), ..unset() };
    for (request, variable, field) in [
        (looked_up("v1", unset(), no_registry), "BaseRegistry", "imageLookupBaseRegistry"),
        (looked_up("v1", no_version, unset()), "OSVersion", "imageLookupOSVersion"),
        (looked_up("", unset(), unset()), "KubernetesVersion", "spec.version of the Machine"),
    ] {
        let error = resolve(&request, &[]).unwrap_err();
        assert_eq!(error.reason(), "ImageLookupIncomplete");
        let uses = format!("imageLookupFormat uses .{variable}, but {field} is empty");
        assert_eq!(error.to_string(), format!("image lookup: {uses}"));
    }
    // A format without the registry needs none.
    let format = ImageLookup { format: Some("ghcr.io/a/b:c".to_owned()), ..unset() };
    let empty = ImageLookup { base_registry: Some(String::new()), ..unset() };
    assert_eq!(registry(resolve(&looked_up("", format, empty), &[])), "ghcr.io/a/b:c");
}

#[test]
fn an_invalid_lookup_is_refused() {
    for (format, why) in [
        ("{{.BaseRegistry", "imageLookupFormat: template line 1: "),
        ("{{.Registry}}/a:b", "imageLookupFormat: template line 1: "),
        ("{{ env \"HOME\" }}", "imageLookupFormat: template line 1: "),
        ("{{.BaseRegistry}}/a", "\"ghcr.io/tinkerbell/"),
        ("ftp://host/a", "expected a reference in a registry"),
        ("no-host/a:b", "\"no-host/a:b\" is not an image in a registry"),
    ] {
        let machine = ImageLookup { format: Some(format.to_owned()), ..ImageLookup::default() };
        let request = looked_up("v1.33.1", machine, ImageLookup::default());
        let error = resolve(&request, &[]).unwrap_err();
        assert_eq!(error.reason(), "ImageLookupInvalid", "{format}");
        assert!(error.to_string().starts_with(&format!("image lookup: {why}")), "{error}");
    }
}
