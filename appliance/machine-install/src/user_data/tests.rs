use std::collections::BTreeMap;

use super::{DataFormat, USER_DATA_BYTES_MAX, UserData, user_data};

const ID: &str = "tinkerbell://default/nuc1";
const BOOTSTRAP: &str = "## template: jinja\n#cloud-config\n\nruncmd:\n- kubeadm join\n";

fn data(bytes: impl Into<Vec<u8>>) -> UserData {
    UserData { bytes: bytes.into(), format: DataFormat::CloudConfig }
}

fn secret(values: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
    values.iter().map(|(key, value)| ((*key).to_owned(), value.to_vec())).collect()
}

#[test]
fn secrets_are_read_by_their_keys() {
    let bootstrap = secret(&[("value", b"{}"), ("format", b"ignition\n")]);
    let read = UserData::of_bootstrap(&bootstrap).unwrap();
    assert_eq!((&*read.bytes, read.format), (&b"{}"[..], DataFormat::Ignition));
    let other = secret(&[("value", b"x"), ("format", b"bottlerocket")]);
    let format = UserData::of_bootstrap(&other).unwrap().format;
    assert_eq!(format, DataFormat::Other("bottlerocket".to_owned()));
    let all: [(&str, &[u8]); 3] = [("user-data", b"3"), ("userData", b"2"), ("value", b"1")];
    for (count, wanted) in [(3, b"1"), (2, b"2"), (1, b"3")] {
        let read = UserData::of_user(&secret(&all[..count])).unwrap();
        assert_eq!((&*read.bytes, read.format), (&wanted[..], DataFormat::CloudConfig));
    }
    let empty_first = secret(&[("value", b""), ("userData", b"2")]);
    assert_eq!(UserData::of_user(&empty_first).unwrap().bytes, b"2");
    let error = UserData::of_user(&secret(&[("other", b"x")])).unwrap_err();
    assert_eq!(error.reason(), "SecretValueMissing");
    let keys = "value or userData or user-data";
    let missing = format!("the Secret of the user data has no value under the key {keys}");
    assert_eq!(error.to_string(), missing);
    let error = UserData::of_bootstrap(&secret(&[("userData", b"x")])).unwrap_err().to_string();
    assert_eq!(error, "the Secret of the bootstrap data has no value under the key value");
}

#[test]
fn configuration_of_talos_needs_no_format() {
    let talos = "version: v1alpha1\ndebug: false\nmachine:\n  type: worker\n";
    let commented = "\nversion: v1alpha1 # Version of the schema.\nmachine:\n";
    let cloud = format!("#cloud-config\n{talos}");
    let format = |values: &[(&str, &[u8])]| UserData::of_bootstrap(&secret(values)).unwrap().format;
    for (text, expected) in [
        (talos, DataFormat::Talos),
        (commented, DataFormat::Talos),
        (&cloud, DataFormat::CloudConfig),
        ("#!/bin/sh\n", DataFormat::CloudConfig),
    ] {
        assert_eq!(format(&[("value", text.as_bytes())]), expected, "{text}");
    }
    let named = |name: &str| format(&[("value", talos.as_bytes()), ("format", name.as_bytes())]);
    assert_eq!(named("talos"), DataFormat::Talos);
    assert_eq!(named("cloud-config"), DataFormat::CloudConfig);
    let both = UserData::of_bootstrap(&secret(&[("value", talos.as_bytes())])).unwrap();
    let error = user_data(Some(&both), Some(&data("#cloud-config\n")), ID).unwrap_err();
    assert_eq!(error.reason(), "UserDataFormatConflict");
}

#[test]
fn single_data_stay_byte_for_byte() {
    let binary: Vec<u8> = (0..=255).collect();
    for bytes in [binary, b"\x1f\x8b\x08gzip".to_vec(), BOOTSTRAP.into(), b" \r\n\t".to_vec()] {
        let one = data(bytes.clone());
        assert_eq!(user_data(Some(&one), None, ID).unwrap().bytes, bytes);
        assert_eq!(user_data(None, Some(&one), ID).unwrap().bytes, bytes);
    }
    assert_eq!(user_data(None, None, ID).unwrap_err().reason(), "BootstrapDataMissing");
}

#[test]
fn the_provider_id_is_written_everywhere() {
    let text = "a: PROVIDER_ID\r\nb: 'xPROVIDER_IDPROVIDER_ID'\né: provider_id\n";
    let written = user_data(Some(&data(text)), None, ID).unwrap().bytes;
    let wanted = format!("a: {ID}\r\nb: 'x{ID}{ID}'\né: provider_id\n");
    assert_eq!(String::from_utf8(written).unwrap(), wanted);
    let ignition = UserData { format: DataFormat::Ignition, ..data("{\"x\":\"PROVIDER_ID\"}") };
    let written = user_data(Some(&ignition), None, ID).unwrap();
    assert_eq!(written.bytes, format!("{{\"x\":\"{ID}\"}}").into_bytes());
    assert_eq!(written.format, DataFormat::Ignition);
    let error = user_data(Some(&data(*b"\xffPROVIDER_ID")), None, ID).unwrap_err();
    assert_eq!(error.reason(), "UserDataNotText");
    let why = "the bootstrap data cannot be given a provider ID, because the data are not UTF-8 \
               text";
    assert_eq!(error.to_string(), why);
}

#[test]
fn both_data_become_an_archive() {
    let user = data("#!/bin/sh\necho PROVIDER_ID\n");
    let merged = user_data(Some(&data(BOOTSTRAP)), Some(&user), ID).unwrap();
    let text = String::from_utf8(merged.bytes).unwrap();
    assert_eq!(merged.format, DataFormat::CloudConfig);
    let bootstrap = text.find(BOOTSTRAP).unwrap();
    let script = text.find(&format!("#!/bin/sh\necho {ID}\n")).unwrap();
    assert!(text.starts_with("Content-Type: multipart/mixed; ") && bootstrap < script, "{text}");
}

#[test]
fn data_that_cannot_be_merged_are_refused() {
    let (good, binary) = (data(BOOTSTRAP), data(*b"#cloud-config\n\xff"));
    let ignition = UserData { format: DataFormat::Ignition, ..data("{}") };
    for (bootstrap, user, reason, why) in [
        (
            &ignition,
            &good,
            "UserDataFormatConflict",
            "cannot merge bootstrap data of format ignition with user data of format cloud-config",
        ),
        (
            &good,
            &ignition,
            "UserDataFormatConflict",
            "cannot merge bootstrap data of format cloud-config with user data of format ignition",
        ),
        (
            &good,
            &binary,
            "UserDataNotText",
            "the user data cannot be merged with other data, because the data are not UTF-8 text",
        ),
        (
            &binary,
            &good,
            "UserDataNotText",
            "the bootstrap data cannot be merged with other data, because the data are not UTF-8 \
             text",
        ),
        (
            &good,
            &data("hello\n"),
            "UserDataTypeUnknown",
            "the user data cannot be merged: the first line is not one of cloud-init",
        ),
    ] {
        let error = user_data(Some(bootstrap), Some(user), ID).unwrap_err();
        assert_eq!((error.reason(), error.to_string().as_str()), (reason, why));
    }
}

#[test]
fn the_size_is_limited() {
    let full = data(vec![b'#'; USER_DATA_BYTES_MAX]);
    assert_eq!(user_data(Some(&full), None, ID).unwrap().bytes.len(), USER_DATA_BYTES_MAX);
    let more = data(vec![b'#'; USER_DATA_BYTES_MAX + 1]);
    let error = user_data(None, Some(&more), ID).unwrap_err();
    assert_eq!(error.reason(), "UserDataTooLarge");
    let half = format!("#cloud-config\n{}", "#".repeat(USER_DATA_BYTES_MAX / 2));
    let error = user_data(Some(&data(half.clone())), Some(&data(half)), ID).unwrap_err();
    assert_eq!(error.reason(), "UserDataTooLarge", "headers and both parts count");
}

#[test]
fn data_are_never_printed() {
    assert_eq!(format!("{:?}", data("token")), "UserData { format: CloudConfig, .. }");
}
