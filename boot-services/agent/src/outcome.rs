//! Result of an action, built in or of a container.

/// Result of a successful action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The action is complete; the text is for the operator.
    Done(String),
    /// The action is complete except for leaving the OS, which waits until the box has acknowledged
    /// the report.
    Leave(Leave),
}

/// Way of leaving the agent's OS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Restart through the firmware.
    Reboot,
    /// Start of the loaded kernel by kexec.
    Kexec,
}
