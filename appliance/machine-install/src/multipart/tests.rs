use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::merge;

const CONFIG: &str = "#cloud-config\nwrite_files:\n- path: /a\n";

#[test]
fn the_archive_is_written_as_expected() {
    let expected = "Content-Type: multipart/mixed; boundary=\"tinbox-part-00000000\"\n\
        MIME-Version: 1.0\n\
        \n\
        --tinbox-part-00000000\n\
        Content-Type: text/jinja2; charset=\"utf-8\"\n\
        MIME-Version: 1.0\n\
        Content-Transfer-Encoding: 7bit\n\
        \n\
        ## template: jinja\n\
        #cloud-config\n\
        a: 1\n\
        \n\
        --tinbox-part-00000000\n\
        Content-Type: text/cloud-config; charset=\"utf-8\"\n\
        MIME-Version: 1.0\n\
        Merge-Type: list(append)+dict(no_replace,recurse_list)+str()\n\
        Content-Transfer-Encoding: 7bit\n\
        \n\
        #cloud-config\n\
        write_files:\n\
        - path: /a\n\
        \n\
        --tinbox-part-00000000--\n";
    let bootstrap = "## template: jinja\n#cloud-config\na: 1\n";
    assert_eq!(merge(bootstrap, CONFIG).unwrap(), expected);
    assert_eq!(merge(bootstrap, CONFIG), merge(bootstrap, CONFIG));
}

#[test]
fn the_first_line_determines_the_type() {
    for (line, kind) in [
        ("#cloud-config", "text/cloud-config"),
        ("#Cloud-Config", "text/cloud-config"),
        ("\n  #cloud-config", "text/cloud-config"),
        ("#cloud-config-archive", "text/cloud-config-archive"),
        ("#cloud-config-jsonp", "text/cloud-config-jsonp"),
        ("#cloud-boothook", "text/cloud-boothook"),
        ("#!/usr/bin/env python3", "text/x-shellscript"),
        ("## template: jinja", "text/jinja2"),
        ("#include", "text/x-include-url"),
        ("#include-once", "text/x-include-once-url"),
        ("#part-handler", "text/part-handler"),
    ] {
        let merged = merge(CONFIG, &format!("{line}\nx\n")).unwrap();
        let header = format!("\nContent-Type: {kind}; charset=\"utf-8\"\n");
        assert_eq!(merged.matches(&header).count(), 1 + usize::from(kind.ends_with("-config")));
    }
    for text in ["", "x", "# a comment", "é", "#cloud", "{\"ignition\": {}}"] {
        assert_eq!(merge(CONFIG, text).unwrap_err().reason(), "UserDataTypeUnknown", "{text}");
        let error = merge(text, CONFIG).unwrap_err().to_string();
        assert!(error.starts_with("the bootstrap data cannot be merged: "), "{error}");
    }
}

#[test]
fn an_archive_keeps_its_type() {
    let inner = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\n\
                 Content-Type: text/x-shellscript\n\n#!/bin/sh\n\n--b--\n";
    let merged = merge(CONFIG, inner).unwrap();
    assert!(merged.contains(&format!("--tinbox-part-00000000\n{inner}\n--tinbox-part-")));
    let twice = merge(&merged, CONFIG).unwrap();
    assert!(twice.starts_with("Content-Type: multipart/mixed; boundary=\"tinbox-part-00000001\""));
    assert!(twice.contains(&merged));
}

#[test]
fn the_boundary_occurs_in_no_part() {
    let mut text = CONFIG.to_owned();
    for number in [0, 1, 3, 99_999_999] {
        text.push_str(&format!("# xtinbox-part-{number:08}\n"));
    }
    text.push_str("# tinbox-part-x0000002 tinbox-part-");
    let merged = merge(&text, CONFIG).unwrap();
    assert!(merged.contains("boundary=\"tinbox-part-00000002\""));
    assert_eq!(merged.matches("--tinbox-part-00000002").count(), 3);
    assert!(!text.contains("tinbox-part-00000002"));
}

#[test]
fn text_that_mail_software_would_change_is_encoded() {
    let long = "é".repeat(80);
    for text in [format!("#cloud-config\na: {long}\n"), "#!/bin/sh\r\nx\r".to_owned()] {
        let merged = merge(CONFIG, &text).unwrap();
        assert!(merged.is_ascii());
        let (_, body) = merged.split_once("Encoding: base64\n\n").unwrap();
        let (body, end) = body.split_once("\n--").unwrap();
        assert_eq!(end, "tinbox-part-00000000--\n");
        assert!(body.lines().all(|line| line.len() <= 76));
        assert_eq!(STANDARD.decode(body.replace('\n', "")).unwrap(), text.as_bytes());
    }
}
