//! Objects of the switch: `pethPsePortTable` (RFC 3621), `ifName` and `ifAlias` (RFC 2863).

use std::collections::BTreeMap;

use crate::{Behavior, Port, State};

/// Subtree of POWER-ETHERNET-MIB, as snmpd writes names.
pub const POWER: &str = ".1.3.6.1.2.1.105";
/// Subtree of `ifXEntry`, which snmpd itself does not serve here.
pub const INTERFACES: &str = ".1.3.6.1.2.1.31.1.1.1";

/// Column of `pethPsePortAdminEnable`, the only one that can be set.
const ADMIN: u32 = 3;
/// Column of `pethPsePortDetectionStatus`, whose readings are counted.
const DETECTION: u32 = 6;

/// Type and value of an object, as `pass_persist` writes them.
type Value = (&'static str, String);

/// Returns the parts of an object identifier.
fn parts(text: &str) -> Vec<u32> {
    text.split('.').filter_map(|part| part.parse().ok()).collect()
}

/// Returns all objects by their names.
fn objects(state: &State) -> BTreeMap<Vec<u32>, Value> {
    let mut all = BTreeMap::new();
    for port in &state.ports {
        let mut add = |column: u32, kind, value: String| {
            let mut name = parts(POWER);
            name.extend([1, 1, 1, column, port.id.0, port.id.1]);
            all.insert(name, (kind, value));
        };
        add(ADMIN, "integer", if port.is_on { "1" } else { "2" }.to_owned());
        add(4, "integer", "2".to_owned());
        add(5, "integer", "1".to_owned());
        add(DETECTION, "integer", detection(state, port).to_string());
        add(7, "integer", "3".to_owned());
        add(8, "counter", "0".to_owned());
        add(9, "string", port.kind.clone());
        add(10, "integer", "4".to_owned());
        for counter in [11, 12, 14] {
            add(counter, "counter", "0".to_owned());
        }
        add(13, "counter", if port.has_fault { "1" } else { "0" }.to_owned());
        if let Some((name, alias)) = &port.interface {
            for (column, text) in [(1, name), (18, alias)] {
                let mut object = parts(INTERFACES);
                object.extend([column, port.id.1]);
                all.insert(object, ("string", text.clone()));
            }
        }
    }
    all
}

fn detection(state: &State, port: &Port) -> i32 {
    match (state.behavior.detection, state.late) {
        (Some(value), _) => value,
        (None, Some((id, left, old))) if id == port.id && left > 0 => old,
        _ => real_detection(port),
    }
}

fn real_detection(port: &Port) -> i32 {
    match port {
        Port { is_on: false, .. } => 1,
        Port { has_fault: true, .. } => 4,
        Port { has_device: true, .. } => 3,
        _ => 2,
    }
}

/// Returns the three lines of an object, or `NONE`.
fn lines(found: Option<(&Vec<u32>, &Value)>) -> String {
    let Some((name, (kind, value))) = found else { return "NONE\n".to_owned() };
    let name: String = name.iter().map(|part| format!(".{part}")).collect();
    format!("{name}\n{kind}\n{value}\n")
}

/// Answers `get` with the three lines of one object.
pub fn get(state: &mut State, name: &str) -> String {
    let name = parts(name);
    let answer = lines(objects(state).get_key_value(&name));
    if name.get(10) == Some(&DETECTION)
        && let Some((_, left, _)) = &mut state.late
    {
        *left = left.saturating_sub(1);
    }
    answer
}

/// Answers `getnext` with the next object of the same subtree.
pub fn get_next(state: &State, name: &str) -> String {
    let name = parts(name);
    let is_interface = name.starts_with(&parts(INTERFACES));
    let subtree = parts(if is_interface { INTERFACES } else { POWER });
    let all = objects(state);
    let next = all.range(name.clone()..).find(|(it, _)| **it != name && it.starts_with(&subtree));
    lines(next)
}

/// Answers `set`, and returns the changed port.
pub fn set(state: &mut State, name: &str, value: &str) -> (String, Option<Port>) {
    let answer = |text: &str| (format!("{text}\n"), None);
    let name = parts(name);
    let Some([1, 1, 1, ADMIN, group, number]) = name.strip_prefix(parts(POWER).as_slice()) else {
        return answer("not-writable");
    };
    let is_on = match value {
        "integer 1" => true,
        "integer 2" => false,
        _ => return answer("wrong-value"),
    };
    let word = if is_on { "on" } else { "off" };
    state.requests.push(format!("{group}.{number} {word}"));
    let Behavior { refusal, lies, late_readings, .. } = state.behavior.clone();
    if let Some(refusal) = refusal {
        return answer(refusal);
    }
    let Some(port) = state.ports.iter_mut().find(|port| port.id == (*group, *number)) else {
        return answer("not-writable");
    };
    if lies {
        return answer("DONE");
    }
    // A port that was off searches before it delivers.
    let old = if port.is_on { real_detection(port) } else { 2 };
    if port.is_on == is_on {
        return answer("DONE");
    }
    port.is_on = is_on;
    port.has_fault &= is_on;
    let changed = port.clone();
    state.late = Some((changed.id, late_readings, old));
    ("DONE\n".to_owned(), Some(changed))
}
