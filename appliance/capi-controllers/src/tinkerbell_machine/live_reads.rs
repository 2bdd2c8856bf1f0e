//! Objects that must be read from the API of the management cluster before a decision is executed.
//!
//! A copy of a watch may be old. So the objects that permit an installation or a release are read
//! again first: the TinkerbellMachine, which may be deleted, and its Cluster, which may be paused.
//! The other inputs only describe what is installed.

use super::decide::Step;

/// Objects to read from the API, and not from the copy of the watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveReads {
    /// True to read the TinkerbellMachine, which may have been deleted.
    pub machine: bool,
    /// True to read the Cluster, which may have been paused.
    pub cluster: bool,
}

impl LiveReads {
    /// Returns the reads that these steps need.
    pub fn of(steps: &[Step]) -> Self {
        let is_due = steps.iter().any(|step| !is_harmless(step));
        // The write of the registration succeeds only if the machine is unchanged.
        let is_checked = matches!(steps.first(), Some(Step::Register));
        Self { machine: is_due && !is_checked, cluster: is_due }
    }

    /// Returns true if all reads of `other` are among these.
    pub fn include(self, other: Self) -> bool {
        self.with(other) == self
    }

    /// Returns these reads and those of `other`.
    pub fn with(self, other: Self) -> Self {
        Self { machine: self.machine || other.machine, cluster: self.cluster || other.cluster }
    }
}

/// Returns true for a step that changes no disk, no power and no owner of a Hardware, not even
/// later: it writes to the TinkerbellMachine if that is unchanged, or records what has happened.
fn is_harmless(step: &Step) -> bool {
    match step {
        Step::Register
        | Step::SetSpec { .. }
        | Step::Status(_)
        | Step::Record { .. }
        | Step::MarkStarted
        | Step::MarkProvisioned => true,
        Step::RemoveFinalizer
        | Step::TakeOver(_)
        | Step::Claim(_)
        | Step::NameInstallation(_)
        | Step::UserData(_)
        | Step::NameWipe(_)
        | Step::ForgetWipe
        | Step::MarkWiped
        | Step::Release
        | Step::Create(..)
        | Step::Delete(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::LiveReads;
    use crate::tinkerbell_machine::decide::Step;

    #[test]
    fn what_cannot_be_taken_back_is_decided_from_live_reads() {
        let reads = |steps: &[Step]| {
            let LiveReads { machine, cluster } = LiveReads::of(steps);
            (machine, cluster)
        };
        assert_eq!(reads(&[]), (false, false));
        assert_eq!(reads(&[Step::Register, Step::MarkStarted]), (false, false));
        assert_eq!(reads(&[Step::Release, Step::RemoveFinalizer]), (true, true));
        // The first write proves that the machine is unchanged.
        assert_eq!(reads(&[Step::Register, Step::Release]), (false, true));
        assert_eq!(reads(&[Step::Release, Step::Register]), (true, true));
    }
}
