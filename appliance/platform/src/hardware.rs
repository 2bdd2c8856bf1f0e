//! Hardware of the machine: clock, metrics and TPM.

pub mod clock;
pub mod figures;
pub mod tpm;
