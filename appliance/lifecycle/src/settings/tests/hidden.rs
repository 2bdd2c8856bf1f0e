//! Secrets in the text of the settings: hidden, compared, and kept through an edit.

use super::super::secrets;
use super::*;

#[test]
fn secrets_are_not_shown() {
    let text = |password: &str| {
        format!(
            "{BASE}[images]\ncache = \"/\"\n[images.credentials.\"reg.example\"]\n\
             username = \"box\"\npassword = \"{password}\" # of May\n"
        )
    };
    let (old, new) = (text("hunter2"), text("correct horse"));
    let settings = open(&Fake::with(&old));
    let report = settings.replace(&sum(&old), ME, &new).unwrap();
    assert!(report.text.contains("password = \"(hidden)\" # of May\n"), "{}", report.text);
    assert_eq!(settings.report(true).unwrap().text, new);
    let shown = settings.diff(Some(1), Some(2)).unwrap();
    let want = "-password = \"(hidden)\" # of May\n+password = \"(hidden, changed)\" # of May\n";
    assert!(shown.contains(want), "{shown}");
    assert!(!shown.contains("hunter2") && !shown.contains("horse"), "{shown}");
    assert!(secrets::hidden("password = \"hunter2\nb").starts_with("# This text is not valid"));
}

#[test]
fn a_text_is_edited_as_it_is_shown_and_its_secrets_stay() {
    let old = format!(
        "{BASE}[images]\ncache = \"/\"\n[images.credentials.\"reg.example\"]\n\
         username = \"box\"\npassword = \"hunter2\" # of May\n"
    );
    let settings = open(&Fake::with(&old));
    let shown = settings.report(false).unwrap();
    let typed = shown.text.replace("\"box\"", "\"box2\"");
    let report = settings.replace_shown(&shown.sum, ME, &typed).unwrap();
    assert!(!report.text.contains("hunter2"), "{}", report.text);
    let stored = settings.report(true).unwrap().text;
    assert_eq!(stored, old.replace("\"box\"", "\"box2\""), "comments and secrets stay");

    let newer = typed.replace("(hidden)", "new secret");
    settings.replace_shown(&report.sum, ME, &newer).unwrap();
    assert!(settings.report(true).unwrap().text.contains("\"new secret\" # of May"));
    let sum = settings.report(false).unwrap().sum;
    let moved = typed.replace("reg.example", "other.example");
    let refused = settings.replace_shown(&sum, ME, &moved).unwrap_err().to_string();
    let key = "images.credentials.other.example.password";
    assert_eq!(refused, format!("{key} is \"(hidden)\", and has no value yet: write its value"));
    let broken = settings.replace_shown(&sum, ME, "name = ").unwrap_err();
    assert!(matches!(broken, SettingsError::Mistakes(_)), "{broken}");
}
