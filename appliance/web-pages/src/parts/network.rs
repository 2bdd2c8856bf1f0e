//! Networks and their DHCP clients.

use status::plain;
use status::view::{Nic, StatusView};

use super::{Events, Facts, Line, Part, part, rendered, serve_again};
use crate::rights::Visitor;

pub fn network(view: &StatusView, who: &Visitor) -> Vec<Part> {
    vec![part("network", "", cards(view, who)), part("clients", "DHCP clients", clients(view))]
}

fn clients(view: &StatusView) -> String {
    let line = |it: &status::dhcp_client::DhcpClient| Line {
        at: it.asked,
        time: view.time_of_day(it.asked),
        subject: "",
        sentence: match it.hardware.as_str() {
            "" => format!("{}: {}", it.mac, plain(&it.decision)),
            hardware => format!("{} ({}): {}", plain(hardware), it.mac, plain(&it.decision)),
        },
        warning: false,
    };
    let lines = view.heard.iter().map(line).collect();
    rendered(&Events { lines, none: "None in the last hour." })
}

fn cards(view: &StatusView, who: &Visitor) -> String {
    let cards: String = view.nics.iter().map(|nic| nic_card(view, nic)).collect();
    if cards.is_empty() {
        return "<p class=\"card\">This box sees no network interface.</p>".to_owned();
    }
    let is_stopped = view.nics.iter().any(Nic::stopped);
    let again = if is_stopped { serve_again(who) } else { String::new() };
    format!("{again}<div class=\"grid\">{cards}</div>")
}

fn nic_card(view: &StatusView, nic: &Nic) -> String {
    let serves = match nic.armed_since {
        _ if !nic.held.is_empty() => nic.held.to_string(),
        _ if !nic.provisions() => "nothing is answered here".to_owned(),
        Some(since) if nic.armed() => format!("{}, for {}", nic.mode, view.since(since)),
        _ => nic.mode.to_string(),
    };
    let mut facts = vec![
        ("Role", nic.role.word().to_owned()),
        ("Address", if nic.address.is_empty() { "none".into() } else { nic.address.to_string() }),
        ("Link", nic.link()),
        ("DHCP", serves),
    ];
    facts.extend(nic.mac.map(|mac| ("MAC", mac.to_string())));
    facts.extend(nic.probed.map(|at| ("Last probe", view.ago(at))));
    if nic.leased + nic.free > 0 {
        facts.push(("Given away", format!("{} of {}", nic.leased, nic.leased + nic.free)));
    }
    for foreign in &nic.foreign {
        facts.push(("Other server", format!("{} ({})", foreign.address, foreign.mac)));
    }
    rendered(&Facts { title: &nic.name, facts })
}
