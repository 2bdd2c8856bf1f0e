//! Detects a machine that stopped reporting during its boot, and lists the usual causes.

use jiff::{SignedDuration, Timestamp};

use super::Line;
use crate::boot_event::{Stage, reason};

/// Silence of a machine that is longer than its last boot step usually takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// Milliseconds since the machine's last event.
    pub millis: u64,
    /// Usual causes of the silence, most likely first; each a clause.
    pub causes: &'static [&'static str],
}

impl Silence {
    /// Formats the silence: `silent for 43 s; usual causes: …`.
    pub fn sentence(&self) -> String {
        let causes = self.causes.join("; ");
        format!("silent for {}; usual causes: {causes}", stdx::seconds(self.millis))
    }
}

/// Returns the silence after the last line, if it is too long; `None` also after an outcome.
pub fn silence(lines: &[Line], now: Timestamp) -> Option<Silence> {
    // Events of the machine's BMC and workflow are not reports of the machine, but can end its
    // history.
    if lines.last()?.end().is_some() {
        return None;
    }
    let last = lines.iter().rev().find(|line| line.kind == "Hardware")?;
    let (patience, causes) = usual(last)?;
    let quiet = now.duration_since(last.at);
    let millis = u64::try_from(quiet.as_millis()).ok()?;
    (quiet >= patience).then_some(Silence { millis, causes })
}

/// Returns the maximum expected silence after a line, and the usual causes of a longer silence.
/// `None` if no further event is expected.
fn usual(line: &Line) -> Option<(SignedDuration, &'static [&'static str])> {
    let by = |stage: Stage| line.sentence.ends_with(&format!("({})", stage.word()));
    let firmware = [Stage::BiosFirmware, Stage::UefiFirmware, Stage::UefiHttpFirmware];
    let (secs, causes): (i64, &[&str]) = match line.reason.as_str() {
        reason::POWERED_ON => (60, AFTER_POWER_ON),
        reason::ASKED_FOR_ADDRESS if !by(Stage::System) => (40, AFTER_QUESTION),
        reason::GOT_ADDRESS if firmware.into_iter().any(by) => (20, AFTER_ADDRESS),
        reason::FETCHED_LOADER => (20, AFTER_LOADER),
        reason::GOT_ADDRESS if by(Stage::Ipxe) => (20, AFTER_IPXE_ADDRESS),
        reason::FETCHED_SCRIPT => (30, AFTER_SCRIPT),
        reason::FETCHED_KERNEL | reason::FETCHED_INITRD => (60, AFTER_KERNEL),
        reason::SENT_TO_DISK => (300, AFTER_DISK),
        reason::ASKED_METADATA => (600, AFTER_METADATA),
        _ => return None,
    };
    Some((SignedDuration::from_secs(secs), causes))
}

const AFTER_POWER_ON: &[&str] = &[
    "the network is not in its boot order, or network boot is off in its firmware",
    "its cable is in another network, or in another port than the registered one",
    "its firmware trains new memory, which takes some minutes once",
];
const AFTER_QUESTION: &[&str] = &[
    "another DHCP server answered it",
    "the response is lost: a switch port in the spanning tree's learning state, or a VLAN",
    "it stopped network boot and continued with its disk",
];
const AFTER_ADDRESS: &[&str] = &[
    "it cannot reach the box by TFTP or HTTP: a firewall or another VLAN blocks it",
    "its firmware has no network boot for this NIC",
];
const AFTER_LOADER: &[&str] = &[
    "Secure Boot refused the loader: its screen says “Access Denied” or “Security Violation”",
    "the loader does not support its NIC: the next attempt gets another one",
];
const AFTER_IPXE_ADDRESS: &[&str] = &[
    "iPXE waits at its prompt, or for another NIC: look at its screen",
    "it cannot reach the box by HTTP: a firewall blocks it",
];
const AFTER_SCRIPT: &[&str] = &[
    "it cannot fetch the kernel: its screen shows iPXE's error and a link that explains it",
    "the kernel is not among the box's artifacts",
];
const AFTER_KERNEL: &[&str] = &[
    "the agent OS has no driver for its NIC",
    "it has less memory than the agent OS needs: 512 MiB",
    "the kernel stopped: look at its screen or serial console",
];
const AFTER_DISK: &[&str] = &[
    "nothing on its disk boots in this firmware mode (UEFI or BIOS)",
    "the installed system does not phone home: its cloud-init is not configured to",
];
const AFTER_METADATA: &[&str] = &[
    "its cloud-init failed: look at /var/log/cloud-init.log on it",
    "its user data does not configure cloud-init to phone home",
];

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::super::tests::record;
    use super::{Silence, silence};
    use crate::boot_event::{BootEvent, Stage, Via};
    use crate::history::history;

    const ZERO: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn after(moments: &[BootEvent], secs: i64) -> Option<Silence> {
        let events = moments.iter().map(|moment| record(0, moment)).collect();
        silence(&history(events), ZERO + SignedDuration::from_secs(secs))
    }

    #[test]
    fn a_machine_that_took_its_loader_and_fell_silent() {
        let file = "snponly.efi".to_owned();
        let loader = BootEvent::FetchedLoader { file, via: Via::Tftp, bytes: 1, millis: 1 };
        let moments = [BootEvent::PoweredOn, loader];
        assert_eq!(after(&moments, 19), None, "it may be busy");
        let sentence = after(&moments, 43).unwrap().sentence();
        assert!(sentence.starts_with("silent for 43 s; usual causes: Secure Boot"), "{sentence}");
    }

    #[test]
    fn what_the_silence_means_depends_on_who_spoke_last() {
        let asked = |stage| BootEvent::AskedForAddress { stage };
        let got = |stage| BootEvent::GotAddress { ip: [10, 77, 0, 11].into(), stage };
        let causes = |moment| after(&[moment], 60).map(|silence| silence.causes[0]);
        let first = [
            causes(BootEvent::PoweredOn),
            causes(asked(Stage::UefiFirmware)),
            causes(got(Stage::UefiFirmware)),
            causes(got(Stage::Ipxe)),
            causes(BootEvent::FetchedScript),
            causes(BootEvent::FetchedKernel { bytes: 1, millis: 1 }),
        ];
        assert!(first.iter().all(Option::is_some));
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(distinct.len(), first.len());
    }

    #[test]
    fn nothing_is_expected_of_a_machine_that_is_off_or_installed() {
        let phoned = BootEvent::PhonedHome { hostname: "nuc1".into() };
        for moments in [&[BootEvent::PoweredOff][..], &[BootEvent::PoweredOn, phoned], &[]] {
            assert_eq!(after(moments, 100_000), None, "{moments:?}");
        }
        assert_eq!(
            after(
                &[BootEvent::GotAddress { ip: [10, 0, 0, 1].into(), stage: Stage::System }],
                9999
            ),
            None
        );
    }
}
