use super::{Acceptance, Outcome, verdicts};
use crate::{Case, Run, Verdict};

fn run(cases: &[(&str, Verdict)]) -> Run {
    let case = |(name, verdict): &(&str, Verdict)| {
        let (suite, name) = name.split_once('/').unwrap();
        Case { suite: suite.to_owned(), name: name.to_owned(), verdict: verdict.clone() }
    };
    Run { cases: cases.iter().map(case).collect() }
}

fn rows(rows: &str) -> anyhow::Result<Acceptance> {
    Acceptance::read(&format!("[[section]]\ntitle = 'A: boots'\n{rows}"))
}

fn row(id: &str, more: &str) -> String {
    format!("[[section.row]]\nid = '{id}'\nrequirement = 'a|b'\n{more}\n")
}

#[test]
fn a_row_has_the_result_of_its_tests() {
    let run = run(&[
        ("dhcp::dhcp/good", Verdict::Passed),
        ("dhcp/flaky", Verdict::Flaky(String::new())),
        ("dhcp/bad", Verdict::Failed),
    ]);
    for (more, outcome) in [
        ("tests = ['dhcp::dhcp/good']", Outcome::Pass),
        ("tests = ['dhcp::dhcp/good', 'dhcp/flaky']", Outcome::Pass),
        ("tests = ['dhcp::dhcp/good']\nmissing = 'relays'", Outcome::NotYet),
        ("tests = ['dhcp::dhcp/good', 'dhcp/other']", Outcome::NotYet),
        ("tests = ['dhcp/good']", Outcome::NotYet),
        ("", Outcome::NotYet),
        ("tests = ['dhcp::dhcp/good', 'dhcp/bad']", Outcome::Fail),
        ("tests = ['dhcp/other', 'dhcp/bad']\nmissing = 'relays'", Outcome::Fail),
    ] {
        let acceptance = rows(&row("A01", more)).unwrap();
        let found = acceptance.rows().next().unwrap().outcome(&verdicts(&run));
        assert_eq!(found, outcome, "{more}");
    }
}

#[test]
fn the_page_has_counts_and_one_line_a_row() {
    let run = run(&[("dhcp/good", Verdict::Passed)]);
    let tests = "tests = ['dhcp/good', 'dhcp/other']";
    let text = row("A01", "tests = ['dhcp/good']") + &row("A02", tests);
    let acceptance = rows(&text).unwrap();
    let page = acceptance.page(&run);
    assert!(page.contains("\n2 rows: 1 pass, 0 fail, 1 not yet.\n\n## A: boots\n"), "{page}");
    assert!(page.contains("\n| A01 | a\\|b | pass | `dhcp/good` |  |\n"), "{page}");
    assert!(
        page.ends_with("\n| A02 | a\\|b | not yet | `dhcp/good`, `dhcp/other` |  |\n"),
        "{page}"
    );
    assert_eq!(acceptance.absent(&run), [("A02", "dhcp/other")]);
}

#[test]
fn rows_of_another_form_are_refused() {
    let twice = row("A01", "").repeat(2);
    for text in [&twice, &row("A01", "test = 'dhcp/good'"), &row("A01", "missing = 'relays'")] {
        assert!(rows(text).is_err(), "{text}");
    }
}

#[test]
fn the_rows_of_this_repository_can_be_read() {
    let acceptance = Acceptance::read(include_str!("../../rows.toml")).unwrap();
    for section in &acceptance.sections {
        let ids: Vec<&str> = section.rows.iter().map(|row| &*row.id).collect();
        let letter = &section.title[..1];
        assert!(ids.is_sorted() && ids.iter().all(|id| id.starts_with(letter)), "{ids:?}");
    }
}

#[test]
fn the_page_is_the_table_of_a_run_in_which_every_test_passes() {
    let acceptance = Acceptance::read(include_str!("../../rows.toml")).unwrap();
    let named = acceptance.rows().flat_map(|row| &row.tests);
    let cases: Vec<_> = named.map(|test| (test.as_str(), Verdict::Passed)).collect();
    let page = acceptance.page(&run(&cases));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write("../../docs/acceptance.md", &page).unwrap();
    }
    let committed = std::fs::read_to_string("../../docs/acceptance.md").unwrap();
    assert!(committed == page, "UPDATE=1 cargo test --package report makes the page anew");
}
