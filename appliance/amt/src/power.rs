//! Power states of a machine, and the choice of the state to request.

use crate::Error;
use crate::message::{Element, Malformed};

/// Values of `PowerState` and of power requests (DMTF CIM_AssociatedPowerManagementService, with
/// the meaning that AMT gives them).
pub(crate) mod state {
    /// On; as a request, power on.
    pub const ON: u32 = 2;
    /// Light sleep (S1 or S2).
    pub const SLEEP_LIGHT: u32 = 3;
    /// Deep sleep: suspend to memory (S3).
    pub const SLEEP_DEEP: u32 = 4;
    /// Power cycle; as a request, off and on at once.
    pub const CYCLE: u32 = 5;
    /// Off, without standby power.
    pub const OFF_HARD: u32 = 6;
    /// Hibernation: suspend to disk (S4).
    pub const HIBERNATE: u32 = 7;
    /// Off (soft); as a request, power off at once.
    pub const OFF: u32 = 8;
    /// Power cycle, without standby power.
    pub const CYCLE_HARD: u32 = 9;
    /// Reset of the master bus.
    pub const RESET: u32 = 10;
    /// Off after a shutdown of the operating system.
    pub const OFF_GRACEFUL: u32 = 12;
    /// Off (hard) after a shutdown of the operating system.
    pub const OFF_HARD_GRACEFUL: u32 = 13;
}

/// Power state of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostState {
    /// The operating system or firmware runs.
    On,
    /// The memory has power and the operating system sleeps.
    Sleeping,
    /// The machine is off or hibernates.
    Off,
    /// The machine is resetting or in a power cycle.
    Changing(u32),
    /// The number has no known meaning as a state.
    Unknown(u32),
}

impl HostState {
    /// Returns the meaning of a value of `PowerState`.
    pub fn of(number: u32) -> Self {
        match number {
            state::ON => Self::On,
            state::SLEEP_LIGHT | state::SLEEP_DEEP => Self::Sleeping,
            state::OFF_HARD
            | state::HIBERNATE
            | state::OFF
            | state::OFF_GRACEFUL
            | state::OFF_HARD_GRACEFUL => Self::Off,
            state::CYCLE | state::CYCLE_HARD | state::RESET => Self::Changing(number),
            other => Self::Unknown(other),
        }
    }
}

/// Power state and the allowed requests (CIM_AssociatedPowerManagementService).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerReading {
    /// Power state at the reading.
    pub state: HostState,
    /// States that may be requested now; empty if the firmware has no such list.
    pub available: Vec<u32>,
}

impl PowerReading {
    /// Reads the instance.
    ///
    /// # Errors
    /// The state is missing or is not a number.
    pub fn read(instance: &Element) -> Result<Self, Malformed> {
        let number = instance.number("PowerState")?.ok_or(Malformed::Missing("PowerState"))?;
        let available = instance.numbers("AvailableRequestedPowerStates")?;
        Ok(Self { state: HostState::of(number), available })
    }
}

/// Requested change of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerRequest {
    /// Switches the power on, or wakes the machine.
    On,
    /// Switches the power off at once.
    Off,
    /// Requests a shutdown by the operating system, which must run Intel LMS.
    Soft,
    /// Switches the power off and on again.
    Cycle,
    /// Resets the machine without losing power.
    Reset,
}

/// Decision how to fulfill a [`PowerRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// The machine is in the requested state.
    Nothing,
    /// The state must be requested.
    Request(u32),
}

impl Plan {
    /// Returns true if the firmware may refuse the request while a redirection session is open.
    pub fn needs_closed_redirection(self) -> bool {
        matches!(self, Self::Request(state::OFF | state::OFF_GRACEFUL | state::CYCLE))
    }

    /// Returns true if the request starts the machine and uses up a boot device.
    pub fn boots(self) -> bool {
        matches!(self, Self::Request(state::ON | state::CYCLE | state::RESET))
    }
}

/// Decides which state to request. A machine that is off is switched on by a cycle or a reset.
///
/// # Errors
/// The machine is changing its state, or the firmware does not offer the request now.
pub fn plan(request: PowerRequest, reading: &PowerReading) -> Result<Plan, Error> {
    use HostState::{Changing, Off, On, Sleeping, Unknown};
    let plan = match (request, reading.state) {
        (PowerRequest::On, On) => Plan::Nothing,
        (PowerRequest::Off | PowerRequest::Soft, Off) => Plan::Nothing,
        (PowerRequest::Off, On | Sleeping | Changing(_) | Unknown(_)) => Plan::Request(state::OFF),
        (_, Changing(state)) => return Err(Error::Changing { state }),
        (PowerRequest::On, Sleeping | Off | Unknown(_)) => Plan::Request(state::ON),
        (PowerRequest::Cycle | PowerRequest::Reset, Off) => Plan::Request(state::ON),
        (PowerRequest::Cycle, On | Sleeping | Unknown(_)) => Plan::Request(state::CYCLE),
        (PowerRequest::Reset, On | Sleeping | Unknown(_)) => Plan::Request(state::RESET),
        (PowerRequest::Soft, On | Sleeping | Unknown(_)) => {
            let available = &reading.available;
            if !available.is_empty() && !available.contains(&state::OFF_GRACEFUL) {
                return Err(Error::Unsupported {
                    what: "soft power off",
                    reason: "the firmware offers it only while the operating system runs Intel LMS \
                             (Local Manageability Service)",
                });
            }
            Plan::Request(state::OFF_GRACEFUL)
        }
    };
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::{HostState, Plan, PowerReading, PowerRequest, plan};
    use crate::Error;

    fn reading(number: u32, available: &[u32]) -> PowerReading {
        PowerReading { state: HostState::of(number), available: available.to_vec() }
    }

    #[test]
    fn the_requested_state_depends_on_the_present_state() {
        use PowerRequest::{Cycle, Off, On, Reset, Soft};
        let rows = [
            (On, 2, Plan::Nothing),
            (On, 8, Plan::Request(2)),
            (On, 4, Plan::Request(2)),
            (On, 7, Plan::Request(2)),
            (Off, 2, Plan::Request(8)),
            (Off, 4, Plan::Request(8)),
            (Off, 5, Plan::Request(8)),
            (Off, 6, Plan::Nothing),
            (Soft, 8, Plan::Nothing),
            (Soft, 2, Plan::Request(12)),
            (Cycle, 2, Plan::Request(5)),
            (Cycle, 8, Plan::Request(2)),
            (Reset, 2, Plan::Request(10)),
            (Reset, 8, Plan::Request(2)),
        ];
        for (request, state, expected) in rows {
            let decided = plan(request, &reading(state, &[10, 8, 5, 11, 12])).unwrap();
            assert_eq!(decided, expected, "{request:?} in state {state}");
        }
    }

    #[test]
    fn soft_off_is_never_replaced_by_hard_off() {
        let without_lms = plan(PowerRequest::Soft, &reading(2, &[10, 8, 5, 11])).unwrap_err();
        assert!(without_lms.to_string().contains("Intel LMS"), "{without_lms}");
        let without_list = plan(PowerRequest::Soft, &reading(2, &[]));
        assert_eq!(without_list.unwrap(), Plan::Request(12));
    }

    #[test]
    fn a_change_in_progress_is_awaited() {
        for request in [PowerRequest::On, PowerRequest::Reset, PowerRequest::Cycle] {
            let error = plan(request, &reading(10, &[])).unwrap_err();
            assert!(matches!(error, Error::Changing { state: 10 }) && error.is_transient());
        }
    }
}
