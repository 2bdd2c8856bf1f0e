//! Tests a container's access to the machine's disks. Needs root and a static busybox.

use std::collections::HashMap;
use std::sync::Arc;

use agent::actions::{Action, Limits, Outcome};
use agent_rpc::Assignment;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use imaging::Meter;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

use crate::loops::{Loop, run};

/// Starts a registry with one image: busybox, with its shell as entrypoint. Returns the address.
async fn registry() -> String {
    let busybox = std::fs::read(run("which", &["busybox"])).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(busybox.len() as u64);
    header.set_mode(0o755);
    header.set_mtime(1);
    header.set_uid(0);
    header.set_gid(0);
    tar.append_data(&mut header, "busybox", busybox.as_slice()).unwrap();
    let layer = tar.into_inner().unwrap();
    let config = serde_json::json!({
        "os": "linux", "architecture": "amd64",
        "config": { "Entrypoint": ["/busybox", "sh", "-c"] },
    });
    let config = config.to_string().into_bytes();
    let digest = |bytes: &[u8]| format!("sha256:{}", stdx::hex(&Sha256::digest(bytes)));
    let part = |bytes: &[u8]| serde_json::json!({ "digest": digest(bytes), "size": bytes.len() });
    let manifest = serde_json::json!({ "config": part(&config), "layers": [part(&layer)] });
    let blobs = [config, layer].map(|bytes| (digest(&bytes), bytes));
    let (manifest, blobs) = (manifest.to_string(), Arc::new(HashMap::from(blobs)));
    let answer = move |request: Request| {
        let path = request.uri().path().to_owned();
        let name = path.rsplit('/').next().unwrap_or_default();
        let found = match path.contains("/manifests/") {
            true => Some(manifest.clone().into_bytes()),
            false => blobs.get(name).cloned(),
        };
        async move { found.ok_or(StatusCode::NOT_FOUND) }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let router = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    at
}

/// Runs shell commands in a container. `Err` is the error text of a failed run.
async fn shell(registry: &str, words: &str, volumes: &[&str]) -> Result<(), String> {
    let assignment = Assignment {
        image: "box.test/tools/busybox:v1".to_owned(),
        command: vec![words.to_owned()],
        volumes: volumes.iter().map(|it| (*it).to_owned()).collect(),
        ..Assignment::default()
    };
    let limits = Limits { registry: Some(registry.into()), ..Limits::MACHINE };
    let action = Action::parse(&assignment, limits).unwrap();
    match action.run(&Arc::new(Meter::default())).await {
        Ok(Outcome::Done(_)) => Ok(()),
        Ok(Outcome::Leave(how)) => panic!("{how:?}"),
        Err(error) => Err(stdx::chain(&error)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_reaches_no_preserved_disk() {
    let disk = Loop::with_partitions(8 << 20);
    let device = disk.path.to_str().unwrap();
    run("sgdisk", &["-n", "1:2048:0", device]);
    run("partx", &["-u", device]);
    let part = format!("{device}p1");
    let (before, _) = disk.read();
    let registry = registry().await;
    let write = |to: &str| format!("/busybox dd if=/dev/zero of={to} bs=4k count=1 conv=fsync");

    // An unused disk that is not preserved is writable.
    shell(&registry, &write(&part), &[]).await.unwrap();

    imaging::preserve::set(imaging::preserve::parse(device).unwrap());
    let mut refused = Vec::new();
    for path in [device, &part, &format!("/host{device}"), "/given"] {
        let volumes = ["/dev:/host/dev".to_owned(), format!("{device}:/given")];
        let volumes = volumes.each_ref().map(String::as_str);
        refused.push((path.to_owned(), shell(&registry, &write(path), &volumes).await));
    }
    // A device node that the container creates leads to a device that the kernel does not write to.
    let numbers = run("stat", &["-c", "%Hr %Lr", &part]);
    let made = format!("/busybox mknod /own b {numbers}");
    let written = shell(&registry, &format!("{made} && {}", write("/own")), &[]).await;
    refused.push(("/own".to_owned(), written));
    let reading = format!("{made} && /busybox dd if=/own of=/dev/null && ! test -s {device}");
    let read = shell(&registry, &reading, &[]).await;
    imaging::preserve::set(Vec::new());
    run("blockdev", &["--setrw", device]);
    run("blockdev", &["--setrw", &part]);

    for (path, refused) in refused {
        let error = refused.expect_err(&path);
        let reasons = ["Read-only file system", "Operation not permitted"];
        assert!(reasons.iter().any(|reason| error.contains(reason)), "{path}: {error}");
    }
    read.unwrap();
    assert!(disk.read().0 == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_is_read_only_is_so_at_every_depth() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    std::fs::create_dir(&below).unwrap();
    let (folder, below) = (folder.path().to_str().unwrap(), below.to_str().unwrap());
    run("mount", &["-t", "tmpfs", "tmpfs", below]);
    let registry = registry().await;
    let (writable, volume) = (format!("{folder}:/host"), format!("{folder}:/host:ro"));
    let written = shell(&registry, "/busybox touch /host/below/x", &[&writable]).await;
    let mut refused = Vec::new();
    for path in ["/host/y", "/host/below/y"] {
        let words = format!("/busybox touch {path}");
        refused.push((path, shell(&registry, &words, &[&volume]).await));
    }
    run("umount", &[below]);
    written.unwrap();
    for (path, refused) in refused {
        let error = refused.expect_err(path);
        assert!(error.contains("Read-only file system"), "{path}: {error}");
    }
}
