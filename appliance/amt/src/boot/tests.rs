use crate::BootTarget;
use crate::boot::https::{HttpsUrl, InvalidCertificate, RootCertificate, availability};
use crate::boot::{https_settings, next, settings};
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
    assert_eq!(names, sorted, "without the array, the order of the schema is that of ASCII");
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

/// Parameters for `https://192.0.2.1/b.efi`, computed apart from this code.
const PARAMETERS: &str = "hoABABcAAABodHRwczovLzE5Mi4wLjIuMS9iLmVmaYaAFAABAAAAAQ==";

#[test]
fn a_url_is_written_as_parameters_and_every_other_option_is_off() {
    let mut read = recorded_settings();
    for name in ["BIOSSetup", "UseIDER", "UseSOL", "UserPasswordBypass", "PlatformErase"] {
        set(&mut read, name, "true");
    }
    set(&mut read, "BootMediaIndex", "1");
    let url = HttpsUrl::new("https://192.0.2.1/b.efi").unwrap();
    let written = https_settings(&url, &read);
    let value = |name: &str| {
        written.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    };
    assert_eq!(value("UefiBootParametersArray"), Some(PARAMETERS));
    assert_eq!(value("UefiBootNumberOfParams"), Some("2"));
    assert_eq!(value("ForcedProgressEvents"), Some("true"));
    assert_eq!(value("BootMediaIndex"), Some("0"));
    for name in ["BIOSSetup", "UseIDER", "UseSOL", "UserPasswordBypass", "PlatformErase"] {
        assert_eq!(value(name), Some("false"), "{name}");
    }
    for read_only in ["UEFIHTTPSBootEnabled", "SecureBootControlEnabled", "OptionsCleared"] {
        assert_eq!(value(read_only), None, "{read_only}");
    }
    // A later boot from a device has no parameters.
    let written = settings(BootTarget::Pxe, &read, false);
    assert!(written.iter().all(|(name, _)| name != "UefiBootParametersArray"));
    assert!(written.contains(&("UefiBootNumberOfParams".into(), "0".into())));
}

#[test]
fn a_url_must_be_one_that_the_firmware_takes() {
    let longest = format!("https://a/{}", "b".repeat(290));
    for good in ["https://192.0.2.1/b.efi", "HTTPS://[2001:db8::1]:8443/a%20b?c=d", &longest] {
        assert!(HttpsUrl::new(good).is_ok(), "{good}");
    }
    let too_long = format!("{longest}b");
    for (bad, reason) in [
        ("http://192.0.2.1/b.efi", "https:// only"),
        ("192.0.2.1/b.efi", "no scheme"),
        ("https:///b.efi", "no host"),
        ("https://", "no host"),
        ("https://a/b c", "percent-encoded"),
        ("https://a/\u{e4}", "percent-encoded"),
        (&too_long, "300 bytes"),
    ] {
        let error = HttpsUrl::new(bad).unwrap_err().to_string();
        assert!(error.contains(reason), "{bad}: {error}");
    }
}

#[test]
fn the_firmware_and_its_setup_must_both_permit_a_boot_by_https() {
    let mut read = recorded_settings();
    // The recorded capabilities are those of AMT 12, which has no such boot.
    let xml = include_str!("../../recordings/boot-capabilities.xml");
    let mut capabilities = recorded("AMT_BootCapabilities", xml);
    let reason = |capabilities: Option<&Element>, read: Option<&Element>| {
        availability(capabilities, read).unwrap().err().unwrap_or("available")
    };
    assert!(reason(Some(&capabilities), Some(&read)).contains("does not offer it"));
    assert!(reason(None, Some(&read)).contains("does not offer it"));
    let mut flag = capabilities.children[0].clone();
    flag.name = "ForceUEFIHTTPSBoot".into();
    flag.text = "true".into();
    capabilities.children.push(flag);
    assert_eq!(reason(Some(&capabilities), Some(&read)), "available");
    set(&mut read, "UEFIHTTPSBootEnabled", "false");
    assert!(
        reason(Some(&capabilities), Some(&read)).contains("switched off in the firmware setup")
    );
    assert!(reason(Some(&capabilities), None).contains("switched off in the firmware setup"));
    set(&mut read, "UEFIHTTPSBootEnabled", "perhaps");
    assert!(availability(Some(&capabilities), Some(&read)).is_err());
}

#[test]
fn a_root_certificate_is_one_certificate_in_pem() {
    let pem = "-----BEGIN CERTIFICATE-----\nMAMC\nAQE=\n-----END CERTIFICATE-----\n";
    let root = format!("root of the rack\n{pem}").parse::<RootCertificate>().unwrap();
    assert_eq!(root.blob(), "MAMCAQE=");
    let long =
        format!("-----BEGIN CERTIFICATE-----\nMA{}\n-----END CERTIFICATE-----", "AA".repeat(4000));
    for bad in ["", "MAMCAQE=", &pem.replace("MAMC", "AAMC"), &pem.repeat(2), &long] {
        assert_eq!(bad.parse::<RootCertificate>(), Err(InvalidCertificate), "{bad:.60}");
    }
    let stored = |blob: &str, is_root: &str| {
        let child = |name: &str, text: &str| Element {
            name: name.into(),
            text: text.into(),
            ..Element::default()
        };
        let children =
            vec![child("TrustedRootCertficate", is_root), child("X509Certificate", blob)];
        Element { children, ..Element::default() }
    };
    assert!(root.is_stored_as(&stored("MAMC\nAQE=", "true")));
    assert!(!root.is_stored_as(&stored("MAMCAQE=", "false")), "a certificate of its own");
    assert!(!root.is_stored_as(&stored("MAMCAQI=", "true")));
}
