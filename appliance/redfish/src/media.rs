//! Virtual media (Redfish schema VirtualMedia): the slot, and the requests that insert and eject.

use serde_json::{Value, json};

use crate::document::path;
use crate::quirks::MediaForm;
use crate::{Document, Error, Reason};

/// Request that inserts or ejects.
#[derive(Debug, Clone, PartialEq)]
pub enum MediaRequest {
    /// Action at this path.
    Post(String, Value),
    /// Change of the slot itself, for a service without actions.
    Patch(Value),
}

/// Returns true if the slot shows a CD or DVD to the machine.
pub fn is_cd(slot: &Document) -> bool {
    let types = slot.texts("/MediaTypes");
    let is_disc = |name: &str| ["CD", "DVD"].contains(&name.to_ascii_uppercase().as_str());
    if types.is_empty() {
        let names = [slot.text("/Id"), slot.text("/Name"), Some(slot.name())];
        return names.into_iter().flatten().any(|name| {
            let name = name.to_ascii_uppercase();
            name.contains("CD") || name.contains("DVD")
        });
    }
    types.into_iter().any(is_disc)
}

/// Returns the first slot for CDs. If the vendor names the slots that take a URL, only they count.
pub fn choose(slots: Vec<Document>, names: &[String]) -> Option<Document> {
    let is_named = |slot: &Document| {
        names.is_empty() || names.iter().any(|name| slot.name().starts_with(name.as_str()))
    };
    slots.into_iter().find(|slot| is_cd(slot) && is_named(slot))
}

/// Returns true if the slot has media.
pub fn is_inserted(slot: &Document) -> bool {
    slot.flag("/Inserted").unwrap_or_else(|| image(slot).is_some())
}

/// Returns the image in the slot.
pub fn image(slot: &Document) -> Option<&str> {
    slot.text("/Image")
}

/// Returns the path of an action; `None` for a slot without actions. Some services list only the
/// action that the slot allows at this time, so another one has the standard's path.
fn action(slot: &Document, name: &str) -> Option<String> {
    let actions = slot.json.pointer("/Actions").and_then(Value::as_object)?;
    let stated = slot.text(&format!("/Actions/#VirtualMedia.{name}/target")).and_then(path);
    let has_other = actions.keys().any(|key| key.starts_with("#VirtualMedia."));
    let slot = slot.path.trim_end_matches('/');
    stated.or_else(|| has_other.then(|| format!("{slot}/Actions/VirtualMedia.{name}")))
}

/// Returns the request that inserts the image at `url`.
///
/// # Errors
/// The URL has a scheme that no service can read.
pub fn insert(slot: &Document, url: &str, form: MediaForm) -> Result<MediaRequest, Error> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_uppercase());
    let scheme = scheme.filter(|it| ["HTTP", "HTTPS", "NFS", "CIFS"].contains(&it.as_str()));
    let Some(protocol) = scheme else {
        return Err(Error::Unsupported {
            what: "virtual media".to_owned(),
            reason: "expected a URL with http://, https://, nfs:// or cifs://".to_owned(),
        });
    };
    Ok(match action(slot, "InsertMedia") {
        None => MediaRequest::Patch(json!({ "Image": url, "Inserted": true })),
        Some(target) => {
            let body = match form {
                MediaForm::ImageOnly => json!({ "Image": url }),
                MediaForm::Full => {
                    json!({ "Image": url, "Inserted": true, "WriteProtected": true })
                }
                MediaForm::Transfer => json!({
                    "Image": url,
                    "TransferMethod": "Stream",
                    "TransferProtocolType": protocol,
                }),
            };
            MediaRequest::Post(target, body)
        }
    })
}

/// Returns the request that ejects the media.
pub fn eject(slot: &Document) -> MediaRequest {
    match action(slot, "EjectMedia") {
        Some(target) => MediaRequest::Post(target, json!({})),
        None => MediaRequest::Patch(json!({ "Image": null, "Inserted": false })),
    }
}

/// Returns another form after the service refused the fields of `form`; `None` if there is none.
pub fn other_form(form: MediaForm, reason: &Reason) -> Option<MediaForm> {
    let needs_transfer = reason.names("Transfer");
    match form {
        MediaForm::Full if needs_transfer => Some(MediaForm::Transfer),
        MediaForm::Full | MediaForm::Transfer => Some(MediaForm::ImageOnly),
        MediaForm::ImageOnly => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MediaRequest, eject, insert, is_cd, is_inserted, other_form};
    use crate::quirks::MediaForm;
    use crate::{Document, Reason};

    const URL: &str = "http://10.0.0.1/a.iso";

    fn slot(json: Value) -> Document {
        Document { path: "/redfish/v1/Managers/1/VirtualMedia/Cd1".into(), etag: None, json }
    }

    #[test]
    fn a_slot_for_discs_is_recognized() {
        assert!(is_cd(&slot(json!({ "MediaTypes": ["USBStick", "DVD"] }))));
        assert!(is_cd(&slot(json!({}))));
        assert!(!is_cd(&slot(json!({ "MediaTypes": ["Floppy"] }))));
        assert!(is_inserted(&slot(json!({ "Image": "x" }))));
        assert!(!is_inserted(&slot(json!({ "Image": "x", "Inserted": false }))));
        assert!(!is_inserted(&slot(json!({ "Image": "", "Inserted": null }))));
    }

    #[test]
    fn the_request_has_the_form_of_the_service() {
        let actions = slot(json!({ "Actions": {
            "#VirtualMedia.InsertMedia": { "target": "/in" },
            "#VirtualMedia.EjectMedia": { "target": "/out" },
        } }));
        let body = |form| match insert(&actions, URL, form).unwrap() {
            MediaRequest::Post(target, body) if target == "/in" => body,
            other => panic!("{other:?}"),
        };
        assert_eq!(body(MediaForm::ImageOnly), json!({ "Image": URL }));
        assert_eq!(body(MediaForm::Full)["WriteProtected"], true);
        assert_eq!(body(MediaForm::Transfer)["TransferProtocolType"], "HTTP");
        assert_eq!(eject(&actions), MediaRequest::Post("/out".into(), json!({})));
        let full = slot(json!({ "Actions": { "#VirtualMedia.InsertMedia": { "target": "/in" } } }));
        let target = "/redfish/v1/Managers/1/VirtualMedia/Cd1/Actions/VirtualMedia.EjectMedia";
        assert_eq!(eject(&full), MediaRequest::Post(target.into(), json!({})));
        let lenovo = slot(json!({ "Actions": {} }));
        let patch = json!({ "Image": URL, "Inserted": true });
        assert_eq!(insert(&lenovo, URL, MediaForm::Full).unwrap(), MediaRequest::Patch(patch));
        let empty = json!({ "Image": null, "Inserted": false });
        assert_eq!(eject(&lenovo), MediaRequest::Patch(empty));
        assert!(insert(&actions, "a.iso", MediaForm::Full).is_err());
    }

    #[test]
    fn each_form_is_tried_once() {
        let about = |text: &str| Reason::read(text.as_bytes());
        let missing = about("TransferMethod is required");
        assert_eq!(other_form(MediaForm::Full, &missing), Some(MediaForm::Transfer));
        assert_eq!(other_form(MediaForm::Full, &about("Inserted")), Some(MediaForm::ImageOnly));
        assert_eq!(other_form(MediaForm::Transfer, &missing), Some(MediaForm::ImageOnly));
        assert_eq!(other_form(MediaForm::ImageOnly, &missing), None);
    }
}
