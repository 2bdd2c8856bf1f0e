//! Values that a switch reports of one port.

use async_snmp::{Oid, Value, VarBind};

use super::{ExpectedName, Fault, PortId, PortState};

/// `pethPsePortEntry` (RFC 3621).
const PORT_ENTRY: [u32; 10] = [1, 3, 6, 1, 2, 1, 105, 1, 1, 1];
/// `ifXEntry` (RFC 2863).
const INTERFACE_ENTRY: [u32; 10] = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1];

/// Columns of `pethPsePortTable` that the box reads (RFC 3621).
const ADMIN: u32 = 3;
const DETECTION: u32 = 6;
const TYPE: u32 = 9;
const CLASS: u32 = 10;
const DENIALS: u32 = 12;
const OVERLOADS: u32 = 13;
const SHORTS: u32 = 14;
/// Columns of `ifXTable` with the names of an interface (RFC 2863).
const NAME: u32 = 1;
const ALIAS: u32 = 18;

/// `true` and `false` of SNMP's `TruthValue` (RFC 2579).
const TRUE: i32 = 1;
const FALSE: i32 = 2;
/// Values of `pethPsePortDetectionStatus`, except `test` (5), which is not clear.
const DISABLED: i32 = 1;
const SEARCHING: i32 = 2;
const DELIVERING: i32 = 3;
const FAULT: i32 = 4;
const OTHER_FAULT: i32 = 6;

/// Maximum length of a name of a port that an error shows, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Values of the objects of one port; absent objects are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    admin: Option<i32>,
    detection: Option<i32>,
    class: Option<i32>,
    fault: Fault,
    names: Vec<String>,
}

impl Reading {
    /// Returns the objects to read of `port`, with those for the check of its name.
    pub(crate) fn objects(port: PortId, name: Option<&ExpectedName>) -> Vec<Oid> {
        let columns = [ADMIN, DETECTION, CLASS, DENIALS, OVERLOADS, SHORTS];
        let mut objects: Vec<Oid> = columns.iter().map(|it| port_object(*it, port)).collect();
        if let Some(name) = name {
            objects.push(port_object(TYPE, port));
            objects.extend([ALIAS, NAME].map(|it| interface_object(it, name.interface)));
        }
        objects
    }

    /// Returns the object that switches `port`, and the value for on or off.
    pub(crate) fn switch(port: PortId, on: bool) -> (Oid, Value) {
        (port_object(ADMIN, port), Value::Integer(if on { TRUE } else { FALSE }))
    }

    /// Returns the column whose instances are the ports of a switch.
    pub(crate) fn ports() -> Oid {
        Oid::from_slice(&PORT_ENTRY).child(ADMIN)
    }

    /// Returns the port of an instance in the column [`Reading::ports`].
    pub(crate) fn port_of(object: &Oid) -> Option<PortId> {
        match object.strip_prefix(&Self::ports())?.arcs() {
            [group, index] => Some(PortId { group: *group, index: *index }),
            _ => None,
        }
    }

    /// Reads the values of `port` from a response. Objects of other ports are ignored.
    pub fn of(port: PortId, values: &[VarBind]) -> Self {
        let find = |column| {
            let object = port_object(column, port);
            values.iter().find(|it| it.oid == object).map(|it| &it.value)
        };
        let integer = |column| match find(column) {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        };
        let counter = |column| match find(column) {
            Some(Value::Counter32(value)) => *value,
            _ => 0,
        };
        let named = values.iter().filter(|it| {
            it.oid == port_object(TYPE, port)
                || it.oid.starts_with(&Oid::from_slice(&INTERFACE_ENTRY))
        });
        Self {
            admin: integer(ADMIN),
            detection: integer(DETECTION),
            class: integer(CLASS),
            fault: Fault {
                overloads: counter(OVERLOADS),
                shorts: counter(SHORTS),
                denials: counter(DENIALS),
            },
            names: named.filter_map(|it| text(&it.value)).collect(),
        }
    }

    /// Returns true if the switch has the port.
    pub fn exists(&self) -> bool {
        self.admin.is_some()
    }

    /// Returns the state of the port.
    pub fn state(&self) -> PortState {
        let class = self.class.filter(|class| (1..=5).contains(class));
        match (self.admin, self.detection) {
            (Some(FALSE), Some(DISABLED | SEARCHING | FAULT | OTHER_FAULT)) => PortState::Off,
            (Some(TRUE), Some(DELIVERING)) => PortState::Delivering {
                // The value of class 0 is 1.
                class: class.and_then(|class| u8::try_from(class - 1).ok()),
            },
            (Some(TRUE), Some(SEARCHING)) => PortState::Searching(self.fault),
            (Some(TRUE), Some(FAULT | OTHER_FAULT)) => PortState::Faulty(self.fault),
            (admin, detection) => PortState::Unclear { admin, detection },
        }
    }

    /// Returns the names of the port that differ from `expected`; `None` if one is equal.
    pub(crate) fn other_names(&self, expected: &ExpectedName) -> Option<Vec<String>> {
        let is_expected = self.names.iter().any(|name| name == expected.text.trim());
        (!is_expected).then(|| self.names.clone())
    }
}

fn port_object(column: u32, port: PortId) -> Oid {
    Oid::new(PORT_ENTRY.into_iter().chain([column, port.group, port.index]))
}

fn interface_object(column: u32, interface: u32) -> Oid {
    Oid::new(INTERFACE_ENTRY.into_iter().chain([column, interface]))
}

/// Returns a text of the switch for comparison and display; `None` without characters.
fn text(value: &Value) -> Option<String> {
    let Value::OctetString(bytes) = value else { return None };
    let text = String::from_utf8_lossy(bytes);
    let shown = text.trim().chars().filter(|char| !char.is_control());
    Some(shown.take(NAME_CHARS_MAX).collect::<String>()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
