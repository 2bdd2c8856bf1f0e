use serde_json::{Value, json};

use crate::limits::OUTPUT_BYTES_MAX;
use crate::{check, render};

fn dot() -> Value {
    json!({
        "device_1": "52:54:00:77:00:01",
        "nothing": null,
        "Hardware": {
            "Disks": ["/dev/nvme0n1", "/dev/sda"],
            "Interfaces": [{ "DHCP": {
                "MAC": "52:54:00:77:00:01", "Hostname": "nuc1", "LeaseTime": 604800,
                "IP": { "Address": "10.77.0.57" }, "NameServers": ["10.77.0.1", "1.1.1.1"],
            } }],
            "UserData": "#cloud-config\n",
        },
    })
}

fn good(table: &[(&str, &str)]) {
    for (template, want) in table {
        match render(template, &dot()) {
            Ok(got) => assert_eq!(got, *want, "{template}"),
            Err(error) => panic!("{template}: {error}"),
        }
    }
}

fn bad(table: &[(&str, &str)]) {
    for (template, part) in table {
        let error = render(template, &dot()).expect_err(template).to_string();
        assert!(error.contains(part), "{template}: {error}");
    }
}

#[test]
fn what_published_templates_use() {
    good(&[
        ("{{.device_1}}", "52:54:00:77:00:01"),
        ("{{ index .Hardware.Disks 0 }}", "/dev/nvme0n1"),
        ("{{ formatPartition ( index .Hardware.Disks 0 ) 1 }}", "/dev/nvme0n1p1"),
        ("{{ formatPartition (index .Hardware.Disks 1) 2 }}", "/dev/sda2"),
        ("{{ formatPartition \"/dev/disk/by-id/x\" 3 }}", "/dev/disk/by-id/x-part3"),
        ("{{ (index .Hardware.Interfaces 0).DHCP.IP.Address }}", "10.77.0.57"),
        (
            "{{ (index .Hardware.Interfaces 0).DHCP.MAC | replace \":\" \"-\" }}",
            "52-54-00-77-00-01",
        ),
        ("{{ netmaskToPrefixLength \"255.255.254.0\" }}", "23"),
        ("{{ eq (index .Hardware.Interfaces 0).DHCP.LeaseTime 604800 }}", "true"),
        ("{{ netmaskToPrefixLength \"255.0.255.0\" }}", "0"),
        ("{{ .Hardware.UserData | b64enc | b64dec | quote }}", "\"#cloud-config\\n\""),
        (
            "{{ range $i, $n := (index .Hardware.Interfaces 0).DHCP.NameServers }}\
             {{ if $i }}, {{ end }}{{ $n }}{{ end }}",
            "10.77.0.1, 1.1.1.1",
        ),
    ]);
}

#[test]
fn control_and_variables() {
    good(&[
        ("{{ if eq .device_1 \"x\" }}a{{ else if true }}b{{ else }}c{{ end }}", "b"),
        (
            "{{ with .Hardware }}{{ index .Disks 1 }} {{ $.device_1 }}{{ end }}",
            "/dev/sda 52:54:00:77:00:01",
        ),
        ("{{ with 0 }}a{{ else with 1 }}b{{ . }}{{ else }}c{{ end }}", "b1"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"),
        ("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}", "1"),
        ("{{ range list }}x{{ else }}none{{ end }}", "none"),
        ("{{ range $k, $v := dict \"b\" 1 \"a\" 2 }}{{ $k }}={{ $v }};{{ end }}", "a=2;b=1;"),
        (
            "{{ range 5 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ if eq . 3 }}{{ break }}{{ end }}\
          {{ . }}{{ end }}",
            "02",
        ),
        ("{{ $x := 9 }}{{ range $x = list 1 2 }}{{ end }}{{ $x }}", "2"),
        ("a \n {{- /* gone */ -}} \n b", "ab"),
        ("a {{- 1 -}} b {{ 2 }} c", "a1b 2 c"),
        (
            "{{ define \"x\" }}<{{ . }}>{{ end }}{{ template \"x\" 1 }}{{ template \"x\" }}",
            "<1><<no value>>",
        ),
        ("{{ block \"y\" .device_1 }}{{ len . }}{{ end }}", "17"),
        ("{{ or \"\" \"x\" }}{{ and 1 0 }}{{ not true }}", "x0false"),
        ("{{ or true (index (list) 5) }}", "true"),
        (
            "{{ .nothing }}|{{ print .nothing }}|{{ html .nothing }}",
            "<no value>|<nil>|&lt;no value&gt;",
        ),
        (
            "{{ \"a\\tb\" }}{{ `c\\n` }}{{ 0x10 }}{{ -3 }}{{ 'a' }}{{ 1e3 }}{{ 1_000 }}",
            "a\tbc\\n16-39710001000",
        ),
    ]);
}

#[test]
fn values_are_printed_as_go_prints_them() {
    good(&[
        ("{{ printf \"%05d|%-4s|%q|%v%%\" 42 \"a\" \"b\" true }}", "00042|a   |\"b\"|true%"),
        ("{{ printf \"%d\" \"x\" }}", "%!d(string=x)"),
        (
            "{{ printf \"%d\" }}{{ printf \"x\" 1 }}{{ printf \"%\" }}",
            "%!d(MISSING)x%!(EXTRA int=1)%!(NOVERB)",
        ),
        ("{{ printf \"%[2]v %[1]v\" 1 2 }}{{ printf \"%[5]d\" 1 }}", "2 1%!d(BADINDEX)"),
        (
            "{{ printf \"%5z|%x|%X|%#x|%c|%U\" 1 \"hi\" 255 255 65 65 }}",
            "%!z(int=    1)|6869|FF|0xff|A|U+0041",
        ),
        ("{{ printf \"%T %T %T %T\" 1 (add 1 1) 1.5 (list) }}", "int int64 float64 []interface {}"),
        ("{{ printf \"%#v\" (list 1 \"a\" nil) }}", "[]interface {}{1, \"a\", interface {}(nil)}"),
        (
            "{{ printf \"%8.3f|%+d|%e|%g\" 3.14159 5 1500.0 0.00001 }}",
            "   3.142|+5|1.500000e+03|1e-05",
        ),
        (
            "{{ 1000000.0 }} {{ 123456.0 }} {{ (index .Hardware.Interfaces 0).DHCP.LeaseTime }}",
            "1e+06 123456 604800",
        ),
        ("{{ dict \"a\" (list 1 nil) }} {{ print 1 2 \"a\" 3 }}", "map[a:[1 <nil>]] 1 2a3"),
    ]);
}

#[test]
fn functions_of_sprig() {
    good(&[
        (
            "{{ list 1 2 | join \"-\" }} {{ default \"d\" \"\" }} {{ ternary \"y\" \"n\" true }}",
            "1-2 d y",
        ),
        ("{{ \"a\\nb\" | nindent 2 }}", "\n  a\n  b"),
        ("{{ add 1 2 3 }} {{ div 7 2 }} {{ until 3 }} {{ seq 1 3 }}", "6 3 [0 1 2] 1 2 3"),
        ("{{ $d := dict }}{{ $e := $d }}{{ $_ := set $d \"a\" 1 }}{{ $e }}", "map[a:1]"),
        ("{{ $l := splitList \",\" \"b,a\" }}{{ $_ := sortAlpha $l }}{{ $l }}", "[a b]"),
        ("{{ toYaml (dict \"a\" (list 1 \"0600\")) }}", "a:\n- 1\n- \"0600\""),
        ("{{ (fromYaml \"a: 0600\").a }} {{ fromYaml \"[yes, no]\" }}", "384 [true false]"),
        (
            "{{ toJson (dict \"a\" \"<\") }} {{ toRawJson \"<\" }} {{ toJson (rest (list 1)) }}",
            "{\"a\":\"\\u003c\"} \"<\" []",
        ),
        (
            "{{ b64dec \"a\" }} {{ b32dec \"!\" }}",
            "illegal base64 data at input byte 0 illegal base32 data at input byte 0",
        ),
        ("{{ camelcase \"_\" }}", "__"),
        (
            "{{ snakecase \"HTTPServerId2\" }} {{ camelcase \"http_server\" }}",
            "http_server_id2 HttpServer",
        ),
        ("{{ addf 0.1 0.2 }} {{ divf 1 3 }} {{ round 2.675 2 }}", "0.3 0.3333333333333333 2.68"),
        ("{{ regexReplaceAll \"a(x*)b\" \"-axxb-ab-\" \"${1}W\" }}", "-xxW-W-"),
        ("{{ regexFindAll \"[0-9]+\" \"1a22\" -1 }} {{ regexMatch \"a{\" \"a{\" }}", "[1 22] true"),
        (
            "{{ merge (dict \"a\" 1) (dict \"a\" 2 \"b\" 3) }} {{ dig \"a\" \"b\" 0 (dict) }}",
            "map[a:1 b:3] 0",
        ),
        ("{{ duration \"3661\" }} {{ durationRound \"25h\" }}", "1h1m1s 1d"),
        ("{{ chunk 2 (list 1 2 3) }} {{ uniq (list 1 1 \"1\") }}", "[[1 2] [3]] [1 1]"),
        ("{{ dir \"/a/b/../c\" }} {{ base \"/a/\" }} {{ ext \"x.tar.gz\" }}", "/a a .gz"),
    ]);
}

#[test]
fn versions_have_methods() {
    good(&[
        ("{{ semver \"v1.2-rc.1+b\" }} {{ (semver \"v1.2\").Original }}", "1.2.0-rc.1+b v1.2"),
        ("{{ $v := semver \"1.2.3\" }}{{ $v.Major }} {{ add $v.Minor 1 }}", "1 3"),
        ("{{ $v := semver \"v1.2.3-a\" }}{{ $v.IncMajor }} {{ $v.IncPatch }}", "2.0.0 1.2.3"),
        ("{{ semver \"1.2.3\" | (semver \"1.10\").Compare }}", "1"),
        ("{{ (semver \"1\").SetPrerelease \"rc.1\" | quote }}", "\"1.0.0-rc.1\""),
        ("{{ with semver \"1.2.3\" }}{{ if ge .Minor 2 }}{{ .Patch }}{{ end }}{{ end }}", "3"),
        ("{{ semverCompare \"^1.2.0 || ~3\" \"v1.9\" }}", "true"),
        ("{{ $v := semver \"1\" }}{{ eq $v $v }} {{ eq $v (semver \"1\") }}", "true false"),
        ("{{ eq (semver \"1\").IncMajor (semver \"1.0\").IncMajor }}", "true"),
        ("{{ $v := semver \"1\" }}{{ printf \"%T %T\" $v $v.Major }}", "*semver.Version uint64"),
        ("{{ printf \"%v|%6s\" (list (semver \"1\")) (semver \"2\") }}", "[1.0.0]| 2.0.0"),
        ("{{ toJson (semver \"1.2\") }} {{ kindOf (semver \"1\").IncPatch }}", "\"1.2.0\" struct"),
        (
            "{{ printf \"%d|%03d\" (semver \"v1-a\") (semver \"1\").IncMajor }}",
            "&{1 0 0 %!d(string=a) %!d(string=) %!d(string=v1-a)}|\
             {002 000 000 %!d(string=000) %!d(string=000) %!d(string=2.0.0)}",
        ),
        (
            "{{ printf \"%#v\" (semver \"1\") }}",
            "&semver.Version{major:0x1, minor:0x0, patch:0x0, pre:\"\", metadata:\"\", \
             original:\"1\"}",
        ),
        ("{{ (semver \"18446744073709551615.1\").Major }}", "18446744073709551615"),
    ]);
    bad(&[
        ("{{ semver \"x\" }}", "Invalid Semantic Version"),
        ("{{ semverCompare \">> 1\" \"1\" }}", "improper constraint"),
        ("{{ (semver \"1\").Nope }}", "can't evaluate field Nope in type *semver.Version"),
        ("{{ (semver \"1\").IncMajor.Original }}", "in type semver.Version"),
        ("{{ (semver \"1\").Compare }}", "wrong number of args for Compare: want 1 got 0"),
        ("{{ (semver \"1\").Compare 1 }}", "expected *semver.Version; found a number"),
        ("{{ (semver \"1\").Compare (semver \"1\").IncMajor }}", "got semver.Version"),
        ("{{ .device_1.Compare 1 }}", "Compare is not a method but has arguments"),
        ("{{ .Hardware.Disks 1 }}", "is not a method but has arguments"),
        ("{{ printf \"%d\" (list (semver \"1\")) }}", "an address differs at each call"),
        ("{{ deepCopy (semver \"1\") }}", "a version cannot be copied"),
    ]);
}

#[test]
fn urls_ciphers_and_patterns() {
    good(&[
        ("{{ (urlParse \"https://a@b:1/c?d#e\").host }}", "b:1"),
        (
            "{{ urlJoin (dict \"scheme\" \"http\" \"host\" \"box\" \"path\" \"a b\") }}",
            "http://box/a%20b",
        ),
        ("{{ urlJoin (dict \"userinfo\" \"me:p%20w\" \"host\" \"b\") }}", "//me:p%20w@b"),
        ("{{ decryptAES \"secret\" \"hvJUraOx8DGFTmETyrrmB4HeWHHUpGAiJdI3y7R+utE=\" }}", "hello"),
        ("{{ decryptAES \"\" \"\" }}", ""),
        ("{{ regexFindAll `\\p{Lu}\\B` \"Ab C DE\" -1 }}", "[A D]"),
        ("{{ range 9999 }}{{ if regexMatch \"a+b\" \"aab\" | not }}x{{ end }}{{ end }}", ""),
        ("{{ regexReplaceAll `(?P<n>b)` \"abc\" \"<${n}$$$1x${1}>\" }}", "a<b$b>c"),
    ]);
    bad(&[
        ("{{ urlParse \"http://a b\" }}", "unable to parse url: invalid character in host name"),
        ("{{ urlJoin (dict \"host\" 1) }}", "must be of type string, but int found"),
        ("{{ decryptAES \"x\" \"aGVsbG8=\" }}", "shorter than an AES block"),
        ("{{ encryptAES \"x\" \"y\" }}", "returns another value at each call"),
        ("{{ derivePassword 1 \"long\" \"a\" \"b\" \"c\" }}", "uses 32 MiB"),
    ]);
}

#[test]
fn a_mistake_is_an_error_with_its_line() {
    bad(&[
        ("\n\n{{ .nope }}", "line 3: map has no entry for key \"nope\""),
        ("\n{{ .device_1.x }}", "line 2: can't evaluate field x in type string"),
        ("{{ $nope }}", "line 1: undefined variable"),
        ("\n\n\n{{ nope 1 }}", "line 4: function \"nope\" not defined"),
        ("{{ randInt 1 2 }}", "returns another value at each call"),
        ("{{ env \"HOME\" }}", "not defined"),
        ("{{ index .Hardware.Disks 9 }}", "out of range"),
        ("{{ eq 1 1.0 }}", "incompatible types for comparison: int and float64"),
        ("{{ add1 }}", "wrong number of args for add1: want 1 got 0"),
        ("{{ upper 1 }}", "expected string; found a number"),
        ("{{ until .device_1 }}", "expected int; got string"),
        ("{{ template \"x\" }}", "not defined"),
        ("{{ fail \"words\" }}", "error calling fail: words"),
        ("{{ div 1 0 }}", "divide by zero"),
        ("{{ trunc 1 \"é\" }}", "cut a character"),
    ]);
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
        "{{ 1 2 }}",
        "{{ .a! }}",
        "{{/* x }}",
        "{{ break }}",
        "{{ define \"x\" }}",
        "{{ 99999999999999999999x }}",
        "{{ $x, }}",
        "{{ nil }}",
        "{{ 1 | 2 }}",
        "{{ ..a }}",
        "{{ 1i }}",
        "{{ '' }}",
        "{{ range 1.5 }}{{ end }}",
        "{{ define \"x\" }}a{{ end }}{{ define \"x\" }}b{{ end }}",
        "{{ if true }}{{ define \"x\" }}{{ end }}{{ end }}",
    ] {
        assert!(render(template, &dot()).is_err(), "{template}");
    }
    assert!(check("{{ .anything }}").is_ok(), "a template is checked without its data");
}

/// Templates that, without limits, would fill the memory, overflow the stack or run for minutes.
#[test]
fn no_template_makes_a_monster() {
    let output = OUTPUT_BYTES_MAX.to_string();
    let nested = "{{ if true }}".repeat(200);
    let parens = format!("{{{{ {}1{} }}}}", "(".repeat(200), ")".repeat(200));
    bad(&[
        ("{{ range 9999 }}{{ range 9999 }}{{ end }}{{ end }}", "steps"),
        ("{{ range 9999 }}{{ $_ := until 9999 }}{{ end }}", "values take more than"),
        ("{{ range 9000000000 }}{{ end }}", "steps"),
        ("{{ range until 9999 }}0123456789012345678901234567890123456789{{ end }}", &output),
        (&nested, "nested"),
        (&parens, "nested"),
        ("{{ define \"x\" }}{{ template \"x\" }}{{ end }}{{ template \"x\" }}", "call one another"),
        ("{{ until 99999999 }}", "a list of more than"),
        ("{{ repeat 99999999 \"x\" }}", "a text of more than"),
        ("{{ indent 99999999 \"x\" }}", "a text of more than"),
        ("{{ printf \"%99999999d\" 1 }}", "a width"),
        ("{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ $d }}", "nested more than"),
        ("{{ $x := 1 }}{{ range until 999 }}{{ $x = list $x }}{{ end }}{{ $x }}", "nested more"),
        ("{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}", "more"),
        ("{{ $x := \"a\" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}", "bytes"),
        ("{{ $x := repeat 999999 \"a\" }}{{ replace \"\" $x $x }}", "bytes"),
        (
            "{{ range until 9999 }}{{ if regexMatch (print . \"+b\") \"c\" }}{{ end }}{{ end }}",
            "steps",
        ),
    ]);
}
