//! Our client and the emulator of Redfish of OpenStack's sushy-tools, with its machine `node-2`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use redfish::{
    BootRequest, BootTarget, Endpoint, Error, Line, Login, PowerRequest, PowerState, Redfish,
    Security,
};
use serde_json::Value;
use stdx::testing::{PATIENCE, Wait, own_address};

use crate::server::{Response, Service};

const NODE_2: &str = "/redfish/v1/Systems/00000000-0000-0000-0000-000000000002";

/// Emulator with two machines that are off, ended when dropped.
struct Emulator {
    process: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Arguments of the interpreter that start the emulator as it is.
const STOCK: &[&str] = &["-m", "sushy_tools.emulator.main"];
/// Arguments for the emulator with machines that store the URL of an HTTP boot.
const HTTP_BOOT: &[&str] =
    &[concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/sushy/http_boot.py")];

impl Emulator {
    fn start(program: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/sushy/build.sh");
        let built = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        assert!(built.status.success(), "the emulator cannot be installed");
        let python = String::from_utf8(built.stdout).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let address = own_address();
        let system = |name: &str, number: u8| {
            format!(
                "{{'uuid': '00000000-0000-0000-0000-00000000000{number}', 'name': '{name}', \
                 'power_state': 'Off', 'nics': [{{'mac': '52:54:00:00:00:0{number}', \
                 'ip': '192.0.2.1{number}'}}]}}"
            )
        };
        let settings = format!(
            "SUSHY_EMULATOR_LISTEN_IP = '{}'\nSUSHY_EMULATOR_LISTEN_PORT = {}\n\
             SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_STATE_DIR = '{}'\n\
             SUSHY_EMULATOR_FAKE_SYSTEMS = [{}, {}]\n",
            address.ip(),
            address.port(),
            folder.path().display(),
            system("node-1", 1),
            system("node-2", 2),
        );
        let file = folder.path().join("emulator.conf");
        std::fs::write(&file, settings).unwrap();
        let process = Command::new(python.trim())
            .args(program)
            .arg("--config")
            .arg(&file)
            // The emulator downloads images there.
            .env("TMPDIR", folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, address, _folder: folder }
    }

    fn endpoint(&self, system: &str) -> Endpoint {
        Endpoint {
            host: self.address.ip().to_string(),
            port: self.address.port(),
            security: Security::Plain,
            login: Login { username: "u".into(), password: "p".into(), is_basic: false },
            system: system.to_owned(),
        }
    }

    /// Reads a resource of `node-2` with another client.
    fn read(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {NODE_2}{path} HTTP/1.0\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    /// Client of a system, as soon as the emulator responds.
    async fn client(&self, system: &str) -> Redfish {
        let client = Redfish::new(Arc::new(Line::default()), self.endpoint(system));
        let wait = Wait::new("the emulator responds");
        while let Err(error) = client.power().await {
            assert!(error.is_transient(), "{error}");
            tokio::time::sleep(wait.pause()).await;
        }
        client
    }
}

async fn until(client: &Redfish, expected: PowerState) {
    let wait = Wait::new("the power changes");
    while client.power().await.unwrap() != expected {
        tokio::time::sleep(wait.pause()).await;
    }
}

#[tokio::test]
async fn a_stock_service_obeys_each_power_request() {
    let emulator = Emulator::start(STOCK);
    let client = emulator.client("node-2").await;
    let other = emulator.client("node-1").await;
    assert_eq!(client.power().await.unwrap(), PowerState::Off);
    for (request, expected) in [
        (PowerRequest::On, PowerState::On),
        (PowerRequest::Reset, PowerState::On),
        (PowerRequest::Cycle, PowerState::On),
        // Rufio's driver reports a failure here although the service obeys.
        (PowerRequest::Soft, PowerState::Off),
        (PowerRequest::Cycle, PowerState::On),
        (PowerRequest::Off, PowerState::Off),
    ] {
        client.set_power(request).await.unwrap();
        until(&client, expected).await;
    }
    assert_eq!(other.power().await.unwrap(), PowerState::Off);
    let missing = Redfish::new(Arc::new(Line::default()), emulator.endpoint("node-3"));
    let error = missing.power().await.unwrap_err();
    assert!(matches!(error, Error::NoSystem { .. }), "{error}");
}

#[tokio::test]
async fn boot_devices_and_virtual_media_of_a_stock_service_are_set_and_read_back() {
    let emulator = Emulator::start(STOCK);
    let client = emulator.client("node-2").await;
    for target in [BootTarget::Pxe, BootTarget::Cdrom, BootTarget::Disk] {
        for persistent in [false, true] {
            let request = BootRequest { target: target.clone(), persistent, efi: true };
            client.set_boot(&request).await.unwrap();
            // The emulator reports every override as permanent.
            assert_eq!(client.boot().await.unwrap().unwrap().target, request.target);
        }
    }
    let target = BootTarget::Http("http://127.0.0.1:1/boot.efi".into());
    let request = BootRequest { target, persistent: false, efi: true };
    // The emulator downloads the boot program at once, and nothing listens there.
    let error = client.set_boot(&request).await.unwrap_err();
    assert!(error.to_string().contains("400: Failed to download"), "{error}");
    let setup = BootRequest { target: BootTarget::Setup, ..request };
    let error = client.set_boot(&setup).await.unwrap_err();
    assert!(error.to_string().contains("the BMC offers"), "{error}");
    let learned = client.learned().unwrap();
    assert!(learned.http_boot && learned.media && learned.boot_always, "{learned:?}");
    client.eject_media().await.unwrap();
    let inventory = client.inventory().await.unwrap();
    assert_eq!(inventory.macs, ["52:54:00:00:00:02"]);
}

#[tokio::test]
async fn a_stock_service_inserts_an_image_boots_from_it_and_ejects_it() {
    let images = Service::start(|_| Response::new(200, "an image"));
    let emulator = Emulator::start(STOCK);
    let client = emulator.client("node-2").await;
    let (first, second) = (images.url("/first.iso"), images.url("/second.iso"));
    for (image, path) in [(&first, "/first.iso"), (&second, "/second.iso")] {
        // The second image replaces the first.
        client.insert_media(image).await.unwrap();
        let slot = emulator.read("/VirtualMedia/Cd");
        assert_eq!((&slot["Inserted"], slot["Image"].as_str()), (&true.into(), Some(&**image)));
        assert_eq!(images.received(&format!("GET {path}")).len(), 1);
    }
    client.insert_media(&second).await.unwrap();
    assert_eq!(images.received("GET /second.iso").len(), 1, "the image is in the slot");
    let cd = BootRequest { target: BootTarget::Cdrom, persistent: false, efi: true };
    client.set_boot(&cd).await.unwrap();
    assert_eq!(emulator.read("")["Boot"]["BootSourceOverrideTarget"], "Cd");
    client.eject_media().await.unwrap();
    let slot = emulator.read("/VirtualMedia/Cd");
    assert_eq!((&slot["Inserted"], slot["Image"].as_str()), (&false.into(), Some("")));
    assert_eq!(emulator.read("/VirtualMedia/Floppy")["Inserted"], false);
}

#[tokio::test]
async fn a_machine_boots_once_from_a_url() {
    let programs = Service::start(|_| Response::new(200, "a boot program"));
    let emulator = Emulator::start(HTTP_BOOT);
    let client = emulator.client("node-2").await;
    let url = programs.url("/boot.efi");
    let target = BootTarget::Http(url.clone());
    let http = BootRequest { target, persistent: false, efi: true };
    client.set_boot(&http).await.unwrap();
    let boot = &emulator.read("")["Boot"];
    assert_eq!(
        (&boot["BootSourceOverrideTarget"], &boot["HttpBootUri"]),
        (&"UefiHttp".into(), &url.as_str().into())
    );
    assert_eq!(client.boot().await.unwrap().unwrap().target, http.target);
    assert_eq!(programs.received("GET /boot.efi").len(), 1);
}

#[tokio::test]
async fn a_service_that_stores_no_url_is_an_error() {
    let programs = Service::start(|_| Response::new(200, "a boot program"));
    let emulator = Emulator::start(STOCK);
    let client = emulator.client("node-2").await;
    let target = BootTarget::Http(programs.url("/boot.efi"));
    let http = BootRequest { target, persistent: false, efi: true };
    let error = client.set_boot(&http).await.unwrap_err();
    assert!(error.to_string().contains("400: Failed to save HttpBootUri"), "{error}");
}
