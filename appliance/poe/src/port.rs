//! Port of a switch and its state, as POWER-ETHERNET-MIB reports them (RFC 3621).

mod reading;

use std::fmt;
use std::str::FromStr;

pub use self::reading::Reading;
use crate::Error;

/// Number of a port: the two indexes of `pethPsePortTable` (RFC 3621), written `1.3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId {
    /// Group of ports, such as the unit of a stack; 1 on most switches.
    pub group: u32,
    /// Number of the port in its group, from 1.
    pub index: u32,
}

impl FromStr for PortId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            // Both indexes of the table are 1 to 2147483647.
            let number = is_plain.then(|| text.parse::<i32>().ok())??;
            u32::try_from(number).ok().filter(|number| *number > 0)
        };
        let parts = text.split_once('.').map(|(group, index)| (number(group), number(index)));
        match parts {
            Some((Some(group), Some(index))) => Ok(Self { group, index }),
            _ => Err(Error::Invalid {
                field: "outlet",
                reason: "expected group and port, such as 1.3",
            }),
        }
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.group, self.index)
    }
}

/// Name that the switch must have for a port, so that a wrong number switches no other device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedName {
    /// Text that the switch must report as `pethPsePortType` of the port, or as `ifAlias` or
    /// `ifName` of the interface (RFC 2863).
    pub text: String,
    /// Number of the interface in IF-MIB (`ifIndex`). RFC 3621 does not define the interface of a
    /// port.
    pub interface: u32,
}

/// Counters of the causes for which a port gave no power, since the start of the switch. Their
/// values say what happened, not when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fault {
    /// `pethPsePortOverLoadCounter`.
    pub overloads: u32,
    /// `pethPsePortShortCounter`.
    pub shorts: u32,
    /// `pethPsePortPowerDeniedCounter`: mostly an exhausted power budget.
    pub denials: u32,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { overloads, shorts, denials } = self;
        write!(f, "overloads: {overloads}, short circuits: {shorts}, denials: {denials}")
    }
}

/// State of a port, from `pethPsePortAdminEnable` and `pethPsePortDetectionStatus`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortState {
    /// The port is switched off and delivers no power.
    Off,
    /// The port is switched on and a device draws power.
    Delivering {
        /// Class of the device, 0 to 4; `None` if the switch reports no class.
        class: Option<u8>,
    },
    /// The port is switched on and searches for a device: no device draws power, or the detection
    /// has not ended.
    Searching(Fault),
    /// The switch reports a fault of the port and delivers no power.
    Faulty(Fault),
    /// The values contradict each other or are not defined. The port may deliver power.
    Unclear {
        /// Value of `pethPsePortAdminEnable`; `None` if absent.
        admin: Option<i32>,
        /// Value of `pethPsePortDetectionStatus`; `None` if absent.
        detection: Option<i32>,
    },
}

impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<i32>| value.map_or("no value".to_owned(), |it| it.to_string());
        match self {
            Self::Off => f.write_str("the port is switched off"),
            Self::Delivering { class: Some(class) } => {
                write!(f, "the port delivers power to a device of class {class}")
            }
            Self::Delivering { class: None } => f.write_str("the port delivers power"),
            Self::Searching(fault) if *fault == Fault::default() => {
                f.write_str("the port offers power, but no device draws power")
            }
            Self::Searching(fault) => write!(
                f,
                "the port offers power, but no device draws power; since its start the switch \
                 counted {fault}"
            ),
            Self::Faulty(fault) => write!(
                f,
                "the switch reports a fault of the port; since its start the switch counted {fault}"
            ),
            Self::Unclear { admin, detection } => write!(
                f,
                "the switch reports {} as pethPsePortAdminEnable and {} as \
                 pethPsePortDetectionStatus",
                value(admin),
                value(detection)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_group_and_a_number() {
        let port: PortId = "1.24".parse().unwrap();
        assert_eq!((port.group, port.index, port.to_string()), (1, 24, "1.24".to_owned()));
        for wrong in
            ["", "3", "1.", ".3", "1.0", "0.1", "1.3.4", "1.+3", " 1.3", "1.-3", "1.2147483648"]
        {
            assert!(wrong.parse::<PortId>().is_err(), "{wrong:?}");
        }
    }
}
