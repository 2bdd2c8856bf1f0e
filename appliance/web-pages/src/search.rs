//! Results of a search.

use askama::Template;
use status::view::StatusView;
use template_editor::TemplateSummary;

use crate::html::{link, rendered, template_link, workflow_link};
use crate::rights::Visitor;
use crate::shell::with_rail;

/// Maximum number of results of one kind.
const RESULTS_MAX: usize = 50;

#[derive(Template)]
#[template(path = "search.html")]
struct Results<'a> {
    text: &'a str,
    kinds: &'a [(&'static str, Vec<SearchItem>)],
    none: bool,
}

/// One result of a search.
pub struct SearchItem {
    /// Name of the object.
    pub name: String,
    /// Path of its page.
    pub link: String,
    /// State or place of the object.
    pub detail: String,
}

/// Results of a search, by kind.
pub struct SearchResults {
    kinds: Vec<(&'static str, Vec<SearchItem>)>,
}

impl SearchResults {
    /// Finds the objects with `text` in one of their fields, ignoring case; none for an empty text.
    pub fn of(view: &StatusView, templates: &[TemplateSummary], text: &str) -> Self {
        let wanted = text.to_lowercase();
        let matches = |fields: &[&str]| {
            !wanted.is_empty() && fields.iter().any(|it| it.to_lowercase().contains(&wanted))
        };
        let machines = view.machines.iter().filter(|it| {
            let mac = it.mac.map(|mac| mac.to_string()).unwrap_or_default();
            matches(&[&it.name, &mac, &it.ip, &it.model, it.state.word().text])
        });
        let machines = machines.map(|it| SearchItem {
            name: it.name.to_string(),
            link: link(&it.name),
            detail: format!("{} · {}", it.status(), it.model),
        });
        let workflows =
            view.workflows.iter().filter(|it| matches(&[&it.name, &it.machine, &it.template]));
        let workflows = workflows.map(|it| SearchItem {
            name: it.name.to_string(),
            link: workflow_link(&it.name),
            detail: format!("{} on {}", it.template, it.machine),
        });
        let templates = templates.iter().filter(|it| matches(&[&it.name]));
        let templates = templates.map(|it| SearchItem {
            name: it.name.clone(),
            link: template_link(&it.name),
            detail: String::new(),
        });
        let mut kinds: Vec<(&'static str, Vec<SearchItem>)> = vec![
            ("Machines", machines.take(RESULTS_MAX).collect()),
            ("Workflows", workflows.take(RESULTS_MAX).collect()),
            ("Templates", templates.take(RESULTS_MAX).collect()),
        ];
        kinds.retain(|(_, items)| !items.is_empty());
        Self { kinds }
    }

    /// Returns the path of the object called `text`, else of the only result; `None` for none or
    /// several.
    pub fn only(&self, text: &str) -> Option<&str> {
        let mut all = self.kinds.iter().flat_map(|(_, items)| items);
        if let Some(named) = all.find(|it| it.name.eq_ignore_ascii_case(text)) {
            return Some(&named.link);
        }
        match self.kinds.as_slice() {
            [(_, items)] if items.len() == 1 => Some(&items[0].link),
            _ => None,
        }
    }
}

/// Renders the page with the results for `text`.
pub fn results(view: &StatusView, who: &Visitor, text: &str, found: &SearchResults) -> String {
    let body = rendered(&Results { text, kinds: &found.kinds, none: found.kinds.is_empty() });
    with_rail(view, who, ("Search", ""), &body)
}
