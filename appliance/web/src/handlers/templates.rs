//! Templates: list, library, text with its check, rendering for a machine.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde::Deserialize;
use status::view::StatusView;
use template_editor::{EditError, StoredTemplate, TEXT_BYTES_MAX, TemplateEditor, check};

use super::access::foreign;
use super::{PageResponse, Site, SiteState};
use crate::handlers::Caller;
use crate::response::{html, see};
use web_pages as page;
use web_pages::rights::Visitor;
use web_pages::template_link;
use web_pages::templates::{ListPage, TextPage, list, text};

/// Maximum size of a form in bytes: a template at its limit, in URL encoding.
const FORM_BYTES_MAX: usize = 3 * TEXT_BYTES_MAX + (8 << 10);

/// Returns the routes of this module.
pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/templates", get(show_list).post(create))
        .route("/templates/add", post(add))
        .route("/templates/{name}", get(show).post(save))
        .route("/templates/{name}/delete", post(delete))
        .route_layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
}

impl Site {
    /// Returns the editor of the box's Templates.
    pub(super) fn templates(&self) -> TemplateEditor {
        TemplateEditor::new(Arc::clone(&self.source.machine_actions().objects))
    }
}

/// Returns the status of a refused request.
fn status(error: &EditError) -> StatusCode {
    match error {
        EditError::Name(_) | EditError::TooLarge(_) | EditError::Library(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        _ => StatusCode::CONFLICT,
    }
}

fn refused(view: &StatusView, error: &EditError) -> PageResponse {
    let why = stdx::sentences(error);
    html(status(error), page::sentence(view, "Templates", &why))
}

async fn show_list(State(site): SiteState, who: Caller) -> PageResponse {
    list_page(&site, &who, &NewTemplate::default(), None).await
}

/// Fields of the form for a new Template.
#[derive(Default, Deserialize)]
struct NewTemplate {
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    text: String,
}

async fn list_page(
    site: &Site,
    who: &Visitor,
    form: &NewTemplate,
    error: Option<EditError>,
) -> PageResponse {
    let (view, editor) = (site.view().await, site.templates());
    let templates = match editor.list().await {
        Ok(templates) => templates,
        Err(error) => return refused(&view, &error),
    };
    let why = error.as_ref().map(stdx::sentences).unwrap_or_default();
    let library = editor.library(&templates);
    let (name, text, error_text) = (&form.name, &form.text, &why);
    let shown =
        ListPage { templates: &templates, library: &library, name, text, error: error_text };
    html(error.as_ref().map_or(StatusCode::OK, status), list(&view, who, &shown))
}

async fn create(
    State(site): SiteState,
    who: Caller,
    Form(form): Form<NewTemplate>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let name = form.name.trim();
    match site.templates().create(name, &form.text.replace("\r\n", "\n")).await {
        Ok(()) => see(&template_link(name)),
        Err(error) => list_page(&site, &who, &form, Some(error)).await,
    }
}

#[derive(Deserialize)]
struct AddForm {
    csrf: String,
    name: String,
}

/// Creates the Template of a library entry.
async fn add(State(site): SiteState, who: Caller, Form(form): Form<AddForm>) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    match site.templates().add(&form.name).await {
        Ok(()) => see(&template_link(&form.name)),
        Err(error) => refused(&*site.view().await, &error),
    }
}

#[derive(Deserialize)]
struct MachineQuery {
    /// Machine for which the text is rendered; empty for none.
    #[serde(default)]
    machine: String,
}

async fn show(
    State(site): SiteState,
    Path(name): Path<String>,
    Query(query): Query<MachineQuery>,
    who: Caller,
) -> PageResponse {
    let (view, editor) = (site.view().await, site.templates());
    match editor.find(&name).await {
        Ok(Some(template)) => {
            let (template, machine) = (&template, query.machine.as_str());
            let shown = TextState { who: &who, template, machine, error: None, saved: false };
            text_page(&site, &view, shown).await
        }
        Ok(None) => {
            let why = format!("No template is called {name}.");
            html(StatusCode::NOT_FOUND, page::sentence(&view, "Not found", &why))
        }
        Err(error) => refused(&view, &error),
    }
}

/// Text of a template with everything that its page shows.
struct TextState<'a> {
    who: &'a Visitor,
    template: &'a StoredTemplate,
    machine: &'a str,
    error: Option<EditError>,
    /// True after a change was stored.
    saved: bool,
}

async fn text_page(site: &Site, view: &StatusView, shown: TextState<'_>) -> PageResponse {
    let TextState { who, template, machine, mut error, saved } = shown;
    let mut rendering = String::new();
    if !machine.is_empty() && error.is_none() {
        match site.templates().render(&template.text, machine).await {
            Ok(text) => rendering = text,
            Err(why) => error = Some(why),
        }
    }
    let checked = check(&template.text);
    let why = error.as_ref().map(stdx::sentences).unwrap_or_default();
    let page = TextPage {
        template,
        checked: &checked,
        machine,
        rendering: &rendering,
        error: &why,
        saved,
    };
    html(error.as_ref().map_or(StatusCode::OK, status), text(view, who, &page))
}

#[derive(Deserialize)]
struct TextForm {
    csrf: String,
    text: String,
    revision: String,
    /// Machine for which the text is rendered; empty for none.
    #[serde(default)]
    machine: String,
    /// Present if the person wants to see the rendered text and to store nothing.
    #[serde(default)]
    preview: String,
}

/// Stores a changed text, or shows it as rendered.
async fn save(
    State(site): SiteState,
    Path(name): Path<String>,
    who: Caller,
    Form(form): Form<TextForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let view = site.view().await;
    // Browsers send line ends as CR LF.
    let text = form.text.replace("\r\n", "\n");
    let typed = StoredTemplate { name, text, revision: form.revision };
    let machine = form.machine.as_str();
    let shown = TextState { who: &who, template: &typed, machine, error: None, saved: false };
    if !form.preview.is_empty() {
        return text_page(&site, &view, shown).await;
    }
    match site.templates().save(&typed).await {
        Ok(stored) => {
            let shown = TextState { template: &stored, saved: true, ..shown };
            text_page(&site, &view, shown).await
        }
        Err(error) => text_page(&site, &view, TextState { error: Some(error), ..shown }).await,
    }
}

#[derive(Deserialize)]
struct DeleteForm {
    csrf: String,
    /// Name of the Template, typed as confirmation.
    name: String,
}

async fn delete(
    State(site): SiteState,
    Path(name): Path<String>,
    who: Caller,
    Form(form): Form<DeleteForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let view = site.view().await;
    if form.name.trim() != name {
        let why = format!("This template is called {name}. Nothing was deleted.");
        return html(StatusCode::UNPROCESSABLE_ENTITY, page::sentence(&view, "Templates", &why));
    }
    match site.templates().delete(&name).await {
        Ok(()) => see("/templates"),
        Err(error) => refused(&view, &error),
    }
}
