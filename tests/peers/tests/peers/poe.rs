//! Our driver of ports with Power over Ethernet, against net-snmp's agent, and checked with its
//! clients.

mod datagrams;
mod driver;
mod faults;
mod logins;
mod ports;

use std::sync::Arc;

use peers::PoeSwitch;
use poe::{Authentication, ExpectedName, Line, Login, Options, PortId, Switch, User};
use poe_sim::{PoePorts, Port};
use stdx::Secret;

/// `pethPsePortAdminEnable` of the port of most tests.
const ADMIN: &str = "1.3.6.1.2.1.105.1.1.1.3.1.3";
/// `pethPsePortDetectionStatus` of this port.
const DETECTION: &str = "1.3.6.1.2.1.105.1.1.1.6.1.3";

/// Starts a switch with four ports in group 1, all with a device and switched off.
fn start() -> PoeSwitch {
    PoeSwitch::start((1..=4).map(|number| Port::with_device(1, number)).collect()).unwrap()
}

fn user(name: &str, authentication: Authentication) -> User {
    User {
        name: name.to_owned(),
        authentication,
        password: PoePorts::PASSWORD.into(),
        privacy_password: PoePorts::PRIVACY.into(),
    }
}

fn right_user() -> Login {
    Login::User(user(PoePorts::USER, Authentication::Sha256))
}

fn community(text: &str) -> Login {
    Login::Community(Secret::from(text))
}

fn options(host: &str, udp_port: u16, login: Login) -> Options {
    let (group, index) = PoePorts::PORT;
    let (host, port) = (host.to_owned(), PortId { group, index });
    Options { host, udp_port, login, port, name: None }
}

fn switch(peer: &PoeSwitch, login: Login) -> Switch {
    let options = options(&peer.address().to_string(), Switch::PORT, login);
    Switch::new(Arc::new(Line::default()), options).unwrap()
}

fn named(peer: &PoeSwitch, text: &str, interface: u32) -> Switch {
    let mut options = options(&peer.address().to_string(), Switch::PORT, right_user());
    options.name = Some(ExpectedName { text: text.to_owned(), interface });
    Switch::new(Arc::new(Line::default()), options).unwrap()
}
