//! Our client and the emulator of Redfish of OpenStack's sushy-tools, with its machine `node-2`.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use redfish::{
    BootRequest, BootTarget, Endpoint, Error, Line, Login, PowerRequest, PowerState, Redfish,
    Security,
};
use stdx::testing::Wait;

/// Emulator with two machines that are off, ended when dropped.
struct Emulator {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Emulator {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/sushy/build.sh");
        let built = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        assert!(built.status.success(), "the emulator cannot be installed");
        let program = String::from_utf8(built.stdout).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let system = |name: &str, number: u8| {
            format!(
                "{{'uuid': '00000000-0000-0000-0000-00000000000{number}', 'name': '{name}', \
                 'power_state': 'Off', 'nics': [{{'mac': '52:54:00:00:00:0{number}', \
                 'ip': '192.0.2.1{number}'}}]}}"
            )
        };
        let settings = format!(
            "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n\
             SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_STATE_DIR = '{}'\n\
             SUSHY_EMULATOR_FAKE_SYSTEMS = [{}, {}]\n",
            folder.path().display(),
            system("node-1", 1),
            system("node-2", 2),
        );
        let file = folder.path().join("emulator.conf");
        std::fs::write(&file, settings).unwrap();
        let process = Command::new(program.trim())
            .args(["-m", "sushy_tools.emulator.main", "--config"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, port, _folder: folder }
    }

    fn endpoint(&self, system: &str) -> Endpoint {
        Endpoint {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            security: Security::Plain,
            login: Login { username: "u".into(), password: "p".into(), is_basic: false },
            system: system.to_owned(),
        }
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
    let emulator = Emulator::start();
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
    let emulator = Emulator::start();
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
