//! Tabs of a machine: history, hardware, log, console, BMC and YAML.

use askama::Template;
use printers::table::Table;
use status::view::{Machine, MachineState, Power};

use crate::html::{MACHINES, last_segment, link, rendered, workflow_link};
use crate::rights::{Permission, Visitor};

/// Tab of the page of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tab {
    /// State, actions and events of the machine.
    History,
    /// Parts of the machine, as its agent reported them.
    Hardware,
    /// Messages of the machine, received by syslog.
    Log,
    /// Output of the serial console.
    Console,
    /// Sensors, event log and inventory, as the BMC reports them.
    Bmc,
    /// Hardware object of the machine.
    Yaml,
}

/// All tabs, in their order on the page.
pub const TABS: [Tab; 6] =
    [Tab::History, Tab::Hardware, Tab::Log, Tab::Console, Tab::Bmc, Tab::Yaml];

impl Tab {
    /// Returns the last segment of the path; empty for the first tab.
    pub const fn word(self) -> &'static str {
        match self {
            Tab::History => "",
            Tab::Hardware => "hardware",
            Tab::Log => "log",
            Tab::Console => "console",
            Tab::Bmc => "bmc",
            Tab::Yaml => "yaml",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Tab::History => "History",
            Tab::Hardware => "Hardware",
            Tab::Log => "Log",
            Tab::Console => "Console",
            Tab::Bmc => "BMC",
            Tab::Yaml => "YAML",
        }
    }

    /// Returns the permission that a visitor of the tab needs.
    pub const fn permission(self) -> Permission {
        match self {
            Tab::History => Permission::See,
            Tab::Log => Permission::ReadLog,
            Tab::Console => Permission::ReadConsole,
            Tab::Hardware | Tab::Yaml => Permission::ReadHardware,
            Tab::Bmc => Permission::ReadBmc,
        }
    }

    /// Returns true if a machine has content for the tab. A machine without Hardware has only
    /// events and a log.
    fn has_content(self, machine: &Machine) -> bool {
        match self {
            Tab::History | Tab::Log => true,
            Tab::Hardware | Tab::Yaml => machine.state != MachineState::New,
            Tab::Console => machine.power != Power::Unknown,
            Tab::Bmc => machine.has_bmc,
        }
    }

    fn path(self, machine: &str) -> String {
        match self.word() {
            "" => link(machine),
            word => format!("{}/{word}", link(machine)),
        }
    }
}

/// Returns name and tab of the machine at a path; `None` for another path.
pub fn at(path: &str) -> Option<(String, Tab)> {
    let rest = path.strip_prefix(MACHINES)?;
    match rest.split_once('/') {
        None => Some((last_segment(rest)?, Tab::History)),
        Some((name, word)) => {
            let tab = TABS.into_iter().skip(1).find(|tab| tab.word() == word)?;
            Some((last_segment(name)?, tab))
        }
    }
}

/// Content of a tab below a heading.
#[derive(Debug, Clone)]
pub struct Section {
    /// Heading of the section; may be empty.
    pub heading: &'static str,
    /// Content below the heading.
    pub content: SectionContent,
}

/// Form of the content of a [`Section`].
#[derive(Debug, Clone)]
pub enum SectionContent {
    /// Table whose columns have headings.
    Table(Table),
    /// Text whose lines keep their breaks and are scrolled if they are too long.
    Text(String),
    /// Reason why there is nothing to show, as a sentence.
    Nothing(String),
    /// Reason why the content cannot be read, as a sentence.
    Failed(String),
}

struct TabLink {
    path: String,
    label: &'static str,
    is_here: bool,
}

#[derive(Template)]
#[template(path = "machine-tabs.html")]
struct Links {
    tabs: Vec<TabLink>,
}

#[derive(Template)]
#[template(path = "machine-section.html")]
struct SectionPage<'a> {
    heading: &'a str,
    headings: &'a [&'static str],
    /// Cells of each row, with their headings.
    rows: Vec<Vec<(&'a str, &'a str)>>,
    text: &'a str,
    nothing: &'a str,
    error: &'a str,
}

#[derive(Template)]
#[template(path = "identify.html")]
struct Identify<'a> {
    /// Path to which the form is sent.
    action: &'a str,
    csrf: &'a str,
}

#[derive(Template)]
#[template(path = "console.html")]
struct Console<'a> {
    name: &'a str,
    /// Path of the machine's page.
    machine: &'a str,
}

/// Renders the links to the tabs that a machine has and the visitor may see.
pub fn links(machine: &Machine, tab: Tab, who: &Visitor) -> String {
    let shown = TABS.into_iter().filter(|it| it.has_content(machine) && who.may(it.permission()));
    let link =
        |it: Tab| TabLink { path: it.path(&machine.name), label: it.label(), is_here: it == tab };
    let mut tabs: Vec<TabLink> = shown.map(link).collect();
    if !machine.workflow.is_empty() {
        let path = workflow_link(&machine.workflow);
        tabs.insert(tabs.len().min(1), TabLink { path, label: "Workflow", is_here: false });
    }
    rendered(&Links { tabs })
}

/// Renders the content of a tab that no event changes; empty for tabs whose content is live.
pub fn content(name: &str, tab: Tab, sections: &[Section], who: &Visitor) -> String {
    if tab == Tab::Console {
        return rendered(&Console { name, machine: &link(name) });
    }
    let mut html = String::new();
    if tab == Tab::Bmc && who.may(Permission::IdentifyMachine) {
        let action = format!("{}/identify", link(name));
        html.push_str(&rendered(&Identify { action: &action, csrf: &who.csrf }));
    }
    html.extend(sections.iter().map(section));
    html
}

fn section<'a>(section: &'a Section) -> String {
    let mut page = SectionPage {
        heading: section.heading,
        headings: &[],
        rows: Vec::new(),
        text: "",
        nothing: "",
        error: "",
    };
    match &section.content {
        SectionContent::Table(table) => {
            page.headings = table.headings();
            let named = |row: Vec<&'a str>| table.headings().iter().copied().zip(row).collect();
            page.rows = table.rows().map(named).collect();
        }
        SectionContent::Text(text) => page.text = text,
        SectionContent::Nothing(why) => page.nothing = why,
        SectionContent::Failed(why) => page.error = why,
    }
    rendered(&page)
}

#[cfg(test)]
mod tests {
    use box_owner::users::Role;
    use status::view::{Machine, MachineState, Power};

    use super::{TABS, Tab, at};
    use crate::rights::tests::visitor;
    use crate::rights::{Rights, Visitor};

    #[test]
    fn each_tab_has_its_own_path() {
        for tab in TABS {
            let path = tab.path("nuc a/1");
            let expected = if tab == Tab::History { "/machines/nuc%20a%2F1" } else { &path };
            assert_eq!(path, expected);
            assert_eq!(at(&tab.path("nuc a")), Some(("nuc a".to_owned(), tab)));
        }
        let page = crate::Page::at("/machines/nuc/yaml").unwrap();
        assert_eq!(page.permission(), crate::rights::Permission::ReadHardware);
        for path in ["/machines/", "/machines/nuc/", "/machines/nuc/none", "/machines/a/log/b", "/"]
        {
            assert_eq!(at(path), None, "{path}");
        }
    }

    fn labels(machine: Machine, who: &Visitor) -> Vec<String> {
        let html = super::links(&machine, Tab::History, who);
        let links = html.split("</a>").filter(|it| it.contains("<a "));
        links.filter_map(|it| it.rsplit('>').next()).map(str::to_owned).collect()
    }

    #[test]
    fn a_machine_has_the_tabs_with_content_that_the_visitor_may_see() {
        let viewer = visitor(Role::Viewer);
        let new = Machine { name: "nuc".into(), ..Machine::default() };
        assert_eq!(labels(new.clone(), &viewer), ["History", "Log"]);
        let known = Machine { state: MachineState::Ready, ..new };
        assert_eq!(labels(known.clone(), &viewer), ["History", "Hardware", "Log", "YAML"]);
        let (power, workflow) = (Power::On, "install".into());
        let full = Machine { power, workflow, has_bmc: true, ..known };
        let all = ["History", "Workflow", "Hardware", "Log", "Console", "BMC", "YAML"];
        assert_eq!(labels(full.clone(), &viewer), all);
        let mut nothing = viewer;
        nothing.rights = Rights::of(|_| false);
        assert_eq!(labels(full, &nothing), Vec::<String>::new());
    }
}
