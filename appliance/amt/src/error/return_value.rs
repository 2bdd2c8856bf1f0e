//! Return values of the methods of AMT, in words.

use std::fmt;

/// Table that gives a return value its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnTable {
    /// Requests of states, whose DMTF values are overlaid with status codes of AMT.
    State,
    /// Methods of the boot configuration.
    Boot,
}

/// Value that a method returned, which decides about success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReturnValue {
    /// Number as the firmware sent it.
    pub value: u32,
    /// Table of the method.
    pub table: ReturnTable,
}

impl ReturnValue {
    /// Returns true if the firmware accepted the request. 4096 is a started job.
    pub fn is_accepted(self) -> bool {
        self.value == 0 || (self.table == ReturnTable::State && self.value == 4096)
    }

    /// Returns true if the same request may succeed later without another change.
    pub fn is_busy(self) -> bool {
        match self.table {
            ReturnTable::State => matches!(self.value, 3 | 6 | 46 | 4099),
            ReturnTable::Boot => self.value == 3,
        }
    }

    /// Returns true if the firmware does not have the function.
    pub fn is_unsupported(self) -> bool {
        self.value == 1 && self.table == ReturnTable::Boot
    }

    /// Returns true if the refusal can be caused by a missing consent of the user, or by a state
    /// of the machine that excludes the request.
    pub fn may_need_consent(self) -> bool {
        match self.table {
            ReturnTable::State => matches!(self.value, 2 | 16),
            ReturnTable::Boot => matches!(self.value, 2 | 6),
        }
    }

    /// Returns the meaning in the DMTF's schema of the class.
    fn standard(self) -> Option<&'static str> {
        Some(match (self.table, self.value) {
            (_, 0) => "done",
            (_, 1) => "not supported",
            (_, 2) => "unknown error",
            (ReturnTable::State, 3) => "timeout",
            (ReturnTable::State, 4) => "failed",
            (ReturnTable::State, 5) => "invalid parameter",
            (ReturnTable::State, 6) => "in use",
            (ReturnTable::State, 4096) => "job started",
            (ReturnTable::State, 4097) => "invalid state transition",
            (ReturnTable::State, 4098) => "time limit not supported",
            (ReturnTable::State, 4099) => "busy",
            (ReturnTable::Boot, 3) => "busy",
            (ReturnTable::Boot, 4) => "invalid reference",
            (ReturnTable::Boot, 5) => "invalid parameter",
            (ReturnTable::Boot, 6) => "access denied",
            _ => return None,
        })
    }

    /// Returns the meaning as a status code of AMT.
    fn vendor(self) -> Option<&'static str> {
        if self.table != ReturnTable::State {
            return None;
        }
        Some(match self.value {
            1 => "internal error",
            2 => "not ready in the present state",
            16 => "not permitted",
            23 => "limit reached",
            32 => "invalid provisioning state",
            36 => "invalid parameter",
            38 => "too many writes to the flash memory",
            46 => "too many connections",
            2054 => "invalid password",
            2057 => "data missing",
            2058 => "duplicate",
            2076 => "a component blocks the request",
            _ => return None,
        })
    }
}

impl fmt::Display for ReturnValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.standard(), self.vendor()) {
            (Some(standard), Some(vendor)) => {
                write!(f, "return value {}: {vendor} (AMT) or {standard} (DMTF)", self.value)
            }
            (Some(one), None) | (None, Some(one)) => {
                write!(f, "return value {}: {one}", self.value)
            }
            (None, None) => write!(f, "return value {}", self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ReturnTable, ReturnValue};

    #[test]
    fn both_readings_of_a_value_are_shown() {
        let state = |value| ReturnValue { value, table: ReturnTable::State };
        let boot = |value| ReturnValue { value, table: ReturnTable::Boot };
        for (value, words) in [
            (
                state(2),
                "return value 2: not ready in the present state (AMT) or unknown error (DMTF)",
            ),
            (state(16), "return value 16: not permitted"),
            (state(4099), "return value 4099: busy"),
            (state(777), "return value 777"),
            (boot(6), "return value 6: access denied"),
            (boot(16), "return value 16"),
        ] {
            assert_eq!(value.to_string(), words);
        }
        assert!(state(0).is_accepted() && state(4096).is_accepted() && boot(0).is_accepted());
        assert!(!state(2).is_accepted() && !boot(4096).is_accepted());
        assert!(state(46).is_busy() && boot(3).is_busy() && !state(2).is_busy());
    }
}
