//! Workflows with their current step, and the reason of a workflow that does not proceed.

use askama::Template;
use status::view::{StatusView, Work};
use status::words;

use super::{design, link, rendered, workflow_link};

#[derive(Template)]
#[template(path = "workflows.html")]
struct Workflows<'a> {
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    work: &'a Work,
    tone: &'static str,
    shape: &'static str,
    word: &'a str,
    link: String,
    page: String,
    step: String,
    since: String,
    trouble: String,
}

/// Renders the table of all workflows.
pub fn workflows(view: &StatusView) -> String {
    rendered(&Workflows { rows: view.workflows.iter().map(|work| row(view, work)).collect() })
}

fn row<'a>(view: &StatusView, work: &'a Work) -> Row<'a> {
    let (word, tone, shape) = words::work(work.state, work.held, work.canceled, &work.queued);
    let mut step = Vec::new();
    step.extend((!work.step.is_empty()).then(|| work.step.to_string()));
    step.extend((work.actions > 0).then(|| format!("{} of {} done", work.done, work.actions)));
    let again = work.attempts_max > 1;
    step.extend(again.then(|| format!("try {} of {}", work.attempt, work.attempts_max)));
    Row {
        work,
        tone: design::tone(tone),
        shape: design::shape(shape),
        word,
        link: link(&work.machine),
        page: workflow_link(&work.name),
        step: step.join(" · "),
        since: work.since.map(|at| view.ago(at)).unwrap_or_default(),
        trouble: work.trouble.as_ref().map(|it| it.sentence()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use api::tinkerbell::State;
    use status::view::{StatusView, Work};

    #[test]
    fn a_queued_workflow_does_not_boot_its_machine() {
        let queued = "queued behind wf-1".into();
        let work = Work { name: "wf-2".into(), state: State::Preparing, queued, ..Work::default() };
        let view = StatusView { workflows: vec![work], ..StatusView::default() };
        let page = super::workflows(&view);
        assert!(page.contains("</svg>queued behind wf-1<"), "{page}");
        assert!(!page.contains("booting its machine"), "{page}");
    }
}
