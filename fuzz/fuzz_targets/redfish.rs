//! A Redfish service that sends any resource, and any answer to each request.

#![no_main]

use libfuzzer_sys::fuzz_target;
use redfish::quirks::MediaForm;
use redfish::{
    BootReading, BootRequest, BootTarget, Document, Inventory, PowerRequest, PowerState, Quirks,
    Reason, boot, document, hardware, media, power,
};
use serde_json::Value;

const PATH: &str = "/redfish/v1/Systems/1";
/// Maximum entries of a log.
const ENTRIES_MAX: usize = 8;

fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.starts_with("//") && !text.contains([' ', '\r', '\n'])
}

fn power_requests(system: &Document) {
    let state = PowerState::of(system);
    assert!(is_path(&power::target(system)), "a request would leave the server");
    assert!(power::action_info(system).is_none_or(|path| is_path(&path)));
    for types in [power::types(system), power::types_of_info(system)] {
        for request in [PowerRequest::On, PowerRequest::Off, PowerRequest::Soft] {
            let _ = power::plan(request, state, &types).map_err(|error| error.to_string());
        }
    }
}

fn boot_requests(system: &Document, settings: Option<&Document>, quirks: &Quirks, reason: &Reason) {
    let url = "http://10.0.0.1/boot.efi".to_owned();
    for target in [BootTarget::Pxe, BootTarget::Cdrom, BootTarget::Http(url)] {
        let request = BootRequest { target, persistent: true, efi: true };
        let Ok(changes) = boot::changes(system, settings, &request, quirks) else { continue };
        if let Some(fewer) = boot::without_refused(&changes, system, reason) {
            assert!(fewer.len() < changes.len(), "the same request would be repeated");
        }
        let _ = boot::difference(&changes, system);
        let (there, here) = boot::split(changes.clone(), Some(system));
        assert_eq!(there.len() + here.len(), changes.len(), "a property was lost");
    }
    let _ = (boot::has_http(system, settings), boot::has_continuous(system, settings));
    let _ = BootReading::of(system);
    assert!(boot::settings(system).is_none_or(|path| is_path(&path)));
}

fn media_requests(slot: &Document) {
    let _ = (media::is_cd(slot), media::is_inserted(slot));
    let _ = media::choose(vec![slot.clone()], &["EXT".to_owned()]);
    if let media::MediaRequest::Post(path, _) = media::eject(slot) {
        assert!(is_path(&path), "a request would leave the server");
    }
    for form in [MediaForm::Full, MediaForm::Transfer, MediaForm::ImageOnly] {
        if let Ok(media::MediaRequest::Post(path, _)) = media::insert(slot, "http://a/b", form) {
            assert!(is_path(&path), "a request would leave the server");
        }
    }
}

fn hardware_of(resource: &Document) {
    let all = std::slice::from_ref(resource);
    let _ = Inventory::read(resource, Some(resource), all, all);
    let readings = [hardware::thermal(resource), hardware::electrical(resource)].concat();
    for reading in readings.into_iter().chain(hardware::sensor(&resource.json)) {
        assert!(reading.value.is_none_or(f64::is_finite), "{reading:?}");
    }
    let entries = resource.items("/Members").into_iter().filter_map(hardware::log_record);
    assert!(hardware::newest(entries.collect(), ENTRIES_MAX).len() <= ENTRIES_MAX);
    let mut logs = resource.links("/Members");
    let known = logs.len();
    hardware::sort_logs(&mut logs);
    assert_eq!(logs.len(), known, "a log was lost");
    let devices = resource.items("/Devices").into_iter().chain([&resource.json]);
    assert!(devices.filter_map(hardware::disk_bytes).all(|bytes| bytes > 0));
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for path in [document::path(&text), document::location(&text)].into_iter().flatten() {
        assert!(is_path(&path), "{path:?} is not a path of the server");
    }
    let reason = Reason::read(bytes);
    assert!(!reason.to_string().contains('\n'), "a reason is one line");
    let Ok(resource) = Document::parse(PATH, None, bytes) else { return };
    let etag = resource.etag.as_deref().unwrap_or_default();
    assert!(etag.bytes().all(|byte| matches!(byte, b' '..=b'~')), "a header was split");
    let system = resource.json.get("System").cloned().unwrap_or(Value::Null);
    let system = Document { path: PATH.to_owned(), etag: None, json: system };
    let quirks = Quirks::of(&resource, Some(&system));
    let _ = quirks.is_busy(&reason);
    power_requests(&resource);
    boot_requests(&resource, None, &quirks, &reason);
    boot_requests(&system, Some(&resource), &quirks, &reason);
    media_requests(&resource);
    hardware_of(&resource);
});
