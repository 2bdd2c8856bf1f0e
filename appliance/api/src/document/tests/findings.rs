//! Tests of settings without a value, values of a wrong type, and misspelled keys.

use crate::document::{DocumentError, lint, parse, parse_with_warnings};

fn mistakes(text: &str) -> Vec<String> {
    match parse(text) {
        Err(DocumentError::Rules(mistakes)) => mistakes,
        other => panic!("{other:?}"),
    }
}

/// Returns a document with one action that ends with the lines `more`.
fn with(more: &str) -> String {
    format!(
        "version: \"0.1\"\nname: empty\ntasks:\n- name: t\n  worker: w\n  actions:\n\
         \x20 - name: a\n    image: quay.io/tinkerbell/actions/cexec\n{more}"
    )
}

#[test]
fn a_setting_without_a_value_is_an_empty_text() {
    let document = parse(&with(
        "    environment:\n      HTTP_PROXY:\n      TILDE: ~\n      NULL: null\n\
         \x20     QUOTED: \"~\"\n",
    ));
    let environment = &document.unwrap().tasks[0].actions[0].environment;
    let pairs: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), &**value)).collect();
    assert_eq!(pairs, [("HTTP_PROXY", ""), ("NULL", ""), ("QUOTED", "~"), ("TILDE", "")]);
}

#[test]
fn a_key_without_a_value_is_as_if_it_were_not_there() {
    let bare = parse(&with("")).unwrap();
    let empty = with(
        "    timeout:\n    command: ~\n    volumes:\n    environment:\n    pid:\n    namespaces:\n\
         \x20   retries: null\n    retry-wait:\n    on-failure:\n    on-timeout:\n",
    );
    assert_eq!(parse(&empty).unwrap(), bare);
    let all = format!("{empty}  volumes:\n  environment: null\nglobal_timeout:\n");
    assert_eq!(parse(&all).unwrap(), bare);
    let listed = parse(&with("    command: [a, ~, '']\n")).unwrap();
    assert_eq!(listed.tasks[0].actions[0].command, ["a", "", ""]);
    assert_eq!(mistakes("name: x\ntasks:\n"), ["line 2: tasks: at least one is required"]);
    let nothing = mistakes("name: x\ntasks:\n-\n");
    let name = "line 3: tasks[0].name: 0 characters, 1 to 199 are allowed";
    assert_eq!(nothing, [name, "line 3: tasks[0].worker: empty after rendering"]);
}

#[test]
fn a_value_of_a_wrong_type_is_refused_with_its_path_and_line() {
    let at = "tasks[0].actions[0]";
    for (more, expected) in [
        ("timeout: 1m", "timeout: expected a whole number of seconds, found \"1m\""),
        ("timeout: 1.5", "timeout: expected a whole number of seconds, found \"1.5\""),
        ("timeout: [1]", "timeout: expected a whole number of seconds, found a list"),
        ("retries: many", "retries: expected a whole number, found \"many\""),
        ("command: reboot", "command: expected a list, found text"),
        ("volumes: {a: b}", "volumes: expected a list, found a map"),
        ("volumes: [{/dev: /dev}]", "volumes[0]: expected text, found a map"),
        (
            "environment: [A=b]",
            "environment: expected a map of settings, such as KEY: value, \
                                found a list",
        ),
        ("environment: {A: [b]}", "environment.A: expected text, found a list"),
        ("namespaces: host", "namespaces: expected a map of network, pid, found text"),
        ("pid: [host]", "pid: expected text, found a list"),
    ] {
        let text = with(&format!("    {more}\n"));
        let expected = [format!("line 9: {at}.{expected}")];
        assert_eq!(mistakes(&text), expected, "{more}");
        assert_eq!(lint(&text).mistakes, expected, "{more}");
    }
    let text = with("").replace("worker: w", "worker: {a: b}").replace("name: a", "name: [a]");
    let lines = ["line 5: tasks[0].worker: expected text, found a map".to_owned()];
    let name = format!("line 7: {at}.name: expected text, found a list");
    assert_eq!(mistakes(&text), [&lines[..], &[name]].concat());
    let whole = ["line 1: the document: expected a map of version, name, global_timeout, tasks, \
                  id, found text"];
    assert_eq!(mistakes("text")[..1], whole);
}

#[test]
fn whole_numbers_are_read_as_upstream_reads_them() {
    for (text, number) in
        [("\"60\"", 60), ("1_000", 1000), ("0x10", 16), ("017", 15), ("0o17", 15), ("6e2", 600)]
    {
        let document = parse(&with(&format!("    timeout: {text}\n"))).unwrap();
        assert_eq!(document.tasks[0].actions[0].timeout, number, "{text}");
    }
    for text in ["1 0", "--1", "0x", ".inf", "99999999999999999999", "yes"] {
        assert_eq!(mistakes(&with(&format!("    timeout: {text}\n"))).len(), 1, "{text}");
    }
}

#[test]
fn a_key_that_is_given_twice_is_refused() {
    let error = parse(&with("    timeout: 1\n    timeout: 2\n")).unwrap_err().to_string();
    let twice = "line 10: key \"timeout\" is given twice, first in line 9";
    assert!(error.ends_with(twice), "{error}");
}

#[test]
fn aliases_and_merged_keys_are_followed() {
    let text = "x: &e {A: '1', B: '2'}\nname: n\ntasks:\n- name: t\n  worker: w\n  actions:\n\
                \x20 - {name: a, image: i, environment: {<<: *e, B: '3'}}\n";
    let environment = &parse(text).unwrap().tasks[0].actions[0].environment;
    assert_eq!((environment["A"].as_str(), environment["B"].as_str()), ("1", "3"));
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, of) in ('b'..='i').zip('a'..='h') {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 10].join(", "));
    }
    let error = parse(&bomb).unwrap_err().to_string();
    assert!(error.contains("too large"), "{error}");
}

#[test]
fn a_key_that_nothing_reads_is_named_with_the_one_that_may_be_meant() {
    let text = with(
        "    timeoutSeconds: 900\n    env: {A: b}\n    background: true\n    on_failure: [x]\n\
         \x20   namespaces: {nework: host}\n  enviroment: {}\n  timeout: 5\nglobal_timout: 600\n",
    );
    let mut expected = [
        "line 16: global_timout: not a key of a workflow document; did you mean global_timeout?",
        "line 9: tasks[0].actions[0].timeoutSeconds: not a key of an action; did you mean timeout?",
        "line 10: tasks[0].actions[0].env: not a key of an action; did you mean environment?",
        "line 11: tasks[0].actions[0].background: not a key of an action",
        "line 12: tasks[0].actions[0].on_failure: not a key of an action; did you mean on-failure?",
        "line 13: tasks[0].actions[0].namespaces.nework: not a key of namespaces; \
         did you mean network?",
        "line 14: tasks[0].enviroment: not a key of a task; did you mean environment?",
        "line 15: tasks[0].timeout: not a key of a task; it is a key of an action",
    ];
    let mut found = lint(&text).unknown;
    found.sort();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let mut warnings = parse_with_warnings(&text).unwrap().1;
    warnings.sort();
    assert_eq!(warnings, expected, "the rendered document");
}

#[test]
fn a_misspelt_setting_of_a_built_in_action_is_named() {
    let text =
        with("    environment: {BLOCKDEVICE: /dev/sda, CMD_LIEN: x, OWN: y, FS_TYPE: ext4}\n");
    let at = "line 9: tasks[0].actions[0].environment";
    let expected = [
        format!("{at}.BLOCKDEVICE: not a setting of the action; did you mean BLOCK_DEVICE?"),
        format!("{at}.CMD_LIEN: not a setting of the action; did you mean CMD_LINE?"),
    ];
    assert_eq!(lint(&text).unknown, expected);
    let other = text.replace("actions/cexec", "actions/mine");
    assert_eq!(lint(&other).unknown, [""; 0], "settings of other programs are their own");
}

#[test]
fn values_that_a_template_prints_are_not_judged() {
    let text = "\
name: x
global_timeout: {{ .t }}
tasks:
{{- range .machines }}
- name: \"{{ . }}\"
  worker: {{ . }}
  volumes: {{ .v }}
  actions:
  - name: a
    image: {{ .i }}
    timout: 5
    retries: {{ .r }}
{{- if .e }}
    environment:
      A: {{ .e }}
{{- else }}
    environment: {}
{{- end }}
{{- end }}
";
    let found = lint(text);
    assert_eq!(found.mistakes, [""; 0]);
    assert_eq!(found.unread, None);
    let expected =
        "line 11: tasks[0].actions[0].timout: not a key of an action; did you mean timeout?";
    assert_eq!(found.unknown, [expected]);
    assert!(lint("a: [{{ .x }}\n").unread.unwrap().starts_with("line "));
}
