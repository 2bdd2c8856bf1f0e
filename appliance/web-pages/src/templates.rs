//! Pages of the Templates.

use askama::Template;
use status::view::{MachineState, StatusView};
use template_editor::{CheckedTemplate, LibraryEntry, StoredTemplate, TemplateSummary};

use crate::html::{rendered, template_link};
use crate::rights::{Permission, Visitor};
use crate::shell::with_rail;

/// Entry of the navigation, and its path.
const HERE: &str = "/templates";

#[derive(Template)]
#[template(path = "templates.html")]
struct List<'a> {
    csrf: &'a str,
    /// True for a visitor who may change Templates.
    edits: bool,
    rows: Vec<Row<'a>>,
    page: &'a ListPage<'a>,
}

struct Row<'a> {
    link: String,
    template: &'a TemplateSummary,
}

/// Content of the page with all Templates.
pub struct ListPage<'a> {
    /// Templates of the box.
    pub templates: &'a [TemplateSummary],
    /// Templates of the library that the box does not have.
    pub library: &'a [LibraryEntry],
    /// Typed name of a new Template.
    pub name: &'a str,
    /// Typed text of a new Template.
    pub text: &'a str,
    /// Reason why the last request was refused; may be empty.
    pub error: &'a str,
}

/// Renders the page with all Templates.
pub fn list<'a>(view: &StatusView, who: &Visitor, page: &'a ListPage<'a>) -> String {
    let row = |template: &'a TemplateSummary| Row { link: template_link(&template.name), template };
    let rows = page.templates.iter().map(row).collect();
    let body =
        rendered(&List { csrf: &who.csrf, edits: who.may(Permission::EditTemplates), rows, page });
    with_rail(view, who, ("Templates", HERE), &body)
}

#[derive(Template)]
#[template(path = "template.html")]
struct Text<'a> {
    csrf: &'a str,
    /// True for a visitor who may change Templates.
    edits: bool,
    link: String,
    machines: Vec<&'a str>,
    lines: usize,
    page: &'a TextPage<'a>,
}

/// Content of the page of one Template.
pub struct TextPage<'a> {
    /// Template with the text as the person typed it.
    pub template: &'a StoredTemplate,
    /// Result of the check of the text.
    pub checked: &'a CheckedTemplate,
    /// Machine for which the text was rendered; may be empty.
    pub machine: &'a str,
    /// Rendered text; may be empty.
    pub rendering: &'a str,
    /// Reason why the last request was refused; may be empty.
    pub error: &'a str,
    /// True after a change was stored.
    pub saved: bool,
}

/// Least and greatest number of lines of the text field.
const LINES: (usize, usize) = (12, 40);

/// Renders the page of one Template.
pub fn text(view: &StatusView, who: &Visitor, page: &TextPage<'_>) -> String {
    let known = view.machines.iter().filter(|it| it.state != MachineState::New);
    let machines = known.map(|it| it.name.as_str()).collect();
    let link = template_link(&page.template.name);
    let edits = who.may(Permission::EditTemplates);
    let lines = page.template.text.lines().count().clamp(LINES.0, LINES.1);
    let body = rendered(&Text { csrf: &who.csrf, edits, link, machines, lines, page });
    with_rail(view, who, (&page.template.name, HERE), &body)
}
