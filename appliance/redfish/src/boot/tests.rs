use serde_json::{Value, json};

use super::{BootReading, BootRequest, BootTarget, changes, difference, split, without_refused};
use crate::{Document, Quirks, Reason};

fn system(boot: Value) -> Document {
    let path = "/redfish/v1/Systems/1".to_owned();
    Document { path, etag: None, json: json!({ "Boot": boot }) }
}

fn request(target: BootTarget) -> BootRequest {
    BootRequest { target, persistent: false, efi: true }
}

fn changed(boot: Value, request: &BootRequest, quirks: &Quirks) -> Value {
    changes(&system(boot), None, request, quirks).unwrap().into()
}

fn refused(property: &str) -> Reason {
    Reason::of(&json!({ "error": { "@Message.ExtendedInfo": [{ "MessageArgs": [property] }] } }))
}

#[test]
fn the_mode_is_sent_only_where_it_is_needed() {
    let pxe = request(BootTarget::Pxe);
    let once = json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" });
    let mut with_mode = once.clone();
    with_mode["BootSourceOverrideMode"] = json!("UEFI");
    let (none, always) = (Quirks::default(), Quirks { sends_mode: true, ..Quirks::default() });
    let whole = Quirks { whole_boot: true, ..Quirks::default() };
    for (boot, quirks, expected) in [
        (json!({}), &none, &once),
        (json!({}), &always, &once),
        (json!({}), &whole, &with_mode),
        (json!({ "BootSourceOverrideMode": "UEFI" }), &none, &once),
        (json!({ "BootSourceOverrideMode": "UEFI" }), &always, &with_mode),
        (json!({ "BootSourceOverrideMode": "Legacy" }), &none, &with_mode),
    ] {
        assert_eq!(changed(boot.clone(), &pxe, quirks), *expected, "{boot}");
    }
}

#[test]
fn a_device_that_the_service_does_not_offer_is_an_error() {
    let boot = json!({ "BootSourceOverrideTarget@Redfish.AllowableValues": ["Pxe", "UsbCd"] });
    let cd = changed(boot.clone(), &request(BootTarget::Cdrom), &Quirks::default());
    assert_eq!(cd["BootSourceOverrideTarget"], "UsbCd");
    let error = changes(&system(boot), None, &request(BootTarget::Setup), &Quirks::default());
    let expected = "boot from BiosSetup is not available: the BMC offers Pxe, UsbCd";
    assert_eq!(error.unwrap_err().to_string(), expected);
    let boot = json!({ "BootSourceOverrideEnabled@Redfish.AllowableValues": ["Disabled", "Once"] });
    let values = json!({ "BootSourceOverrideTarget@Redfish.AllowableValues": ["Cd"] });
    let settings = system(values);
    let only_there =
        changes(&system(json!({})), Some(&settings), &request(BootTarget::Pxe), &Quirks::default());
    assert!(only_there.unwrap_err().to_string().contains("the BMC offers Cd"));
    let always = BootRequest { persistent: true, ..request(BootTarget::Pxe) };
    let error = changes(&system(boot), None, &always, &Quirks::default()).unwrap_err();
    assert!(error.to_string().contains("next boot only"), "{error}");
}

#[test]
fn a_url_is_part_of_an_http_boot() {
    let http = request(BootTarget::Http("http://10.0.0.1/a.efi".into()));
    let error = changes(&system(json!({})), None, &http, &Quirks::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "HTTP boot from a URL is not available: the BMC has no HttpBootUri"
    );
    let boot = changed(json!({ "HttpBootUri": null }), &http, &Quirks::default());
    assert_eq!(boot["BootSourceOverrideTarget"], "UefiHttp");
    assert_eq!(boot["HttpBootUri"], "http://10.0.0.1/a.efi");
    let reading = BootReading::of(&system(boot)).unwrap();
    assert_eq!((reading.target, reading.persistent), (http.target, false));
    let none =
        json!({ "BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "Pxe" });
    assert_eq!(BootReading::of(&system(none)), None);
}

#[test]
fn a_refused_property_is_left_out_once() {
    let now = system(json!({ "BootSourceOverrideEnabled": "Once" }));
    let boot = json!({
        "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once",
        "BootSourceOverrideMode": "UEFI",
    });
    let boot = boot.as_object().unwrap().clone();
    let first = without_refused(&boot, &now, &refused("BootSourceOverrideEnabled")).unwrap();
    assert!(!first.contains_key("BootSourceOverrideEnabled"));
    let second = without_refused(&first, &now, &refused("")).unwrap();
    assert_eq!(Value::from(second.clone()), json!({ "BootSourceOverrideTarget": "Pxe" }));
    assert_eq!(without_refused(&second, &now, &refused("BootSourceOverrideEnabled")), None);
    // A changed property must not be left out.
    let off = system(json!({ "BootSourceOverrideEnabled": "Disabled" }));
    let kept = without_refused(&boot, &off, &refused("BootSourceOverrideEnabled")).unwrap();
    assert!(kept.contains_key("BootSourceOverrideEnabled"));
}

#[test]
fn the_settings_resource_gets_what_it_has() {
    let boot = json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" });
    let settings = system(json!({ "BootSourceOverrideTarget": "None" }));
    let (there, here) = split(boot.as_object().unwrap().clone(), Some(&settings));
    assert_eq!(Value::from(there), json!({ "BootSourceOverrideTarget": "Pxe" }));
    assert_eq!(Value::from(here), json!({ "BootSourceOverrideEnabled": "Once" }));
    let (_, all) = split(boot.as_object().unwrap().clone(), None);
    assert_eq!(Value::from(all.clone()), boot);
    let (asked, found) = difference(&all, &settings).unwrap();
    assert_eq!((asked.as_str(), found.as_str()), ("BootSourceOverrideTarget \"Pxe\"", "\"None\""));
    assert_eq!(difference(&all, &system(boot)), None);
}
