use serde_json::{Value, json};

use super::{OUTPUT_BYTES_MAX, data, parse, render};

fn dot() -> Value {
    let hardware = json!({
        "metadata": { "name": "nuc1" },
        "spec": {
            "disks": [{ "device": "/dev/nvme0n1" }, { "device": "/dev/sda" }],
            "interfaces": [{ "dhcp": {
                "mac": "52:54:00:77:00:01", "hostname": "nuc1",
                "ip": { "address": "10.77.0.57", "netmask": "255.255.255.0" },
                "name_servers": ["10.77.0.1", "1.1.1.1"],
            } }],
            "userData": "#cloud-config\n",
        },
    });
    data(&[("device_1".into(), "52:54:00:77:00:01".into())].into(), &hardware)
}

fn check(template: &str, want: &str) {
    match render(template, &dot()) {
        Ok(got) => assert_eq!(got, want, "{template}"),
        Err(error) => panic!("{template}: {error}"),
    }
}

fn refused(template: &str, part: &str) {
    let error = render(template, &dot()).expect_err(template).to_string();
    assert!(error.contains(part), "{template}: {error}");
}

#[test]
fn what_published_templates_use() {
    check("{{.device_1}}", "52:54:00:77:00:01");
    check("{{ index .Hardware.Disks 0 }}", "/dev/nvme0n1");
    check("{{ formatPartition ( index .Hardware.Disks 0 ) 1 }}", "/dev/nvme0n1p1");
    check("{{ formatPartition (index .Hardware.Disks 1) 2 }}", "/dev/sda2");
    check("{{ formatPartition \"/dev/disk/by-id/x\" 3 }}", "/dev/disk/by-id/x-part3");
    check("{{ (index .Hardware.Interfaces 0).DHCP.IP.Address }}", "10.77.0.57");
    check("{{ (index .hardware.spec.interfaces 0).dhcp.hostname }}", "nuc1");
    check(
        "{{ (index .Hardware.Interfaces 0).DHCP.MAC | replace \":\" \"-\" }}",
        "52-54-00-77-00-01",
    );
    check("{{ netmaskToPrefixLength \"255.255.254.0\" }}", "23");
    check("{{ .Hardware.UserData | b64enc | b64dec | quote }}", "\"#cloud-config\\n\"");
    check(
        "{{ range $i, $n := (index .Hardware.Interfaces 0).DHCP.NameServers }}\
         {{ if $i }}, {{ end }}{{ $n }}{{ end }}",
        "10.77.0.1, 1.1.1.1",
    );
}

#[test]
fn control_and_variables() {
    check("{{ if eq .device_1 \"x\" }}a{{ else if true }}b{{ else }}c{{ end }}", "b");
    check(
        "{{ with .hardware.metadata }}{{ .name }} {{ $.device_1 }}{{ end }}",
        "nuc1 52:54:00:77:00:01",
    );
    check("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2");
    check("{{ range list }}x{{ else }}none{{ end }}", "none");
    check("{{ range $k, $v := dict \"b\" 1 \"a\" 2 }}{{ $k }}={{ $v }};{{ end }}", "a=2;b=1;");
    check("a \n {{- /* gone */ -}} \n b", "ab");
    check("a {{- 1 -}} b {{ 2 }} c", "a1b 2 c");
    check("{{ or \"\" \"x\" }}{{ and 1 0 }}{{ not true }}", "x0false");
    check("{{ or true (index (list) 5) }}", "true");
    check("{{ printf \"%05d|%-4s|%q|%v%%\" 42 \"a\" \"b\" true }}", "00042|a   |\"b\"|true%");
    check("{{ \"a\\tb\" }}{{ `c\\n` }}{{ 0x10 }}{{ -3 }}", "a\tbc\\n16-3");
    check(
        "{{ list 1 2 | join \"-\" }} {{ default \"d\" \"\" }} {{ ternary \"y\" \"n\" true }}",
        "1-2 d y",
    );
    check("{{ \"a\\nb\" | nindent 2 }}", "\n  a\n  b");
    check("{{ add 1 2 3 }} {{ div 7 2 }} {{ until 3 }}", "6 3 [0 1 2]");
}

#[test]
fn a_missing_key_is_an_error_with_its_line() {
    refused("\n\n{{ .nope }}", "line 3: map has no entry for key \"nope\"");
    refused("{{ .device_1.x }}", "can't evaluate field x");
    refused("{{ $nope }}", "undefined variable");
    refused("{{ nope 1 }}", "function \"nope\" not defined");
    refused("{{ index .Hardware.Disks 9 }}", "out of range");
}

#[test]
fn broken_syntax_is_an_error() {
    for template in [
        "{{",
        "{{ if }}x{{ end }}",
        "{{ if true }}",
        "{{ end }}",
        "{{ else }}",
        "{{ \"x }}",
        "{{ ` }}",
        "{{ ( }}",
        "{{ 1 | }}",
        "{{ 1 2 }}",
        "{{ .a! }}",
        "{{/* x }}",
        "{{ range 1 }}{{ end }}",
        "{{ define \"x\" }}{{ end }}",
        "{{ 99999999999999999999x }}",
        "{{ div 1 0 }}",
        "{{ $x, }}",
    ] {
        assert!(render(template, &dot()).is_err(), "{template}");
    }
}

#[test]
fn output_steps_and_depth_are_limited() {
    let loops = "{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}";
    refused(loops, "steps");
    let flood = "{{ range until 9999 }}0123456789012345678901234567890123456789{{ end }}";
    refused(flood, &OUTPUT_BYTES_MAX.to_string());
    refused(&"{{ if true }}".repeat(200), "nested");
    refused(&format!("{{{{ {} }}}}", "(".repeat(200)), "nested");
}

/// Each of these would fill the memory, end the stack or take minutes.
#[test]
fn no_step_makes_a_monster() {
    let large = "{{ $x := \"0123456789abcdef\" }}\
                 {{ range until 14 }}{{ $x = print $x $x }}{{ end }}";
    for grown in ["print $x $x", "list $x $x", "dict 1 $x 2 $x", "toJson (list $x $x)"] {
        let bomb = format!(
            "{{{{ $x := .Hardware }}}}{{{{ range until 60 }}}}\
                            {{{{ $x = {grown} }}}}{{{{ end }}}}"
        );
        refused(&bomb, "more than 1048576 bytes");
    }
    refused("{{ $x := 1 }}{{ range until 9999 }}{{ $x = list $x }}{{ end }}", "nested too deeply");
    for product in [
        "replace \"\" $x $x",
        "join $x (until 9999)",
        "regexReplaceAll \"\" (trunced) $x",
        "indent 200 (replace \"0\" \"\\n\" $x)",
    ] {
        let product = product.replace("(trunced)", "(index (splitList \"f\" $x) 0)");
        let error = render(&format!("{large}{{{{ {product} }}}}"), &dot()).expect_err(&product);
        assert!(error.message.contains("bytes"), "{product}: {error}");
    }
    let copies = "{{ range until 9999 }}{{ if eq $x \"a\" }}{{ end }}{{ end }}";
    refused(&format!("{large}{copies}"), "steps");
    let patterns = "{{ range until 99 }}{{ if regexMatch \"a+b\" \"c\" }}{{ end }}{{ end }}";
    refused(patterns, "steps");
    check("{{ regexReplaceAll \"a(x*)b\" \"-axxb-ab-\" \"${1}W\" }}", "-xxW-W-");
}

#[test]
fn rendered_text_becomes_a_document() {
    let template = "name: n\ntasks:\n- name: t\n  worker: \"{{.device_1}}\"\n  actions:\n\
                    \x20 - name: a\n    image: disk-wipe:latest\n    environment:\n\
                    \x20     MODE: 0600\n";
    let document = parse(&render(template, &dot()).unwrap()).unwrap();
    assert_eq!(document.tasks[0].worker, "52:54:00:77:00:01");
    assert_eq!(document.tasks[0].actions[0].environment["MODE"], "0600");
}
