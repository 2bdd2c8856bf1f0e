//! Plan for an action, and the decision about a retry after a failure.

use std::time::Duration;

use api::bmc::{Action, BootDevice, PowerAction, RunStatus};
use bmc::{BootOverride, Power};

use super::act::Failure;

/// Maximum time from the start of a Task to a retry (same as upstream).
const LIMIT: Duration = Duration::from_secs(600);
/// Wait between a failed attempt and the next.
const RETRY: Duration = Duration::from_secs(2);

/// Message of the condition `Running` after the start of a Task.
pub const BEGUN: &str = "begun";
/// Message of the condition `Running` after an action that must not be repeated was sent.
pub const SENT: &str = "sent; not to be repeated";
/// Message of the condition `Running` after the Task may have switched the machine off.
const OFF_SENT: &str = "power off sent";

/// Action of a Task as the steps of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Changes the power to this state and confirms it.
    Reach(Power),
    /// Requests a shutdown of the operating system, and confirms that the power is off.
    ShutDown,
    /// Reads the power state only.
    Read,
    /// Power cycle or hard reset, which must not be repeated.
    Restart(bmc::PowerAction),
    /// Sets the boot device of the next boot or of every boot.
    Boot(BootOverride),
    /// Boots next from this URL by UEFI HTTP boot.
    HttpBoot(String),
    /// Inserts the CD image at this URL as virtual media.
    Insert(String),
    /// Ejects the virtual media.
    Eject,
}

impl Plan {
    /// Returns true if a repetition of the action does harm (power cycle, reset).
    pub fn needs_mark(&self) -> bool {
        matches!(self, Self::Restart(_))
    }

    /// Returns true if the action leaves the machine without power.
    pub fn takes_power(&self) -> bool {
        matches!(self, Self::Reach(Power::Off) | Self::ShutDown)
    }
}

/// Returns the plan of an action.
///
/// # Errors
/// The action is empty or has no driver, as a sentence.
pub fn plan(action: &Action) -> Result<Plan, String> {
    if let Some(power) = action.power_action {
        return Ok(match power {
            PowerAction::On => Plan::Reach(Power::On),
            PowerAction::Off => Plan::Reach(Power::Off),
            PowerAction::Soft => Plan::ShutDown,
            PowerAction::Status => Plan::Read,
            PowerAction::Cycle => Plan::Restart(bmc::PowerAction::Cycle),
            PowerAction::Reset => Plan::Restart(bmc::PowerAction::Reset),
        });
    }
    if let Some(boot) = &action.boot_device {
        let device = device(boot.device);
        return Ok(Plan::Boot(BootOverride {
            device,
            persistent: boot.persistent,
            efi: boot.efi_boot,
        }));
    }
    if let Some(boot) = &action.one_time_boot_device_action {
        let first = boot.device.first().ok_or("oneTimeBootDeviceAction has no device")?;
        let device = device(*first);
        return Ok(Plan::Boot(BootOverride { device, persistent: false, efi: boot.efi_boot }));
    }
    match &action.virtual_media_action {
        Some(media) => media_plan(media),
        None => Err("the action is empty".into()),
    }
}

/// Returns the plan of `virtualMediaAction`. Without `mediaURL`, the media is ejected, as upstream.
/// The kind `UefiHttp` is the box's own: Redfish's name of UEFI HTTP boot (DSP0268,
/// BootSourceOverrideTarget).
fn media_plan(media: &serde_json::Value) -> Result<Plan, String> {
    let text = |name: &str| media.get(name).and_then(|it| it.as_str()).unwrap_or_default().trim();
    match (text("kind"), text("mediaURL")) {
        ("CD", "") => Ok(Plan::Eject),
        ("CD", url) => Ok(Plan::Insert(url.to_owned())),
        ("UefiHttp", "") => Err("virtualMediaAction of kind UefiHttp needs mediaURL".into()),
        ("UefiHttp", url) => Ok(Plan::HttpBoot(url.to_owned())),
        (kind, _) => {
            Err(format!("expected CD or UefiHttp in virtualMediaAction.kind, found {kind:?}"))
        }
    }
}

fn device(device: BootDevice) -> bmc::BootDevice {
    match device {
        BootDevice::Pxe => bmc::BootDevice::Pxe,
        BootDevice::Disk => bmc::BootDevice::Disk,
        BootDevice::Bios => bmc::BootDevice::Bios,
        BootDevice::Cdrom => bmc::BootDevice::Cdrom,
        BootDevice::Safe => bmc::BootDevice::Safe,
    }
}

/// Returns true if the command was sent, possibly before a restart of the box.
pub fn sent(status: &RunStatus) -> bool {
    status.condition("Running").is_some_and(|running| running.message == SENT)
}

/// Returns true if a power-off Task with this status may have switched the machine off. Returns
/// false if the machine was off before.
pub fn may_be_off(status: &RunStatus) -> bool {
    status.condition("Running").is_some_and(|running| running.message == OFF_SENT)
}

/// Records in the status that the machine may be off from now on.
pub fn set_off_sent(status: &mut RunStatus) {
    status.set("Running", OFF_SENT);
}

/// Returns the wait before the next attempt of a Task of this age; `None`: no further attempt.
pub fn after(failure: &Failure, age: Duration) -> Option<Duration> {
    (failure.is_transient() && age < LIMIT).then_some(RETRY)
}

/// Returns the message of a Task that ends with `failure` at this age. The limit of one attempt is
/// not given for an unknown power state: the BMC did not respond in all attempts.
pub fn end_message(failure: &Failure, age: Duration) -> String {
    if !failure.is_transient() {
        return failure.to_string();
    }
    let is_unknown =
        matches!(failure, Failure::Bmc(bmc::Error::NotConfirmed { last: Power::Unknown, .. }));
    let cause = failure.cause().filter(|_| is_unknown).unwrap_or_else(|| failure.to_string());
    let millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    format!("not done after {}: {cause}", stdx::seconds(millis))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::bmc::{Action, BootDevice, BootDeviceConfig, OneTimeBootDevice, PowerAction};
    use bmc::{BootOverride, Power};

    use super::{Failure, LIMIT, Plan, after, end_message, plan};

    #[test]
    fn every_action_has_a_plan_or_a_reason() {
        let power = |action| Action { power_action: Some(action), ..Default::default() };
        assert_eq!(plan(&power(PowerAction::On)), Ok(Plan::Reach(Power::On)));
        assert_eq!(plan(&power(PowerAction::Off)), Ok(Plan::Reach(Power::Off)));
        assert_eq!(plan(&power(PowerAction::Soft)), Ok(Plan::ShutDown));
        assert_eq!(plan(&power(PowerAction::Status)), Ok(Plan::Read));
        for (action, want) in [
            (PowerAction::Cycle, bmc::PowerAction::Cycle),
            (PowerAction::Reset, bmc::PowerAction::Reset),
        ] {
            let plan = plan(&power(action)).unwrap();
            assert_eq!(plan, Plan::Restart(want));
            assert!(plan.needs_mark());
        }
        assert!(plan(&Action::default()).is_err());
        let media = |media| Action { virtual_media_action: Some(media), ..Default::default() };
        let cd = serde_json::json!({ "kind": "CD", "mediaURL": "http://a/b.iso" });
        assert_eq!(plan(&media(cd)), Ok(Plan::Insert("http://a/b.iso".into())));
        assert_eq!(plan(&media(serde_json::json!({ "kind": "CD" }))), Ok(Plan::Eject));
        let http = serde_json::json!({ "kind": "UefiHttp", "mediaURL": "https://a/b.efi" });
        assert_eq!(plan(&media(http)), Ok(Plan::HttpBoot("https://a/b.efi".into())));
        let without = plan(&media(serde_json::json!({ "kind": "UefiHttp" }))).unwrap_err();
        assert!(without.contains("needs mediaURL"), "{without}");
        assert!(plan(&media(1.into())).unwrap_err().contains("kind"));
    }

    #[test]
    fn both_spellings_of_a_boot_device() {
        let want = BootOverride { device: bmc::BootDevice::Pxe, persistent: false, efi: true };
        let new = BootDeviceConfig { device: BootDevice::Pxe, persistent: false, efi_boot: true };
        let new = Action { boot_device: Some(new), ..Default::default() };
        let old = OneTimeBootDevice { device: vec![BootDevice::Pxe], efi_boot: true };
        let old = Action { one_time_boot_device_action: Some(old), ..Default::default() };
        for action in [new, old] {
            assert_eq!(plan(&action), Ok(Plan::Boot(want)));
        }
    }

    #[test]
    fn patience_ends() {
        let failure = Failure::NotConnected("no secret".into());
        assert!(after(&failure, Duration::ZERO).is_some());
        assert_eq!(after(&failure, LIMIT), None);
    }

    #[test]
    fn the_last_message_has_the_error_of_the_bmc_and_the_whole_time() {
        let age = Duration::from_secs(614);
        let silence = || {
            let address = (&bmc::Address::ipmi("10.77.0.101")).into();
            let after = Duration::from_millis(3500);
            bmc::Error::from(bmc::IpmiError::NoAnswer { address, step: "Open Session", after })
        };
        let unconfirmed = |last| {
            let (want, after) = (Power::Off, Duration::from_secs(60));
            let source = Some(Box::new(silence()));
            Failure::Bmc(bmc::Error::NotConfirmed { want, last, reason: None, after, source })
        };
        let message = "not done after 10 min 14 s: BMC 10.77.0.101:623 did not respond to Open \
                       Session within 3.5 s: is it powered, connected and is IPMI over LAN \
                       enabled?";
        assert_eq!(end_message(&Failure::Bmc(silence()), age), message);
        assert_eq!(end_message(&unconfirmed(Power::Unknown), age), message);
        let still_on = end_message(&unconfirmed(Power::On), age);
        let state =
            "not done after 10 min 14 s: the power was not off within 60.0 s; last state: on";
        assert!(still_on.starts_with(state), "{still_on}");
        assert_eq!(end_message(&Failure::StillOn, age), Failure::StillOn.to_string());
    }
}
