//! Our client and recorded services of seven BMCs: the requests that it sends to each, and what it
//! reads. Each expectation was written by hand from the recorded resources.

use std::net::Ipv4Addr;

use redfish::{BootTarget, Error, Inventory};
use serde_json::{Value, json};

use crate::replay::{IMAGE, Replay};

const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const SYSTEM: &str = "/redfish/v1/Systems/1";
const UUID: &str = "00000000-0000-4000-8000-00000000ab01";
const GIB: u64 = 1 << 30;
const NO_URL: &str = "HTTP boot from a URL is not available: the BMC has no HttpBootUri";

fn url() -> BootTarget {
    BootTarget::Http("http://192.0.2.9/boot.efi".into())
}

fn once(target: &str) -> Value {
    json!({ "BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once" })
}

fn once_with_mode(target: &str) -> Value {
    let mut boot = once(target);
    boot["BootSourceOverrideMode"] = "UEFI".into();
    boot
}

fn macs(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("00:00:5e:00:53:{number:02x}")).collect()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn reading(name: &str, value: f64, unit: &str) -> (String, Option<f64>, String) {
    (name.to_owned(), Some(value), unit.to_owned())
}

fn entry(id: &str, message: &str) -> (String, String) {
    (id.to_owned(), message.to_owned())
}

#[tokio::test]
async fn hpe_ilo_5() {
    let replay = Replay::start("hpe-ilo5");
    replay.check_power(RESET, "ForceRestart", "GracefulShutdown").await;
    replay.check_boot(BootTarget::Pxe, SYSTEM, once("Pxe")).await;
    replay.check_boot(BootTarget::Setup, SYSTEM, once("BiosSetup")).await;
    assert_eq!(replay.boot_error(url(), false).await, NO_URL);
    let insert = json!({ "Image": IMAGE, "Inserted": true, "WriteProtected": true });
    // The first slot is a floppy disk, which has an image.
    replay.check_media("/redfish/v1/Managers/1/VirtualMedia/2", insert).await;
    let location = |is_on: bool| json!({ "LocationIndicatorActive": is_on });
    replay.check_led(SYSTEM, location(true), location(false)).await;
    let sensors = replay.sensors().await;
    assert_eq!(sensors.len(), 9, "{sensors:?}");
    assert_eq!(sensors[0], reading("01-Inlet Ambient", 21.0, "C"));
    assert_eq!(sensors[4], reading("Fan 1", 26.0, "%"));
    assert_eq!(sensors[8], reading("Power", 150.0, "W"));
    assert_eq!(
        replay.log(1).await,
        [entry("4", "Slot=12 Storage - Volume 1 status changed to ok")]
    );
    let expected = Inventory {
        uuid: "00000000-0000-4000-8000-00000000ab02".into(),
        manufacturer: "HPE".into(),
        model: "ProLiant DL360 Gen10 Plus - SIMULATED".into(),
        serial: "SCRUBBED2".into(),
        firmware: "U46 v2.34 (03/11/2025)".into(),
        bmc_firmware: "iLO 5 v3.11".into(),
        processors: texts(&["Intel(R) Xeon(R) Silver 4310 CPU @ 2.10GHz"; 2]),
        memory_bytes: 192 * GIB,
        disk_bytes: vec![480_103_981_056; 2],
        macs: macs(4),
    };
    assert_eq!(replay.client.inventory().await.unwrap(), expected);
}

#[tokio::test]
async fn hpe_ilo_7() {
    let replay = Replay::start("hpe-ilo7");
    replay.check_power(RESET, "ForceRestart", "GracefulShutdown").await;
    replay.check_boot(BootTarget::Cdrom, SYSTEM, once("Cd")).await;
    assert_eq!(replay.boot_error(url(), false).await, NO_URL);
    let insert = json!({ "Image": IMAGE, "Inserted": true, "WriteProtected": true });
    replay.check_media("/redfish/v1/Managers/1/VirtualMedia/2", insert).await;
    // The system has no LED.
    let location = |is_on: bool| json!({ "LocationIndicatorActive": is_on });
    replay.check_led("/redfish/v1/Chassis/1", location(true), location(false)).await;
    assert!(replay.client.learned().unwrap().identify);
    let sensors = replay.sensors().await;
    assert_eq!(sensors.len(), 9, "{sensors:?}");
    assert_eq!(sensors[1], reading("02-CPU 1 PkgTmp", 50.0, "C"));
    assert_eq!(sensors[8], reading("Power", 217.0, "W"));
    let log = replay.log(4).await;
    assert_eq!((log.len(), &log[0]), (4, &entry("1", "IML Cleared (iLO user: Administrator)")));
    let found = replay.client.inventory().await.unwrap();
    assert_eq!(found.bmc_firmware, "iLO 7 1.14.00 May 28 2025");
    assert_eq!((found.memory_bytes, found.macs), (256 * GIB, macs(2)));
    // The drives are in standby.
    assert_eq!(found.disk_bytes, [1_600_321_314_816; 2]);
}

#[tokio::test]
async fn dell_idrac_9() {
    let system = "/redfish/v1/Systems/System.Embedded.1";
    let replay = Replay::start("dell-idrac9");
    let reset = format!("{system}/Actions/ComputerSystem.Reset");
    replay.check_power(&reset, "PowerCycle", "GracefulShutdown").await;
    replay.check_boot(BootTarget::Pxe, system, once("Pxe")).await;
    replay.check_boot(BootTarget::Disk, system, once("Hdd")).await;
    assert_eq!(replay.boot_error(url(), false).await, NO_URL);
    let insert = json!({ "Image": IMAGE, "Inserted": true, "WriteProtected": true });
    replay.check_media(&format!("{system}/VirtualMedia/1"), insert).await;
    let led = |state: &str| json!({ "IndicatorLED": state });
    replay.check_led(system, led("Blinking"), led("Lit")).await;
    let sensors = replay.sensors().await;
    assert_eq!(sensors.len(), 13, "{sensors:?}");
    assert_eq!(sensors[4], reading("System Board Fan1A", 18600.0, "RPM"));
    assert_eq!(sensors[8], reading("PS1 Voltage 1", 240.0, "V"));
    assert_eq!(sensors[10].1, None, "a comparator without a voltage");
    assert_eq!(sensors[12], reading("System Power Control", 614.0, "W"));
    let log = replay.log(2).await;
    let message = "An OEM diagnostic event occurred.";
    assert_eq!(log, [entry("1023", message), entry("1024", message)], "newest is first in the log");
    let found = replay.client.inventory().await.unwrap();
    assert_eq!((found.uuid.as_str(), found.model.as_str()), (UUID, "PowerEdge R750"));
    assert_eq!(found.bmc_firmware, "15G Monolithic 6.00.30.00");
    // The third processor is a GPU.
    assert_eq!(found.processors, ["Intel(R) Xeon(R) Gold 6354 CPU @ 3.00GHz"; 2]);
    assert_eq!(found.disk_bytes, [1_920_383_410_176; 3]);
    assert_eq!((found.memory_bytes, found.macs), (512 * GIB, macs(4)));
}

#[tokio::test]
async fn lenovo_xcc() {
    let replay = Replay::start("lenovo-xcc");
    replay.check_power(RESET, "ForceRestart", "GracefulShutdown").await;
    // The settings resource has the boot order only.
    replay.check_boot(BootTarget::Pxe, SYSTEM, once("Pxe")).await;
    let error = replay.boot_error(BootTarget::Pxe, true).await;
    assert!(error.contains("next boot only"), "{error}");
    let error = replay.boot_error(url(), false).await;
    assert!(error.starts_with("boot from UefiHttp is not available"), "{error}");
    // The slots have no actions, and the first ones take no URL.
    let slot = "PATCH /redfish/v1/Managers/1/VirtualMedia/EXT1".to_owned();
    let inserted = replay.changes_of(replay.client.insert_media(IMAGE)).await;
    assert_eq!(inserted, [(slot.clone(), json!({ "Image": IMAGE, "Inserted": true }))]);
    let ejected = replay.changes_of(replay.client.eject_media()).await;
    assert_eq!(ejected, [(slot, json!({ "Image": null, "Inserted": false }))]);
    let led = |state: &str| json!({ "IndicatorLED": state });
    replay.check_led(SYSTEM, led("Blinking"), led("Off")).await;
    let sensors = replay.sensors().await;
    assert_eq!(sensors.len(), 15, "{sensors:?}");
    assert_eq!(sensors[2], reading("CPU 1 DTS", -51.0, "C"));
    assert_eq!(sensors[13], reading("CPU Sub-system Power", 111.0, "W"));
    let log = replay.log(4).await;
    assert_eq!(log[0], entry("1", "The connector Front USB Detect has been connected."));
    let found = replay.client.inventory().await.unwrap();
    assert_eq!(found.bmc_firmware, "Lenovo XClarity Controller TGBT20E 1.40 2021-05-17");
    assert_eq!(found.disk_bytes, [1_600_000_000_000; 2]);
    // The only interface in the list leads to the BMC.
    assert_eq!((found.processors.len(), found.macs.len()), (2, 0));
}

#[tokio::test]
async fn supermicro() {
    let replay = Replay::start("supermicro");
    replay.check_power(RESET, "PowerCycle", "GracefulShutdown").await;
    // The mode falls back to that of the firmware if it is not sent.
    replay.check_boot(BootTarget::Pxe, SYSTEM, once_with_mode("Pxe")).await;
    // Mounted media are a USB drive to the firmware.
    replay.check_boot(BootTarget::Cdrom, SYSTEM, once_with_mode("UsbCd")).await;
    assert_eq!(replay.boot_error(url(), false).await, NO_URL);
    // The empty slot lists no action to eject.
    let slot = "/redfish/v1/Managers/1/VirtualMedia/VirtualMedia1";
    replay.check_media(slot, json!({ "Image": IMAGE })).await;
    let location = |is_on: bool| json!({ "LocationIndicatorActive": is_on });
    replay.check_led(SYSTEM, location(true), location(false)).await;
    let sensors = replay.sensors().await;
    assert_eq!(sensors.len(), 13, "{sensors:?}");
    assert_eq!(sensors[8], reading("12V", 12.176, "V"));
    let log = replay.log(4).await;
    assert_eq!(log[2], entry("3", "[LAN-0005] Dedicated LAN Link Up"));
    let found = replay.client.inventory().await.unwrap();
    assert_eq!(found.processors, ["Intel(R) Xeon(R) Platinum 8462Y+"; 2]);
    assert_eq!(found.disk_bytes, [7_681_501_126_656; 3]);
    assert_eq!(found.macs, macs(3));
}

#[tokio::test]
async fn openbmc_with_two_physical_systems() {
    let system = "/redfish/v1/Systems/System_0";
    let replay = Replay::start("openbmc-gh200");
    // The other system, the board of the GPU, has no reset.
    let reset = format!("{system}/Actions/ComputerSystem.Reset");
    replay.check_power(&reset, "PowerCycle", "GracefulShutdown").await;
    let settings = format!("{system}/Settings");
    replay.check_boot(BootTarget::Pxe, &settings, once("Pxe")).await;
    let error = replay.boot_error(url(), false).await;
    assert!(error.starts_with("boot from UefiHttp is not available"), "{error}");
    let insert = json!({ "Image": IMAGE, "Inserted": true, "WriteProtected": true });
    replay.check_media("/redfish/v1/Managers/BMC_0/VirtualMedia/USB2", insert).await;
    let learned = replay.client.learned().unwrap();
    assert!(learned.media && learned.boot_always && !learned.http_boot, "{learned:?}");
    let location = |is_on: bool| json!({ "LocationIndicatorActive": is_on });
    replay.check_led(system, location(true), location(false)).await;
    // The chassis has neither Thermal nor Power.
    let sensors = replay.sensors().await;
    assert_eq!((sensors.len(), &sensors[0]), (6, &reading("FAN 1 F", 26568.0, "RPM")));
    let log = replay.log(1).await;
    assert!(log[0].1.starts_with("TEMP_SSD_01 sensor crossed a warning low threshold"), "{log:?}");
    let found = replay.client.inventory().await.unwrap();
    assert_eq!(found.bmc_firmware, "OpenBmc GH200-24.05-2");
    assert_eq!(found.processors, ["Grace A02"; 2]);
    assert_eq!((found.memory_bytes, found.disk_bytes.len()), (960 * GIB, 0));
}

#[tokio::test]
async fn ami_with_a_settings_resource() {
    let system = "/redfish/v1/Systems/DGX";
    let replay = Replay::start("ami-dgx");
    let reset = format!("{system}/Actions/ComputerSystem.Reset");
    replay.check_power(&reset, "ForceRestart", "GracefulShutdown").await;
    // Only the settings resource states the allowable values.
    let settings = format!("{system}/SD");
    replay.check_boot(BootTarget::Pxe, &settings, once_with_mode("Pxe")).await;
    let mut http = once_with_mode("UefiHttp");
    http["HttpBootUri"] = "http://192.0.2.9/boot.efi".into();
    replay.check_boot(url(), &settings, http).await;
    let learned = replay.client.learned().unwrap();
    assert!(learned.http_boot && !learned.media, "its collection of slots is empty");
    let error = replay.client.insert_media(IMAGE).await.unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    let led = |state: &str| json!({ "IndicatorLED": state });
    replay.check_led(system, led("Blinking"), led("Off")).await;
    let sensors = replay.sensors().await;
    assert_eq!(sensors.len(), 13, "{sensors:?}");
    assert_eq!(sensors[12].1, None, "the consumption is not known");
    let log = replay.log(1).await;
    assert_eq!(log[0].0, "4");
    let found = replay.client.inventory().await.unwrap();
    assert_eq!((found.model.as_str(), found.memory_bytes), ("DGXH100", 2048 * GIB));
    // Without drives in Storage; the small devices are virtual USB devices.
    assert_eq!(found.disk_bytes, [1_920_383_410_176, 3_840_755_982_336]);
    assert_eq!(found.macs, macs(4));
}

/// Collects the texts of a recording.
fn collect(json: &Value, found: &mut Vec<String>) {
    match json {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(items) => items.values().for_each(|item| collect(item, found)),
        _ => {}
    }
}

#[test]
fn recordings_have_no_address_or_identifier_of_a_real_machine() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings");
    let mut recordings = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        recordings += 1;
        let mut texts = Vec::new();
        collect(&serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap(), &mut texts);
        let is_separator = |char: char| !char.is_ascii_alphanumeric() && !".:-".contains(char);
        for word in texts.iter().flat_map(|text| text.split(is_separator)) {
            let mac = word.parse::<stdx::MacAddr>().map(|mac| mac.to_string());
            let is_real_mac = mac.is_ok_and(|mac| !mac.starts_with("00:00:5e:00:53:"));
            let address = word.parse::<Ipv4Addr>();
            let is_real_address = address
                .is_ok_and(|it| it.octets()[..3] != [192, 0, 2] && it != Ipv4Addr::UNSPECIFIED);
            let is_uuid = word.len() == 36 && word.matches('-').count() == 4;
            let is_real_uuid = is_uuid && !word.starts_with("00000000-0000-4000-8000-");
            let is_real = is_real_mac || is_real_address || is_real_uuid;
            assert!(!is_real, "{}: {word}", path.display());
        }
    }
    assert_eq!(recordings, 7);
}
