use crate::BootTarget;
use crate::boot::{next, settings};
use crate::message::{Answer, Element};

fn recorded(name: &str, xml: &str) -> Element {
    Answer::parse(xml.as_bytes()).unwrap().expect(name).unwrap()
}

fn recorded_settings() -> Element {
    recorded("AMT_BootSettingData", include_str!("../../recordings/boot-settings.xml"))
}

fn set(element: &mut Element, name: &str, text: &str) {
    let child = element.children.iter_mut().find(|child| child.name == name).unwrap();
    child.text = text.to_owned();
}

#[test]
fn leftovers_of_earlier_boots_are_switched_off_and_read_only_fields_left_out() {
    let mut read = recorded_settings();
    let dangerous = [
        "BIOSSetup",
        "ConfigurationDataReset",
        "PlatformErase",
        "ReflashBIOS",
        "SecureErase",
        "UseIDER",
        "UserPasswordBypass",
        "LockPowerButton",
    ];
    for name in dangerous {
        set(&mut read, name, "true");
    }
    set(&mut read, "BootMediaIndex", "2");
    set(&mut read, "RSEPassword", "secret");
    set(&mut read, "EnforceSecureBoot", "true");
    let written = settings(BootTarget::Pxe, &read, false);
    let value = |name: &str| {
        written.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    };
    for name in dangerous {
        assert_eq!(value(name), Some("false"), "{name}");
    }
    assert_eq!((value("BootMediaIndex"), value("RSEPassword")), (Some("0"), Some("")));
    assert_eq!(value("EnforceSecureBoot"), Some("true"));
    assert_eq!(value("InstanceID"), Some("Intel(r) AMT:BootSettingData 0"));
    for read_only in [
        "BIOSLastStatus",
        "BootguardStatus",
        "OptionsCleared",
        "RPEEnabled",
        "SecureBootControlEnabled",
        "UEFIHTTPSBootEnabled",
        "UEFILocalPBABootEnabled",
        "UefiBootParametersArray",
        "WinREBootEnabled",
    ] {
        assert_eq!(value(read_only), None, "{read_only}");
    }
    let names: Vec<_> = written.iter().map(|(name, _)| name.clone()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(names, sorted, "the order of the schema is that of ASCII");
}

#[test]
fn only_the_setup_sets_the_flag_of_the_setup() {
    let mut read = recorded_settings();
    let flags = |target, read: &Element| {
        let written = settings(target, read, false);
        let is_set = |name: &str| written.contains(&(name.to_owned(), "true".to_owned()));
        (is_set("BIOSSetup"), is_set("UseSafeMode"))
    };
    assert_eq!(flags(BootTarget::Setup, &read), (true, false));
    assert_eq!(flags(BootTarget::SafeMode, &read), (false, true));
    assert_eq!(flags(BootTarget::Disk, &read), (false, false));
    // AMT 12 does not have the newer fields.
    read.children.retain(|child| !child.name.starts_with("Platform"));
    let written = settings(BootTarget::Disk, &read, true);
    assert!(written.iter().all(|(name, _)| name != "PlatformErase"));
    // Without a console, the screen of the firmware has no reader.
    assert!(written.contains(&("UseSOL".to_owned(), "true".to_owned())));
    assert!(settings(BootTarget::Disk, &read, false).contains(&("UseSOL".into(), "false".into())));
}

#[test]
fn recorded_capabilities_decide() {
    let xml = include_str!("../../recordings/boot-capabilities.xml");
    let capabilities = recorded("AMT_BootCapabilities", xml);
    for target in [BootTarget::Pxe, BootTarget::Disk, BootTarget::Cdrom, BootTarget::Setup] {
        assert!(target.check(&capabilities).unwrap().is_ok(), "{target:?}");
    }
    let refused = BootTarget::SafeMode.check(&capabilities).unwrap().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "boot in safe mode: the firmware of this machine does not offer it (AMT_BootCapabilities)"
    );
    assert!(BootTarget::Pxe.check(&Element::default()).unwrap().is_err(), "a missing flag");
}

#[test]
fn a_used_up_device_is_not_the_next_one() {
    let mut read = recorded_settings();
    assert_eq!(next(Some(BootTarget::Pxe), &read), Ok(None), "the recording says cleared");
    set(&mut read, "OptionsCleared", "false");
    assert_eq!(next(Some(BootTarget::Pxe), &read), Ok(Some(BootTarget::Pxe)));
    assert_eq!(next(None, &read), Ok(None));
    set(&mut read, "BIOSSetup", "true");
    assert_eq!(next(None, &read), Ok(Some(BootTarget::Setup)));
    set(&mut read, "BIOSSetup", "perhaps");
    assert!(next(None, &read).is_err());
}
