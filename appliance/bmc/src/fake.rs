//! Simulated BMC for tests of other crates, with a log of all calls. It can delay, lie or fail.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipmi::{CompletionCode, Refusal};

use crate::{
    Address, BootControl, BootOverride, Capabilities, Driver, Error, IpmiError, Pending, Power,
    PowerAction,
};

/// Maximum number of logged calls. A test that reaches the limit has an endless loop.
const LOG_LIMIT: usize = 10_000;

/// Logged call of the fake BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Recorded call of [`Driver::power`].
    Power,
    /// Recorded call of [`Driver::set_power`].
    SetPower(PowerAction),
    /// Recorded call of [`Driver::set_boot_device`].
    SetBootDevice(BootOverride),
    /// Recorded call of [`Driver::boot_device`].
    BootDevice,
}

impl Call {
    fn is_reading(self) -> bool {
        matches!(self, Self::Power | Self::BootDevice)
    }

    /// Returns the driver's error for a lost response to this call.
    fn unanswered(self, failure: Failure) -> Error {
        match self {
            Self::SetPower(action @ (PowerAction::Cycle | PowerAction::Reset)) => {
                let source = Box::new(failure.error());
                Error::Unanswered { address: Address::ipmi("fake"), action, source }
            }
            _ => failure.error(),
        }
    }
}

/// Behavior of the fake BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Executes each change at once.
    Honest,
    /// Executes each change, but reports the old state for the given number of readings.
    Slow(u32),
    /// Reports success, but does not execute the change.
    Lying,
    /// Fails every call with the given error, and changes nothing.
    Failing(Failure),
    /// Executes every change and returns the given error (a lost response). Readings succeed.
    ReplyLost(Failure),
    /// Changes nothing and returns the given error (a lost request). Readings succeed.
    RequestLost(Failure),
}

/// Errors that the fake BMC can return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Fails every call with [`IpmiError::NoAnswer`].
    NoAnswer,
    /// Fails every call with [`IpmiError::Timeout`].
    Timeout,
    /// Fails every call with [`IpmiError::WrongPassword`].
    WrongPassword,
    /// Fails every call with [`IpmiError::CommandRefused`] and this completion code.
    Refused(u8),
}

impl Failure {
    fn error(self) -> Error {
        let address = (&Address::ipmi("fake")).into();
        let step = "a command";
        let after = Duration::from_secs(1);
        let error = match self {
            Self::NoAnswer => IpmiError::NoAnswer { address, step, after },
            Self::Timeout => IpmiError::Timeout { address, step, after },
            Self::WrongPassword => IpmiError::WrongPassword { address, username: "fake".into() },
            Self::Refused(code) => {
                let refusal = Refusal { net_fn: 0, command: 0, code: CompletionCode(code) };
                IpmiError::CommandRefused { address, command: step, refusal }
            }
        };
        error.into()
    }
}

#[derive(Debug)]
struct State {
    power: Power,
    /// Old state that readings still report, and the number of such readings left.
    stale: Option<(Power, u32)>,
    boot: Option<BootOverride>,
    mode: Mode,
    fail_next: u32,
    failure: Failure,
    log: Vec<Call>,
}

/// Simulated BMC; clones control the same machine.
#[derive(Debug, Clone)]
pub struct Fake(Arc<Mutex<State>>);

impl Fake {
    /// Creates a BMC with [`Mode::Honest`] and a machine in the power state `power`.
    pub fn new(power: Power) -> Self {
        Self(Arc::new(Mutex::new(State {
            power,
            stale: None,
            boot: None,
            mode: Mode::Honest,
            fail_next: 0,
            failure: Failure::NoAnswer,
            log: Vec::new(),
        })))
    }

    /// Sets the behavior for all later calls.
    pub fn set_mode(&self, mode: Mode) {
        self.state().mode = mode;
    }

    /// Makes the next `calls` calls fail with `failure`; later calls behave as before.
    pub fn fail_next(&self, calls: u32, failure: Failure) {
        let mut state = self.state();
        state.fail_next = calls;
        state.failure = failure;
    }

    /// Returns all calls so far in order, including failed calls.
    pub fn calls(&self) -> Vec<Call> {
        self.state().log.clone()
    }

    /// Returns the requested power changes, in order.
    pub fn actions(&self) -> Vec<PowerAction> {
        let state = self.state();
        let action = |call: &Call| match call {
            Call::SetPower(action) => Some(*action),
            _ => None,
        };
        state.log.iter().filter_map(action).collect()
    }

    /// Returns the real power state of the machine, which the BMC may report wrongly.
    pub fn real_power(&self) -> Power {
        self.state().power
    }

    /// Changes the real power state without a call, like a person at the power button.
    pub fn press(&self, power: Power) {
        self.state().power = power;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a call. Returns true if the call changes the machine, and the error to return.
    fn take(&self, call: Call) -> (bool, Option<Error>) {
        let mut state = self.state();
        if state.log.len() < LOG_LIMIT {
            state.log.push(call);
        }
        if state.fail_next > 0 {
            state.fail_next -= 1;
            return (false, Some(state.failure.error()));
        }
        match state.mode {
            Mode::Honest | Mode::Slow(_) => (true, None),
            Mode::Lying => (false, None),
            Mode::Failing(failure) => (false, Some(failure.error())),
            Mode::ReplyLost(_) | Mode::RequestLost(_) if call.is_reading() => (true, None),
            Mode::ReplyLost(failure) => (true, Some(call.unanswered(failure))),
            Mode::RequestLost(failure) => (false, Some(failure.error())),
        }
    }
}

impl State {
    fn act(&mut self, action: PowerAction) {
        let shown = self.power;
        self.power = match action {
            PowerAction::On => Power::On,
            PowerAction::Off | PowerAction::Soft => Power::Off,
            PowerAction::Cycle | PowerAction::Reset => self.power,
        };
        let boots = matches!(action, PowerAction::Cycle | PowerAction::Reset)
            || (shown != Power::On && self.power == Power::On);
        if boots && self.boot.is_some_and(|boot| !boot.persistent) {
            self.boot = None;
        }
        match (self.mode, action) {
            (Mode::Slow(readings), _) => self.stale = Some((shown, readings)),
            (Mode::Honest, PowerAction::Cycle) => self.stale = Some((Power::Off, 2)),
            _ => {}
        }
    }

    fn read(&mut self) -> Power {
        match self.stale {
            Some((shown, left)) if left > 0 => {
                self.stale = Some((shown, left - 1));
                shown
            }
            _ => self.power,
        }
    }
}

impl Driver for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            power: Capabilities::ALL_POWER,
            boot: BootControl::Always,
            features: Vec::new(),
            missing: Vec::new(),
            weakness: None,
        }
    }

    fn power(&self) -> Pending<'_, Power> {
        let (_, error) = self.take(Call::Power);
        let read = self.state().read();
        Box::pin(async move { error.map_or(Ok(read), Err) })
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        let (acts, error) = self.take(Call::SetPower(action));
        if acts {
            self.state().act(action);
        }
        Box::pin(async move { error.map_or(Ok(()), Err) })
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        let (acts, error) = self.take(Call::SetBootDevice(boot));
        if acts {
            self.state().boot = Some(boot);
        }
        Box::pin(async move { error.map_or(Ok(()), Err) })
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        let (_, error) = self.take(Call::BootDevice);
        let boot = self.state().boot;
        Box::pin(async move { error.map_or(Ok(boot), Err) })
    }
}
