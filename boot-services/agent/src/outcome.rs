//! Result of an action.

/// Result of a successful action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The action is complete. The text is a summary for the operator.
    Done(String),
    /// The action is complete; the machine must leave the agent's OS after the box has acknowledged
    /// the report.
    Leave(Leave),
}

/// Way of leaving the agent's OS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Reboot through the firmware.
    Reboot,
    /// Start of the loaded kernel, without the firmware (kexec).
    Kexec,
    /// Power-off, at the request of the box.
    PowerOff,
}
