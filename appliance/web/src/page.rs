//! Pages and their parts. The live stream replaces single parts of an open page.

mod box_forms;
pub(crate) mod machine_forms;
mod parts;
pub(crate) mod search;
pub(crate) mod several;
pub(crate) mod templates;
pub(crate) mod tokens;
pub(crate) mod users;

use askama::Template;
use status::log::LogLine;
use status::view::problem::safe_mode_trouble;
use status::view::work::WorkDetails;
use status::view::{Power, StatusView, health};

use crate::design;
use crate::rights::{Permission, Visitor};

pub use parts::{connect, link, template_link};

/// Page of the web interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// Overview: health of the box and work in progress.
    Now,
    /// List of machines with their state.
    Machines,
    /// History of one machine, by its name.
    Machine(String),
    /// Serial console of one machine, by its name.
    Console(String),
    /// List of workflows with their state.
    Workflows,
    /// Actions of one workflow, by its name.
    Workflow(String),
    /// Interfaces, DHCP modes and DHCP clients.
    Network,
    /// Cache of downloaded images.
    Images,
    /// Commands for Cluster API, management clusters and their machines.
    ClusterApi,
    /// Health, versions and log of the box.
    Box,
    /// Start page of the manual.
    Help,
    /// A page of the manual.
    Manual(&'static help::Page),
}

/// Data of a page that is not in the status view.
#[derive(Debug, Clone, Default)]
pub struct More {
    /// Latest log lines of the page's machine, oldest first.
    pub log: Vec<LogLine>,
    /// Workflow of the page; `None` if it does not exist.
    pub work: Option<WorkDetails>,
}

/// Navigation entries: path, label, and true for an entry that a phone shows at the bottom.
const RAIL: [(&str, &str, bool); 9] = [
    ("/", "Now", false),
    ("/machines", "Machines", false),
    ("/workflows", "Workflows", true),
    ("/templates", "Templates", true),
    ("/network", "Network", false),
    ("/images", "Images", true),
    ("/cluster-api", "Cluster API", true),
    ("/box", "Box", false),
    ("/help", "Help", true),
];

/// End of the path of a machine's console.
const CONSOLE: &str = "/console";

/// Part of a page that the live stream can replace.
pub struct Part {
    /// Id of the HTML element.
    pub id: &'static str,
    /// Heading above the part; may be empty.
    pub heading: &'static str,
    /// Content of the element.
    pub html: String,
}

#[derive(Template)]
#[template(path = "shell.html")]
struct Shell<'a> {
    title: &'a str,
    name: &'a str,
    version: &'a str,
    health: String,
    here: &'a str,
    rail: &'a [(&'static str, &'static str, bool)],
    refresh: bool,
    /// True for a page with the navigation.
    nav: bool,
    /// True for a page whose parts the live stream replaces.
    live: bool,
    who: Option<&'a Visitor>,
    themes: &'a [(&'static str, &'static str)],
    /// Warning shown on every page; may be empty.
    notice: &'a str,
    body: &'a str,
}

#[derive(Template)]
#[template(path = "claim.html")]
struct Claim<'a> {
    /// True if a screen shows pin and code; false for a process, whose log has the pin.
    has_screen: bool,
    pin: &'a str,
    code: &'a str,
    error: &'a str,
    host: &'a str,
}

#[derive(Template)]
#[template(path = "console.html")]
struct Console<'a> {
    name: &'a str,
    /// Path of the machine's page.
    machine: &'a str,
}

#[derive(Template)]
#[template(path = "login.html")]
struct Login<'a> {
    pin: &'a str,
    name: &'a str,
    error: &'a str,
}

impl Page {
    /// Returns the page at a path; `None` for an unknown path.
    pub fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/" => Page::Now,
            "/machines" => Page::Machines,
            "/workflows" => Page::Workflows,
            "/network" => Page::Network,
            "/images" => Page::Images,
            "/cluster-api" => Page::ClusterApi,
            "/box" => Page::Box,
            "/help" => Page::Help,
            _ => match path.strip_prefix("/help/") {
                Some(name) => Page::Manual(help::page(name)?),
                None if path.starts_with("/workflows/") => {
                    Page::Workflow(parts::unlink_workflow(path)?)
                }
                None => match path.strip_suffix(CONSOLE).and_then(parts::unlink) {
                    Some(name) => Page::Console(name),
                    None => Page::Machine(parts::unlink(path)?),
                },
            },
        })
    }

    fn title(&self) -> &str {
        match self {
            Page::Now => "Now",
            Page::Machines | Page::Machine(_) | Page::Console(_) => "Machines",
            Page::Workflows | Page::Workflow(_) => "Workflows",
            Page::Network => "Network",
            Page::Images => "Images",
            Page::ClusterApi => "Cluster API",
            Page::Box => "Box",
            Page::Help | Page::Manual(_) => "Help",
        }
    }

    /// Returns the parts of this page that can change, beginning with the health of the box.
    /// The parts have the buttons that the visitor may use.
    pub fn parts(&self, view: &StatusView, more: &More, who: &Visitor) -> Vec<Part> {
        let mut all = vec![part("health", "", badge(view))];
        all.extend(match self {
            Page::Now => parts::now(view, who),
            Page::Machines => vec![part("machines", "", parts::machines(view))],
            Page::Machine(name) => parts::machine(view, name, more, who),
            Page::Workflow(name) => parts::workflow(view, name, more, who),
            Page::Workflows => vec![part("workflows", "", parts::workflows(view))],
            Page::Network => parts::network(view, who),
            Page::Images => vec![part("images", "", parts::images(view, who))],
            Page::ClusterApi => parts::cluster_api(view),
            Page::Box => parts::the_box(view, who),
            Page::Console(_) | Page::Help | Page::Manual(_) => vec![],
        });
        all
    }

    /// Returns the whole page for a visitor.
    pub fn html(&self, view: &StatusView, who: &Visitor) -> String {
        self.html_with(view, &More::default(), who, "")
    }

    /// Returns the page as [`Self::html`], with further data, and with `start` between the heading
    /// and the live parts.
    pub fn html_with(&self, view: &StatusView, more: &More, who: &Visitor, start: &str) -> String {
        let here = RAIL.iter().find(|(_, word, _)| *word == self.title()).map_or("/", |it| it.0);
        let mut body = match self {
            Page::Now => String::new(),
            Page::Help => parts::help(),
            Page::Manual(page) => page.html.to_owned(),
            Page::Machine(name) => head(view, name),
            Page::Workflow(name) => format!("<h1>{}</h1>", parts::escaped(name)),
            Page::Console(name) => rendered(&Console { name, machine: &link(name) }),
            _ => format!("<h1>{}</h1>", self.title()),
        };
        body.push_str(start);
        let now = *self == Page::Now;
        for Part { id, heading, html } in self.parts(view, more, who).iter().skip(1) {
            body.push_str(column(now, id));
            if !heading.is_empty() {
                body.push_str(&format!("<h2>{heading}</h2>\n"));
            }
            // Only this part is announced by screen readers when it changes; announcements of all
            // parts would never end.
            let polite = if *id == "headline" { " aria-live=\"polite\"" } else { "" };
            body.push_str(&format!("<div id=\"{id}\"{polite}>{html}</div>\n"));
        }
        body.push_str(if now { "</div></div>\n" } else { "" });
        // Not among the live parts: typed text must stay.
        if *self == Page::Box {
            body.push_str(&box_forms::forms(view, who));
        }
        let shell = Shell {
            title: match self {
                Page::Machine(name) | Page::Console(name) | Page::Workflow(name) => name,
                _ => self.title(),
            },
            name: &view.name,
            version: &view.version,
            health: badge(view),
            here,
            rail: &RAIL,
            refresh: *self == Page::Now,
            nav: true,
            live: true,
            who: Some(who),
            themes: &design::THEMES,
            notice: &notice(view),
            body: &body,
        };
        rendered(&shell)
    }
}

/// Returns the tags that begin a column of the overview before the part `id`; empty for other pages
/// and parts.
fn column(is_overview: bool, id: &str) -> &'static str {
    match id {
        "needs" if is_overview => "<div class=\"columns\"><div>\n",
        "rack" if is_overview => "</div><div>\n",
        _ => "",
    }
}

/// Renders the link from the networks to the form with their modes and pools.
pub(crate) fn setup_link() -> String {
    "<p><a href=\"/setup/network\">Change modes and pools</a></p>\n".to_owned()
}

/// Returns the heading of a machine. Without power control, the machine has no console.
fn head(view: &StatusView, name: &str) -> String {
    let mut machines = view.machines.iter().filter(|it| it.name.as_str() == name);
    let has_console = machines.any(|it| it.power != Power::Unknown);
    let console = format!("<p><a href=\"{}{CONSOLE}\">Serial console</a></p>", link(name));
    let console = if has_console { console.as_str() } else { "" };
    format!("<h1>{}</h1>{console}", parts::escaped(name))
}

/// Renders the page to claim the box. `code` fills the input of the code; it may be empty.
pub fn claim(
    view: &StatusView,
    has_screen: bool,
    (code, host): (&str, &str),
    error: &str,
) -> String {
    let body = rendered(&Claim { has_screen, pin: &view.pin, code, error, host });
    alone("Claim", view, &body)
}

/// Renders the login page. `name` is the typed user name; it may be empty.
pub fn login(view: &StatusView, name: &str, error: &str) -> String {
    alone("Log in", view, &rendered(&Login { pin: &view.pin, name, error }))
}

/// Renders the response to a request without the permission.
pub(crate) fn refused(view: &StatusView, who: &Visitor, permission: Permission) -> String {
    let text = parts::escaped(&who.refusal(permission));
    let body = format!("<h1>Not allowed</h1><p class=\"error\">{text}</p>");
    with_rail(view, who, ("Not allowed", ""), &body)
}

/// Renders a page with a sentence and a link to the overview.
pub fn sentence(view: &StatusView, title: &str, text: &str) -> String {
    let text = parts::escaped(text);
    let body = format!("<h1>{title}</h1><p>{text}</p><p><a href=\"/\">Now</a></p>");
    alone(title, view, &body)
}

/// Renders a page with the navigation and without live parts. `here` is the path of its entry.
fn with_rail(view: &StatusView, who: &Visitor, (title, here): (&str, &str), body: &str) -> String {
    rendered(&Shell {
        title,
        name: &view.name,
        version: &view.version,
        health: badge(view),
        here,
        rail: &RAIL,
        refresh: false,
        nav: true,
        live: false,
        who: Some(who),
        themes: &design::THEMES,
        notice: &notice(view),
        body,
    })
}

/// Renders a page without the navigation.
pub(crate) fn alone(title: &str, view: &StatusView, body: &str) -> String {
    rendered(&Shell {
        title,
        name: &view.name,
        // The version is shown only within a session.
        version: "",
        health: String::new(),
        here: "",
        rail: &[],
        refresh: false,
        nav: false,
        live: false,
        who: None,
        themes: &[],
        notice: &notice(view),
        body,
    })
}

/// Returns the warning about safe mode, else an empty text. The live stream need not update the
/// warning, because safe mode lasts until a restart.
fn notice(view: &StatusView) -> String {
    if view.safe_mode.is_empty() { String::new() } else { safe_mode_trouble(view).sentence() }
}

fn badge(view: &StatusView) -> String {
    let (word, shape) = health::health(view);
    parts::badge(word.text, word.tone, shape)
}

fn part(id: &'static str, heading: &'static str, html: String) -> Part {
    Part { id, heading, html }
}

/// Renders a template. Writing to a `String` cannot fail.
pub(crate) fn rendered(template: &impl Template) -> String {
    template.render().unwrap_or_default()
}

#[cfg(test)]
mod tests;
