//! Data of the first-boot screens (FB-5). The screens read and write the settings. The parser of
//! the settings checks every value again.

mod nics;

use std::collections::BTreeMap;
use std::sync::Arc;

use config::{self, Restart, zone};
use platform::init::{self, Leave};
use platform::net;
use provisioning::networks::nic;
use status::view::Nic;
use stdx::Hint as _;
use web::setup::{NicSetup, Setup, UpdateTimes};

use crate::settings::{ChangeAuthor, Settings, SettingsError, roles};

/// Author of changes that the first-boot screens make.
const ACTOR: &str = "the web page";

/// First-boot screens of a box that runs as firmware.
pub struct Screens(pub Arc<Settings>);

impl Setup for Screens {
    fn nics(&self) -> Vec<NicSetup> {
        nics::now(seen(), &self.0.config())
    }

    fn set_nics(&self, nics: &[NicSetup]) -> Result<(), String> {
        let wanted = nics::wanted(nics)?;
        let by = ChangeAuthor { actor: ACTOR, note: "use of each NIC" };
        reported(self.0.rewrite(by, |text| roles::write(text, &wanted)))
    }

    fn times(&self) -> UpdateTimes {
        let config = self.0.config();
        let hours = config.update.hours().map(|hours| hours.ends()).unwrap_or_default();
        UpdateTimes {
            zone: config.time.zone.unwrap_or_default(),
            from: hours.0,
            to: hours.1,
            ask: config.update.restart == Restart::Ask,
        }
    }

    fn set_times(&self, times: &UpdateTimes) -> Result<(), String> {
        if !times.zone.is_empty() && zone(&times.zone).is_none() {
            return Err(format!(
                "{:?} is not a time zone; use a name such as Europe/Berlin.",
                times.zone
            ));
        }
        if times.from.is_empty() != times.to.is_empty() {
            return Err("Set both hours, or neither.".to_owned());
        }
        let hours = format!("{}-{}", times.from, times.to);
        let some = |text: &str, there: bool| there.then(|| format!("{text:?}"));
        let restart = if times.ask { Restart::Ask } else { Restart::Auto };
        let keys = [
            ("time.zone", some(&times.zone, !times.zone.is_empty())),
            ("update.hours", some(&hours, !times.from.is_empty())),
            ("update.restart", some(restart.word(), restart != Restart::default())),
        ];
        let keys: BTreeMap<_, _> = keys.map(|(key, value)| (key.to_owned(), value)).into();
        reported(self.0.change(ChangeAuthor { actor: ACTOR, note: "time zone and updates" }, &keys))
    }

    fn zones(&self) -> Vec<&'static str> {
        config::zones().collect()
    }

    fn needs_restart(&self) -> bool {
        self.0.report(false).is_ok_and(|report| !report.restart.is_empty())
    }

    fn restart(&self) -> Result<(), String> {
        tracing::info!("restart requested on the web page");
        init::ask(Leave::Restart).map_err(|error| stdx::chain(&error))
    }
}

fn reported<T>(done: Result<T, SettingsError>) -> Result<(), String> {
    done.map(drop).map_err(|refused| {
        let (why, hint) = (stdx::chain(&refused), refused.hint());
        tracing::warn!(reason = why, hint, "a change of the settings was refused");
        stdx::with_hint(&refused)
    })
}

/// Reads the NICs of the machine, without a use.
fn seen() -> Vec<NicSetup> {
    let looked = tokio::runtime::Handle::current().block_on(net::look());
    let nic_setup = |seen: net::InterfaceState| {
        let known = nic::read(&seen.link.name).ok();
        let nic = Nic { link_mbps: seen.mbps, ..Nic::default() };
        let v4 = seen.addresses.iter().find(|(address, _)| address.is_ipv4());
        NicSetup {
            mac: seen.link.mac.to_string(),
            link: nic.link(),
            address: v4.map(|(address, prefix)| format!("{address}/{prefix}")).unwrap_or_default(),
            default_route: known.is_some_and(|nic| nic.default_route),
            name: seen.link.name,
            ..NicSetup::default()
        }
    };
    looked.unwrap_or_default().into_iter().map(nic_setup).collect()
}
