use std::sync::Arc;

use api::os_image::ImageFormat;
use objects::fake::Memory;

use super::{
    CatalogError, ImageCatalog, ImageForm, KNOWN, UPLOADED, reads_ignition, template_data,
};

const SHA256: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn form() -> ImageForm {
    let text = str::to_owned;
    let (name, distro, version) = (text("debian-13"), text("Debian"), text("13"));
    ImageForm { name, distro, version, url: String::new(), checksum: String::new() }
}

#[tokio::test]
async fn each_known_image_is_added_and_makes_a_workflow() {
    let catalog = ImageCatalog::new(Arc::new(Memory::default()));
    for known in KNOWN {
        catalog.add_known(known.name).await.unwrap();
        assert!(catalog.add_known(known.name).await.is_err(), "{} is there", known.name);
    }
    assert_eq!(catalog.list().await.unwrap().len(), KNOWN.len());
    for image in &catalog.images().await.unwrap() {
        let text = template_data(image, "10.77.0.1").unwrap();
        template::check(&text).unwrap();
        let map = [("device_1".to_owned(), "52:54:00:77:00:01".to_owned())].into();
        let hardware = serde_json::json!({ "spec": { "disks": [{ "device": "/dev/sda" }] } });
        let data = api::document::data(&map, &hardware);
        let rendered = template::render(&text, &data).unwrap();
        let document = api::document::parse(&rendered).unwrap();
        let actions = document.tasks[0].actions.len();
        let distro = image.spec.os.distro.as_str();
        let expected = match distro {
            "talos" => 2,
            "flatcar" => 3,
            _ => 4,
        };
        assert_eq!(actions, expected, "{distro}: {rendered}");
        assert_eq!(reads_ignition(image), distro == "flatcar");
        assert!(rendered.contains(&image.spec.url), "{rendered}");
    }
}

#[test]
fn mistakes_of_a_form_are_reported_together() {
    let bad = ImageForm {
        name: "Debian 13".to_owned(),
        distro: String::new(),
        version: "x".repeat(64),
        url: "ftp://a/b".to_owned(),
        checksum: "123".to_owned(),
    };
    let CatalogError::Fields(found) = bad.check(false).unwrap_err() else { panic!("no fields") };
    let fields: Vec<&str> = found.iter().map(|it| it.field).collect();
    assert_eq!(fields, ["name", "distro", "version", "url", "checksum"]);
    assert!(found.iter().all(|it| it.why.ends_with('.')), "{found:?}");

    let sums = ImageForm { checksum: "https://a/SHA256SUMS".to_owned(), ..form() };
    assert!(sums.check(true).is_err(), "the box checks an upload itself");
    let good = ImageForm { checksum: format!("sha256:{SHA256}"), ..form() }.check(true).unwrap();
    assert_eq!(good.checksum.unwrap().sha256.unwrap(), SHA256);
}

#[tokio::test]
async fn an_upload_replaces_an_upload_and_nothing_else() {
    let catalog = ImageCatalog::new(Arc::new(Memory::default()));
    let upload = form().check(true).unwrap();
    let url = format!("{UPLOADED}debian-13.qcow2");
    for sha256 in [SHA256, &SHA256.replace('9', "8")] {
        let upload = upload.clone().with_sha256(sha256);
        catalog.check_name(&upload).await.unwrap();
        catalog.save(&upload, &url, ImageFormat::Qcow2).await.unwrap();
    }
    let listed = catalog.list().await.unwrap();
    assert_eq!((listed.len(), listed[0].is_uploaded), (1, true));
    assert_eq!(listed[0].checksum, format!("SHA-256 {}", SHA256.replace('9', "8")));
    let images = catalog.images().await.unwrap();
    assert!(template_data(&images[0], "10.77.0.1").unwrap().contains(&url));

    let by_url = ImageForm { url: "https://a/b.qcow2".to_owned(), ..form() }.check(false).unwrap();
    let error = catalog.save(&by_url, "https://a/b.qcow2", by_url.format()).await.unwrap_err();
    assert!(matches!(&error, CatalogError::Taken(name) if name == "debian-13"), "{error}");
    let why = "An OS image is called debian-13. Choose another name, or delete that one.";
    assert_eq!(error.fields()[0].why, why);
    assert_eq!(catalog.remove("debian-13").await.unwrap(), Some(url));
    assert!(catalog.remove("debian-13").await.is_err());
    catalog.save(&by_url, "https://a/b.qcow2", by_url.format()).await.unwrap();
    assert!(catalog.check_name(&upload).await.is_err(), "an upload replaces no image by URL");
}

#[tokio::test]
async fn only_a_file_that_no_other_image_names_loses_its_pin() {
    let objects = Arc::new(Memory::default());
    let catalog = ImageCatalog::new(objects.clone());
    let url = "https://a/b.qcow2";
    for name in ["one", "two"] {
        let form = ImageForm { name: name.to_owned(), url: url.to_owned(), ..form() };
        catalog.save(&form.check(false).unwrap(), url, ImageFormat::Qcow2).await.unwrap();
    }
    let elsewhere = ImageCatalog::in_namespace(objects, "lab");
    assert!(matches!(elsewhere.remove("one").await, Err(CatalogError::Missing(_))));
    assert_eq!(catalog.remove("one").await.unwrap(), None);
    assert_eq!(catalog.remove("two").await.unwrap().as_deref(), Some(url));
}
