use api::tinkerbell::{ActionStatus, TaskStatus, WorkflowStatus};
use artifact_cache::{Checksum, Digest};

use super::{OwnNames, of_workflow, rewritten};

fn own() -> OwnNames {
    OwnNames::new(["10.77.0.1", "fd77::1", "Tinbox.local"].map(str::to_owned))
}

#[test]
fn the_boxs_own_files_and_what_is_no_url_are_left_alone() {
    for (url, foreign) in [
        ("http://10.1.2.3/a.raw", true),
        ("https://images.example:8443/a.raw?x=1", true),
        ("http://[2001:db8::1]/a", true),
        ("http://10.77.0.1:7080/images/a.raw", false),
        ("http://[fd77:0::1]/a", false),
        ("http://TINBOX.local/a", false),
        ("http://127.0.0.1/a", false),
        ("http://localhost:8080/a", false),
        ("http://169.254.169.254/a", false),
        ("http://me:pw@a.example/a", false),
        ("ftp://a.example/a", false),
        ("oci://ghcr.io/a/b:latest", true),
        ("ghcr.io/a/b:latest", false),
        ("/a", false),
        ("", false),
    ] {
        assert_eq!(own().is_foreign(url), foreign, "{url}");
    }
}

#[test]
fn files_are_found_with_their_checksums_and_told_anew() {
    let digest = Digest::of(b"x");
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    let image = [
        ("IMG_URL", "http://a/b.zst"),
        ("IMG_SHA256", &*digest.hex()),
        ("IMG_CHECKSUM_URL", "https://a/SUMS"),
    ];
    let archive = [("ARCHIVE_URL", "http://a/c.tgz"), ("TARFILE_CHECKSUM", "md5:00")];
    let action =
        |it: &[(&str, &str)]| ActionStatus { environment: pairs(it), ..ActionStatus::default() };
    let task = TaskStatus {
        actions: vec![action(&image), action(&archive), action(&image)],
        ..TaskStatus::default()
    };
    let status = WorkflowStatus { tasks: vec![task], ..WorkflowStatus::default() };
    let found = of_workflow(&own(), &status);
    let mentioned: Vec<_> = found.iter().map(|it| (it.url.as_str(), it.checksum)).collect();
    let sha256 = Some(Checksum::Sha256(digest));
    let sums = ("https://a/SUMS", None);
    assert_eq!(mentioned, [sums, ("http://a/b.zst", sha256), ("http://a/c.tgz", None)]);

    let before = ["ARCHIVE_URL=http://a/c.tgz", "DEST_DISK=/dev/sda", "IMG_URL=/a/b"];
    let place =
        |wanted: &artifact_cache::RemoteFile| Some(format!("http://box{}", &wanted.url[8..]));
    let after = rewritten(&own(), "image2disk", &before.map(str::to_owned), place);
    let want = ["ARCHIVE_URL=http://box/c.tgz", "DEST_DISK=/dev/sda", "IMG_URL=/a/b"];
    assert_eq!(after, want);
}

#[test]
fn a_reference_is_a_file_to_oci2disk_alone() {
    let mentioned = |image: &str, environment: &[&str]| {
        let environment: Vec<String> = environment.iter().map(ToString::to_string).collect();
        rewritten(&own(), image, &environment, |wanted| Some(format!("at {}", wanted.url)))
            .remove(0)
    };
    let (oci, reference) = ("quay.io/tinkerbell/actions/oci2disk:v1", "IMG_URL=ghcr.io/a/b:c");
    assert_eq!(mentioned(oci, &[reference]), "IMG_URL=at oci://ghcr.io/a/b:c");
    assert_eq!(mentioned(oci, &["IMG_URL=oci://ghcr.io/a/b:c"]), "IMG_URL=at oci://ghcr.io/a/b:c");
    assert_eq!(mentioned("image2disk", &[reference]), reference);
    assert_eq!(mentioned(oci, &[reference, "REGISTRY_USERNAME=me"]), reference);
    for own in ["IMG_URL=10.77.0.1:5000/a:b", "IMG_URL=localhost:5000/a:b", "IMG_URL=a:b"] {
        assert_eq!(mentioned(oci, &[own]), own);
    }
}
