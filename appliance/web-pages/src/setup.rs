//! Pages of the first setup as HTML.

pub mod settings;

use askama::Template;
use status::view::{Role, StatusView};

use crate::html::rendered;
use crate::shell::alone;

/// Maximum number of NICs on the page; further NICs keep their settings.
pub const NICS_MAX: usize = 16;
/// Roles of a NIC in the order of the form, each with its description.
const ROLES: [(Role, &str); 4] = [
    (Role::Management, "people reach the box here"),
    (Role::Provisioning, "a network for machines only"),
    (Role::Both, "people and machines, beside another DHCP server"),
    (Role::Unused, "not used"),
];
/// DHCP modes in the order of the form, each with its description.
const MODES: [(&str, &str); 4] = [
    ("off", "no machine"),
    ("proxy", "known machines, with boot information; another server gives the addresses"),
    ("reserved", "known machines, with boot information and their addresses"),
    ("pool", "all machines, with addresses from a pool"),
];

/// NIC with its settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NicSetup {
    /// Name of the interface: `eth1`.
    pub name: String,
    /// MAC address of the NIC.
    pub mac: String,
    /// Link speed as text: `1 Gb/s`, `no cable`.
    pub link: String,
    /// Current address of the NIC; may be empty.
    pub address: String,
    /// True if the default route uses this NIC.
    pub default_route: bool,
    /// Role of the NIC.
    pub role: Role,
    /// DHCP mode, as in `box.toml`: `off`, `proxy`, `reserved`, `pool`.
    pub mode: String,
    /// Static address of the box on a network for machines only: `10.99.0.1/24`.
    pub own: String,
    /// Address range of the DHCP pool: `first-last`; may be empty.
    pub pool: String,
    /// Last four digits of the MAC address, typed as confirmation (NW-4).
    pub confirm: String,
}

/// Time zone, and the hours in which updates may restart the box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdateTimes {
    /// Name of the time zone: `Europe/Berlin`; empty for UTC.
    pub zone: String,
    /// Begin of the hours, `02:00`; empty for all day.
    pub from: String,
    /// End of the hours (exclusive), `05:00`; empty for all day.
    pub to: String,
    /// True if each restart for an update needs a request of a person.
    pub ask: bool,
}

/// Option of a selection list.
struct Choice {
    word: &'static str,
    meaning: &'static str,
    chosen: bool,
}

/// NIC in the form.
struct Row<'a> {
    nic: &'a NicSetup,
    roles: Vec<Choice>,
    modes: Vec<Choice>,
}

#[derive(Template)]
#[template(path = "setup-network.html")]
struct NicsPage<'a> {
    rows: Vec<Row<'a>>,
    csrf: &'a str,
    error: &'a str,
}

#[derive(Template)]
#[template(path = "setup-time.html")]
struct TimesPage<'a> {
    times: &'a UpdateTimes,
    zones: &'a [&'static str],
    csrf: &'a str,
    error: &'a str,
}

#[derive(Template)]
#[template(path = "setup-done.html")]
struct DonePage<'a> {
    ports: String,
    restart: bool,
    csrf: &'a str,
}

fn row(nic: &NicSetup) -> Row<'_> {
    let role = |(role, meaning): (Role, &'static str)| Choice {
        word: role.word(),
        meaning,
        chosen: role == nic.role,
    };
    let mode = |(word, meaning): (&'static str, &'static str)| Choice {
        word,
        meaning,
        chosen: word == nic.mode,
    };
    Row { nic, roles: ROLES.map(role).into(), modes: MODES.map(mode).into() }
}

/// Renders the page with the role and DHCP mode of each NIC.
pub fn nics(view: &StatusView, nics: &[NicSetup], csrf: &str, error: &str) -> String {
    let rows = nics.iter().take(NICS_MAX).map(row).collect();
    alone("Networks", view, &rendered(&NicsPage { rows, csrf, error }))
}

/// Renders the page with the time zone, and the hours in which updates may restart the box.
pub fn times(
    view: &StatusView,
    (times, zones): (&UpdateTimes, &[&'static str]),
    csrf: &str,
    error: &str,
) -> String {
    alone("Time and updates", view, &rendered(&TimesPage { times, zones, csrf, error }))
}

/// Renders the page with the next steps.
pub fn done(view: &StatusView, nics: &[NicSetup], restart: bool, csrf: &str) -> String {
    let serves =
        |nic: &&NicSetup| matches!(nic.role, Role::Provisioning | Role::Both) && nic.mode != "off";
    let ports: Vec<&str> = nics.iter().filter(serves).map(|nic| nic.name.as_str()).collect();
    let ports = ports.join(" or ");
    alone("Done", view, &rendered(&DonePage { ports, restart, csrf }))
}
