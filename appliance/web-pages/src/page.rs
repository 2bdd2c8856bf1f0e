//! Pages by path, and their parts. The live stream replaces single parts of an open page.

use status::log::LogLine;
use status::view::StatusView;
use status::view::work::WorkDetails;

use crate::html::{Part, escaped, part, rendered};
use crate::machine::tabs::{self, Section, Tab};
use crate::parts::box_forms;
use crate::rights::{Permission, Visitor};
use crate::shell::{RAIL, Shell, health_badge, notice};
use crate::{design, html, parts};

/// Page of the web interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// Overview: health of the box and work in progress.
    Now,
    /// List of machines with their state.
    Machines,
    /// Tab of one machine, by its name.
    Machine(String, Tab),
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
    /// Content of a machine's tab that no event changes.
    pub sections: Vec<Section>,
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
                    Page::Workflow(html::unlink_workflow(path)?)
                }
                None => {
                    let (name, tab) = tabs::at(path)?;
                    Page::Machine(name, tab)
                }
            },
        })
    }

    /// Returns the permission that a visitor of the page needs.
    pub fn permission(&self) -> Permission {
        match self {
            Page::Machine(_, tab) => tab.permission(),
            _ => Permission::See,
        }
    }

    fn title(&self) -> &str {
        match self {
            Page::Now => "Now",
            Page::Machines | Page::Machine(..) => "Machines",
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
        let mut all = vec![part("health", "", health_badge(view))];
        all.extend(match self {
            Page::Now => parts::now(view, who),
            Page::Machines => vec![part("machines", "", parts::machines(view))],
            Page::Machine(name, tab) => parts::machine(view, (name, *tab), &more.log, who),
            Page::Workflow(name) => {
                parts::workflow(view, name, (more.work.as_ref(), &more.log), who)
            }
            Page::Workflows => vec![part("workflows", "", parts::workflows(view))],
            Page::Network => parts::network(view, who),
            Page::Images => vec![part("images", "", parts::images(view, who))],
            Page::ClusterApi => parts::cluster_api(view),
            Page::Box => parts::the_box(view, who),
            Page::Help | Page::Manual(_) => vec![],
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
            Page::Machine(name, _) | Page::Workflow(name) => format!("<h1>{}</h1>", escaped(name)),
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
        // Not among the live parts: typed text and what a person opened must stay.
        match self {
            Page::Machines => body.push_str(&parts::ignored(view, who)),
            Page::Box => body.push_str(&box_forms::forms(view, who)),
            Page::Images => body.push_str(parts::os_images::LINK),
            Page::Machine(name, tab) => {
                body.push_str(&tabs::content(name, *tab, &more.sections, who))
            }
            _ => {}
        }
        let shell = Shell {
            title: match self {
                Page::Machine(name, _) | Page::Workflow(name) => name,
                _ => self.title(),
            },
            name: &view.name,
            version: &view.version,
            health: health_badge(view),
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
pub fn setup_link() -> String {
    "<p><a href=\"/setup/network\">Change modes and pools</a></p>\n".to_owned()
}

#[cfg(test)]
mod tests;
