//! Power states and requests (Redfish schema ComputerSystem, `PowerState` and `ResetType`).

use crate::{Document, Error};

/// Place of the reset action in a system.
const ACTION: &str = "/Actions/#ComputerSystem.Reset";

/// Power state that a service reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerState {
    /// The machine has power, also while it is paused.
    On,
    /// The machine has no power.
    Off,
    /// The machine is changing its state.
    Changing,
    /// The service does not report a known state.
    Unknown,
}

impl PowerState {
    /// Reads the state of a system.
    pub fn of(system: &Document) -> Self {
        match system.text("/PowerState") {
            Some("On" | "Paused") => Self::On,
            Some("Off") => Self::Off,
            Some("PoweringOn" | "PoweringOff") => Self::Changing,
            _ => Self::Unknown,
        }
    }
}

/// Requested change of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerRequest {
    /// Switches the power on.
    On,
    /// Switches the power off at once.
    Off,
    /// Requests a shutdown by the operating system.
    Soft,
    /// Switches the power off and on again.
    Cycle,
    /// Resets the machine without losing power.
    Reset,
}

impl PowerRequest {
    /// All requests, in the order of a list for people.
    pub const ALL: [Self; 5] = [Self::On, Self::Off, Self::Soft, Self::Cycle, Self::Reset];

    /// Returns the name of the request for display.
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "power on",
            Self::Off => "power off",
            Self::Soft => "soft power off",
            Self::Cycle => "power cycle",
            Self::Reset => "reset",
        }
    }

    /// Returns the values of `ResetType` that fulfill the request, best first. The button switches
    /// a machine on that is off, so it needs a machine that is on.
    fn reset_types(self, state: PowerState) -> &'static [&'static str] {
        match (self, state) {
            (Self::On, _) => &["On", "ForceOn"],
            (Self::Off, _) => &["ForceOff"],
            (Self::Soft, PowerState::On) => &["GracefulShutdown", "PushPowerButton"],
            (Self::Soft, _) => &["GracefulShutdown"],
            (Self::Cycle, _) => &["PowerCycle", "ForceRestart"],
            (Self::Reset, _) => &["ForceRestart"],
        }
    }

    /// Returns true if the service offers the request; an empty list of types offers all.
    pub fn is_offered(self, types: &[String]) -> bool {
        // A cycle can be made of off and on.
        let types_of = if self == Self::Cycle { Self::Off } else { self };
        types.is_empty() || types_of.choose(PowerState::On, types).is_some()
    }

    fn choose(self, state: PowerState, types: &[String]) -> Option<&'static str> {
        let candidates = self.reset_types(state);
        if types.is_empty() {
            return candidates.first().copied();
        }
        candidates.iter().find(|name| types.iter().any(|it| it == *name)).copied()
    }
}

/// Decision how to fulfill a [`PowerRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// The machine is in the requested state.
    Nothing,
    /// The reset action with this `ResetType`.
    Reset(&'static str),
    /// Power off, a wait until the power is off, and power on with this `ResetType`.
    OffThenOn(&'static str),
}

/// Decides which reset to request. `types` are the values that the service offers, empty if it does
/// not say. A machine that is off is switched on by a cycle or a reset. Without a known state, only
/// a power-off is requested.
///
/// # Errors
/// The machine is changing its state, or the service does not offer the request.
pub fn plan(request: PowerRequest, state: PowerState, types: &[String]) -> Result<Plan, Error> {
    let request = match (request, state) {
        (PowerRequest::On, PowerState::On) => return Ok(Plan::Nothing),
        (PowerRequest::Off | PowerRequest::Soft, PowerState::Off) => return Ok(Plan::Nothing),
        (PowerRequest::Cycle | PowerRequest::Reset, PowerState::Off) => PowerRequest::On,
        (PowerRequest::Off, _) | (_, PowerState::On | PowerState::Off) => request,
        (_, PowerState::Changing | PowerState::Unknown) => {
            let state = match state {
                PowerState::Changing => "changing",
                _ => "unknown",
            };
            return Err(Error::Changing { state: state.to_owned(), request: request.name() });
        }
    };
    if let Some(found) = request.choose(state, types) {
        return Ok(Plan::Reset(found));
    }
    let halves = [PowerRequest::Off, PowerRequest::On].map(|half| half.choose(state, types));
    match (request, halves) {
        (PowerRequest::Cycle, [Some(_), Some(on)]) => Ok(Plan::OffThenOn(on)),
        _ => Err(Error::Unsupported {
            what: request.name().to_owned(),
            reason: format!("the BMC offers the resets {}", types.join(", ")),
        }),
    }
}

/// Returns true if the system states a reset action.
pub fn has_reset(system: &Document) -> bool {
    system.json.pointer(ACTION).is_some_and(serde_json::Value::is_object)
}

/// Returns the path of the reset action. A system without the action gets the standard's path.
pub fn target(system: &Document) -> String {
    let target = system.text(&format!("{ACTION}/target")).and_then(crate::document::path);
    let path = system.path.trim_end_matches('/');
    target.unwrap_or_else(|| format!("{path}/Actions/ComputerSystem.Reset"))
}

/// Returns the values of `ResetType` that a system states itself; empty if it does not.
pub fn types(system: &Document) -> Vec<String> {
    let types = system.texts(&format!("{ACTION}/ResetType@Redfish.AllowableValues"));
    types.into_iter().map(str::to_owned).collect()
}

/// Returns the path of the resource that describes the reset action (`@Redfish.ActionInfo`).
pub fn action_info(system: &Document) -> Option<String> {
    system.text(&format!("{ACTION}/@Redfish.ActionInfo")).and_then(crate::document::path)
}

/// Returns the values of `ResetType` of an ActionInfo resource.
pub fn types_of_info(info: &Document) -> Vec<String> {
    let parameters = info.items("/Parameters");
    let reset = parameters.into_iter().find(|it| it["Name"].as_str() == Some("ResetType"));
    let values = reset.and_then(|it| it["AllowableValues"].as_array());
    let values = values.into_iter().flatten().filter_map(|value| value.as_str());
    values.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Plan, PowerRequest, PowerState, plan, target, types};
    use crate::{Document, Error};

    fn offered(types: &[&str]) -> Vec<String> {
        types.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_reset_is_one_that_the_service_offers() {
        use PowerRequest::{Cycle, Off, On, Reset, Soft};
        use PowerState::{Off as IsOff, On as IsOn};
        let ilo5 = &["On", "ForceOff", "ForceRestart", "Nmi", "PushPowerButton"][..];
        for (request, state, types, expected) in [
            (On, IsOn, &[][..], Plan::Nothing),
            (On, IsOff, &[], Plan::Reset("On")),
            (On, IsOff, &["ForceOn", "ForceOff"], Plan::Reset("ForceOn")),
            (Off, IsOff, &[], Plan::Nothing),
            (Off, PowerState::Changing, &[], Plan::Reset("ForceOff")),
            (Soft, IsOff, &[], Plan::Nothing),
            (Soft, IsOn, ilo5, Plan::Reset("PushPowerButton")),
            (Soft, IsOn, &["GracefulShutdown", "PushPowerButton"], Plan::Reset("GracefulShutdown")),
            (Cycle, IsOn, &[], Plan::Reset("PowerCycle")),
            (Cycle, IsOn, ilo5, Plan::Reset("ForceRestart")),
            (Cycle, IsOn, &["On", "ForceOff"], Plan::OffThenOn("On")),
            (Cycle, IsOff, ilo5, Plan::Reset("On")),
            (Reset, IsOff, ilo5, Plan::Reset("On")),
            (Reset, IsOn, ilo5, Plan::Reset("ForceRestart")),
        ] {
            let found = plan(request, state, &offered(types)).unwrap();
            assert_eq!(found, expected, "{request:?} {state:?} {types:?}");
        }
    }

    #[test]
    fn an_unknown_state_or_a_missing_reset_is_an_error() {
        for state in [PowerState::Changing, PowerState::Unknown] {
            for request in PowerRequest::ALL.into_iter().filter(|it| *it != PowerRequest::Off) {
                let error = plan(request, state, &[]).unwrap_err();
                assert!(matches!(error, Error::Changing { .. }), "{request:?}: {error}");
            }
        }
        let few = offered(&["On", "ForceOff"]);
        let error = plan(PowerRequest::Reset, PowerState::On, &few).unwrap_err();
        assert_eq!(
            error.to_string(),
            "reset is not available: the BMC offers the resets On, ForceOff"
        );
        assert!(!PowerRequest::Soft.is_offered(&few) && PowerRequest::Cycle.is_offered(&few));
        assert!(PowerRequest::Soft.is_offered(&[]));
    }

    #[test]
    fn the_action_is_where_the_system_says() {
        let path = "/redfish/v1/Systems/1/".to_owned();
        let mut system = Document { path, etag: None, json: json!({ "PowerState": null }) };
        assert_eq!(PowerState::of(&system), PowerState::Unknown);
        assert_eq!(target(&system), "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset");
        assert_eq!(types(&system), [""; 0]);
        system.json = json!({ "Actions": { "#ComputerSystem.Reset": {
            "target": "/redfish/v1/Systems/1/Reset", "ResetType@Redfish.AllowableValues": ["On"],
        } } });
        assert_eq!(target(&system), "/redfish/v1/Systems/1/Reset");
        assert_eq!(types(&system), ["On"]);
    }
}
