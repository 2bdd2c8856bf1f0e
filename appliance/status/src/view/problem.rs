//! Problems that need a person, most urgent first.

use jiff::{SignedDuration, Timestamp};

use super::{Fault, ForeignServer, Machine, MachineState, Nic, StatusView, Text, Trouble};
use super::{Update, UpdateState};

/// Age of the last downloaded backup above which a notice is shown: 7 days (BK-6).
pub const BACKUP_AGE_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Used share of the flash memory's lifetime from which a notice is shown (FW-3).
pub const FLASH_LIFE_PERCENT_MAX: u8 = 80;
/// Used share of the cache partition from which a notice is shown (IC-4).
pub const CACHE_PERCENT_MAX: u8 = 85;

/// Time for which a dismissed notice is hidden: 7 days. A notice that begins anew is shown at once.
pub const DISMISSED_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Delay of a machine's work from which its cause is urgent, such as a BMC that does not respond.
const DELAY_MAX: SignedDuration = SignedDuration::from_mins(2);

/// Urgency of a problem, most urgent first. A problem of all machines precedes one machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// The box does not serve machines.
    Box,
    /// A machine does not proceed.
    Machine,
    /// Notice that can wait.
    Notice,
}

/// Action that an interface offers for a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Starts the machine's workflow again.
    Retry,
    /// Probes the network again for other DHCP servers.
    Rescan,
    /// No action; the message itself is the remedy.
    Read,
}

/// Problem that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Key that stays the same while the problem lasts: `machine/nuc-07/Failed`.
    pub key: String,
    /// Urgency of the problem.
    pub urgency: Urgency,
    /// A few words for a small screen: `DHCP STOPPED`, `nuc-07 FAILED`.
    pub title: Text,
    /// Short lines for a small screen.
    pub brief: Vec<Text>,
    /// Full text of the problem.
    pub trouble: Trouble,
    /// Time of the beginning, if known.
    pub since: Option<Timestamp>,
    /// Name of the machine; `None` for a problem of the box.
    pub machine: Option<Text>,
    /// Number of the failed attempt and the maximum; `None` if the work has only one attempt.
    pub attempt: Option<(u32, u32)>,
    /// Action that an interface offers.
    pub remedy: Remedy,
}

impl Problem {
    /// Returns true if a person may hide the problem: a notice about the box.
    pub fn may_be_dismissed(&self) -> bool {
        self.urgency == Urgency::Notice && self.machine.is_none()
    }

    /// Returns true if a dismissal of `at` hides the problem at the time `now`.
    pub fn is_hidden(&self, at: Timestamp, now: Timestamp) -> bool {
        let lasts = now.duration_since(at) < DISMISSED_FOR && at <= now;
        self.may_be_dismissed() && lasts && self.since.is_none_or(|since| since <= at)
    }
}

/// Returns the problems that no person dismissed, sorted by urgency, then by time with the oldest
/// first.
pub fn problems(view: &StatusView) -> Vec<Problem> {
    let mut found = all_problems(view);
    let is_dismissed = |it: &Problem| {
        it.may_be_dismissed() && view.dismissed.iter().any(|key| *key == it.key.as_str().into())
    };
    found.retain(|problem| !is_dismissed(problem));
    found
}

/// Returns all problems, also those that a person dismissed, in the order of [`problems`].
pub fn all_problems(view: &StatusView) -> Vec<Problem> {
    let mut found = Vec::new();
    found.extend((!view.safe_mode.is_empty()).then(|| safe_mode(view)));
    for nic in &view.nics {
        found.extend(nic.foreign.first().filter(|_| nic.stopped()).map(|by| stopped(nic, by)));
        let unplugged = nic.link_mbps.is_none() && nic.provisions();
        found.extend((unplugged && view.claim.is_none()).then(|| no_cable(nic)));
    }
    let undone = |update: &&Update| update.state == UpdateState::RolledBack;
    found.extend(view.update.as_ref().filter(undone).map(|update| update_undone(view, update)));
    found.extend(view.faults.iter().map(fault));
    found.extend(view.machines.iter().filter(|it| it.needs_person()).map(machine));
    let delayed = |it: &&Machine| !it.needs_person() && it.is_expected() && it.trouble.is_some();
    found.extend(view.machines.iter().filter(delayed).map(|it| delay(it, view.now)));
    found.extend(notices(view));
    let last = Timestamp::MAX;
    found.sort_by_key(|problem| (problem.urgency, problem.since.unwrap_or(last)));
    found
}

fn box_problem(key: String, title: String, brief: &[String], trouble: Trouble) -> Problem {
    Problem {
        key,
        urgency: Urgency::Box,
        title: title.into(),
        brief: brief.iter().map(|line| line.as_str().into()).collect(),
        trouble,
        since: None,
        machine: None,
        attempt: None,
        remedy: Remedy::Read,
    }
}

fn stopped(nic: &Nic, by: &ForeignServer) -> Problem {
    let brief = [
        "another dhcp server".to_owned(),
        format!("{} on {}", by.address, nic.name),
        by.mac.to_string(),
    ];
    let vendor = if by.vendor.is_empty() { String::new() } else { format!(", {}", by.vendor) };
    let trouble = Trouble {
        what: "DHCP stopped".into(),
        on: nic.name.clone(),
        why: format!("{} ({}{vendor}) answers there too", by.address, by.mac).into(),
        now: format!("Unplug it or move the cable, then resume {}", nic.name).into(),
        code: "ForeignDhcpServer".into(),
        ..Trouble::default()
    };
    let key = format!("dhcp/{}/{}", nic.name, by.mac);
    let problem = box_problem(key, "DHCP STOPPED".to_owned(), &brief, trouble);
    Problem { since: by.heard, remedy: Remedy::Rescan, ..problem }
}

fn safe_mode(view: &StatusView) -> Problem {
    let trouble = safe_mode_trouble(view);
    let brief = ["machines are not served".to_owned(), trouble.why.to_string()];
    let (key, title) = match view.without_state {
        true => ("without-state", "STATE LOST"),
        false => ("safe-mode", "SAFE MODE"),
    };
    box_problem(key.to_owned(), title.to_owned(), &brief, trouble)
}

/// Returns the explanation of safe mode, with the remedy that ends it.
pub fn safe_mode_trouble(view: &StatusView) -> Trouble {
    if view.without_state {
        return without_state(view);
    }
    Trouble {
        what: "This box is in safe mode, without its settings".into(),
        on: Text::default(),
        why: view.safe_mode.clone(),
        now: "Restart the box to leave safe mode".into(),
        code: "SafeMode".into(),
        ..Trouble::default()
    }
}

fn without_state(view: &StatusView) -> Trouble {
    Trouble {
        what: "This box cannot read its data, serves no machine and cannot be claimed".into(),
        on: Text::default(),
        why: view.safe_mode.clone(),
        now: "Restart it; if that does not help, replace its disk, or choose the factory reset in \
              its boot menu, at its panel or by the file \"reset\", which erases its data. \
              Then restore a backup"
            .into(),
        code: "StateLost".into(),
        ..Trouble::default()
    }
}

fn no_cable(nic: &Nic) -> Problem {
    let name = &nic.name;
    let brief = format!("machines cannot reach this box. Plug {name} into the rack switch.");
    let trouble = Trouble {
        what: "No cable".into(),
        on: name.clone(),
        why: "machines cannot reach this box".into(),
        now: format!("Plug {name} into the rack switch").into(),
        code: "NoCarrier".into(),
        ..Trouble::default()
    };
    let title = format!("NO CABLE ON {name}");
    Problem {
        since: nic.link_since,
        ..box_problem(format!("link/{name}"), title, &[brief], trouble)
    }
}

fn update_undone(view: &StatusView, update: &Update) -> Problem {
    let version = &update.version;
    let brief = [
        format!("{version} did not start:"),
        update.reason.to_string(),
        format!("back on {}", view.version),
    ];
    let trouble = Trouble {
        what: format!("{version} was rolled back").into(),
        on: Text::default(),
        why: update.reason.clone(),
        now: format!("Running {}. See that boot's log before you try again", view.version).into(),
        code: "UpdateUndone".into(),
        ..Trouble::default()
    };
    let key = format!("update/{version}");
    let problem = box_problem(key, "UPDATE FAILED".to_owned(), &brief, trouble);
    Problem { since: update.since, ..problem }
}

fn fault(fault: &Fault) -> Problem {
    let urgency = if fault.urgent { Urgency::Box } else { Urgency::Notice };
    let brief = [fault.trouble.sentence()];
    let key = format!("fault/{}/{}", fault.trouble.code, fault.title);
    let problem = box_problem(key, fault.title.to_string(), &brief, fault.trouble.clone());
    Problem { urgency, since: fault.since, ..problem }
}

fn machine(machine: &Machine) -> Problem {
    let word = machine.state.word().text;
    let name = &machine.name;
    let trouble = machine.trouble.clone().unwrap_or_else(|| without_reason(machine));
    let step = if machine.step.is_empty() { &trouble.what } else { &machine.step };
    let brief = match trouble.why.as_str() {
        "" => step.to_string(),
        why => format!("{step}: {why}"),
    };
    let attempt = (machine.attempts_max > 1).then_some((machine.attempt, machine.attempts_max));
    let title = format!("{name} {}", word.to_uppercase());
    let problem = box_problem(format!("machine/{name}/{word}"), title, &[brief], trouble);
    let urgency = Urgency::Machine;
    let remedy = match machine.state {
        MachineState::Silent => Remedy::Read,
        _ => Remedy::Retry,
    };
    Problem {
        urgency,
        since: machine.since,
        machine: Some(name.clone()),
        attempt,
        remedy,
        ..problem
    }
}

/// Returns the problem of a machine whose work is delayed: a notice, which becomes urgent if the
/// box itself cannot end the delay.
fn delay(delayed: &Machine, now: Timestamp) -> Problem {
    let is_long = delayed.since.is_some_and(|since| now.duration_since(since) >= DELAY_MAX);
    let urgent = is_long && delayed.state != MachineState::Silent;
    let urgency = if urgent { Urgency::Machine } else { Urgency::Notice };
    Problem { urgency, remedy: Remedy::Read, ..machine(delayed) }
}

/// Returns a failure text for a machine that reported no reason.
fn without_reason(machine: &Machine) -> Trouble {
    let (what, now) = match machine.state {
        MachineState::Silent => ("No report came", "Check its screen, or power it off and on"),
        MachineState::TimedOut => ("The workflow timed out", "See its history, then retry it"),
        _ => ("The workflow failed", "See its history, then retry it"),
    };
    let on = machine.name.clone();
    Trouble { what: what.into(), on, now: now.into(), ..Trouble::default() }
}

fn notices(view: &StatusView) -> Vec<Problem> {
    let notice = |key: &str, title: &str, trouble: Trouble| {
        let brief = [format!("{}. {}", trouble.what, trouble.now)];
        let problem = box_problem(key.to_owned(), title.to_owned(), &brief, trouble);
        Problem { urgency: Urgency::Notice, ..problem }
    };
    let trouble = |what: String, now: &str| Trouble {
        what: what.into(),
        now: now.into(),
        ..Trouble::default()
    };
    let mut found = Vec::new();
    if let Some(at) =
        view.system.backup_at.filter(|at| view.now.duration_since(*at) > BACKUP_AGE_MAX)
    {
        let what = format!("The last download of a backup was {}", view.ago(at));
        found.push(notice("backup", "BACKUP IS OLD", trouble(what, "Download a new backup")));
    }
    if let Some(used) = view.system.flash_life_percent.filter(|it| *it >= FLASH_LIFE_PERCENT_MAX) {
        let what = format!("{used} % of the flash memory's life are used up");
        found.push(notice("flash", "FLASH WEARS OUT", trouble(what, "Plan to replace the disk")));
    }
    let cache = super::system::percent(view.images.used, view.images.capacity);
    if cache >= CACHE_PERCENT_MAX {
        let what = format!("The cache is {cache} % full");
        found.push(notice("cache", "CACHE IS FULL", trouble(what, "Remove or unpin images")));
    }
    found
}
