//! Pages as rows of text, in the layout of the examples in the manual.

use api::network::Mode;
use status::view::problem::{Problem, Remedy, Urgency};
use status::view::{Machine, Nic, StatusView, TimeState, Update, UpdateState, moment, problems};

use super::{COLUMNS, ROWS, Rows};
use crate::draw::bar;
use crate::draw::text::{fit, fit_name, pair, wrap};
use crate::model::{Buttons, DETAIL_LINES_MAX, INSTALLING_ROWS, ScreenInput, find};
use crate::model::{machine, permitted, retry};
use crate::screens::{Tally, counted, pin_lines, version};

/// Width of a machine's name beside its bar, and width of the bar, in columns.
const NAME: usize = 6;
const BAR: usize = 10;
/// Maximum number of interfaces on the network page.
const NICS: usize = 2;

pub fn boot(view: &StatusView) -> Rows {
    let version = format!("v{}", view.version);
    let mut rows = vec![pair(&view.name, &version, COLUMNS)];
    let Some(step) = view.starting() else {
        rows.push("Started".to_owned());
        return rows;
    };
    let count = view.boot.len();
    let at = view.boot.iter().take_while(|step| step.done).count() + 1;
    let share = format!(" {at}/{count}");
    let bar = bar::of_characters(at as u64, count as u64, COLUMNS.saturating_sub(share.len()));
    let slow = step.slow();
    rows.push(if slow { "longer than usual" } else { "Starting" }.to_owned());
    rows.push(fit(&format!("{bar}{share}"), COLUMNS));
    rows.extend(wrap(&step.name, COLUMNS, 2));
    if let Some(took) = step.took_millis.filter(|_| slow) {
        let usual = step.usual_millis.div_ceil(1000);
        rows.push(fit(&format!("usually {usual} s, now {} s", took / 1000), COLUMNS));
    }
    rows
}

pub fn secret(view: &StatusView) -> Rows {
    let mut rows = vec!["PIN".to_owned()];
    rows.extend(pin_lines(&view.pin).iter().map(|line| fit(line, COLUMNS)));
    if let Some(claim) = &view.claim {
        rows.push("code".to_owned());
        rows.push(fit(&claim.code, COLUMNS));
    }
    rows
}

pub fn home(view: &StatusView, number: &str) -> Rows {
    let all = view.machines.len();
    let Tally { in_service, ready, installing, failed } = Tally::of(view);
    let settled = match (in_service, ready) {
        (0, 0) => counted(all, "machine"),
        (0, ready) => pair(&counted(all, "machine"), &format!("{ready} ready"), COLUMNS),
        (serving, 0) => format!("{serving} in service"),
        (serving, ready) => {
            pair(&format!("{serving} in service"), &format!("{ready} ready"), COLUMNS)
        }
    };
    let (address, nic) = match view.address() {
        Some((nic, address)) => (address, nic.name.as_str()),
        None => ("no address", ""),
    };
    let alarm = if failed > 0 { format!("{failed} !FAIL") } else { String::new() };
    let dhcp = match view.nics.iter().find(|nic| nic.armed()) {
        Some(nic) => format!("dhcp {}", nic.name),
        None => "dhcp off".to_owned(),
    };
    let power = format!("{} of {all} on", view.powered_on());
    vec![
        pair(&view.name, &view.time_of_day(view.now), COLUMNS),
        pair(address, &fit(nic, 5), COLUMNS),
        settled,
        pair(&format!("{installing} installing"), &alarm, COLUMNS),
        pair(&dhcp, &power, COLUMNS),
        pair(&all_else(view, failed > 0), number, COLUMNS),
    ]
}

/// Returns the last row of the first page: the first problem that is not of a machine, else `all
/// ok`. `is_shown` is true if the rows above show a machine with a problem.
fn all_else(view: &StatusView, is_shown: bool) -> String {
    let problems = problems(view);
    match problems.iter().find(|problem| problem.urgency != Urgency::Machine) {
        Some(problem) => format!("! {}", problem.title),
        None if is_shown => "all else ok".to_owned(),
        None => "all ok".to_owned(),
    }
}

pub fn installing(view: &StatusView, shown: &ScreenInput, number: &str) -> Rows {
    let under_way: Vec<&Machine> = view.machines.iter().filter(|it| it.under_way()).collect();
    let mut rows = vec![pair(&format!("INSTALLING {}", under_way.len()), number, COLUMNS)];
    if under_way.is_empty() {
        rows.push("nothing installing".to_owned());
    }
    rows.extend(under_way.iter().take(INSTALLING_ROWS).map(|it| progress(it)));
    let more = under_way.len().saturating_sub(INSTALLING_ROWS);
    let queued = view.machines.iter().find(|machine| machine.queued());
    rows.push(match (more, queued) {
        (0, None) => String::new(),
        (0, Some(next)) => format!("next: {}", fit_name(&next.name, COLUMNS - NAME)),
        (more, _) => format!("and {more} more"),
    });
    if !view.machines.is_empty() {
        rows.push(match shown.buttons {
            Buttons::Three => "UP/DN page  SEL all".to_owned(),
            Buttons::One => "press page  hold all".to_owned(),
            Buttons::None => String::new(),
        });
    }
    rows
}

/// Formats the progress, such as `nuc-04 [######..] 68%`, or the reason of a wait.
fn progress(machine: &Machine) -> String {
    let name = fit_name(&machine.name, NAME);
    match machine.percent {
        Some(percent) => {
            let bar = bar::of_characters(u64::from(percent), 100, BAR);
            format!("{name:NAME$} {bar}{:>4}", format!("{}%", percent.min(100)))
        }
        None if machine.step.is_empty() => {
            fit(&format!("{name:NAME$} {}", machine.state.word().text), COLUMNS)
        }
        None => fit(&format!("{name:NAME$} {}", machine.step), COLUMNS),
    }
}

pub fn problem(view: &StatusView, shown: &ScreenInput, key: &str, number: &str) -> Rows {
    let Some(problem) = find(view, key) else {
        return vec![pair("PROBLEMS", number, COLUMNS), "none".to_owned()];
    };
    let mut rows = vec![headed(&problem, number)];
    let keys = problem_keys(view, shown, &problem);
    let when = when(view, &problem);
    let room = ROWS - 1 - usize::from(!when.is_empty()) - usize::from(!keys.is_empty());
    let mut brief: Rows = problem.brief.iter().flat_map(|it| wrap(it, COLUMNS, room)).collect();
    brief.truncate(room);
    rows.extend(brief);
    rows.extend([when, keys].into_iter().filter(|row| !row.is_empty()));
    rows
}

fn headed(problem: &Problem, number: &str) -> String {
    let title = match &problem.machine {
        Some(name) => {
            let word = problem.title.strip_prefix(name.as_str()).unwrap_or_default();
            let taken = "! ".len() + word.chars().count() + 1 + number.len();
            format!("{}{word}", fit_name(name, COLUMNS.saturating_sub(taken)))
        }
        None => problem.title.to_string(),
    };
    // The mark is left out when the title needs its space.
    let room = COLUMNS.saturating_sub(number.len() + 1);
    let marked = format!("! {title}");
    pair(if marked.chars().count() <= room { &marked } else { &title }, number, COLUMNS)
}

/// Formats time and attempt of a machine's problem, such as `14:01  try 2 of 3`; else empty.
fn when(view: &StatusView, problem: &Problem) -> String {
    let Some(at) = problem.since.filter(|_| problem.urgency == Urgency::Machine) else {
        return String::new();
    };
    let time = view.time_of_day(at);
    match problem.attempt {
        Some((attempt, of)) => fit(&format!("{time}  try {attempt} of {of}"), COLUMNS),
        None => time,
    }
}

fn problem_keys(view: &StatusView, shown: &ScreenInput, problem: &Problem) -> String {
    let can_retry = retry(view, problem, &shown.actions).is_some();
    let select = match problem.remedy {
        Remedy::Retry if can_retry => "retry",
        Remedy::Rescan => "what to do",
        Remedy::Retry | Remedy::Read => "details",
    };
    let subject = problem.machine.as_ref().and_then(|name| machine(view, name));
    let has_actions = subject.is_some_and(|it| !permitted(it, &shown.actions).is_empty());
    // An unplugged cable has no further details.
    let is_shown = problem.trouble.code.as_str() == "NoCarrier";
    match shown.buttons {
        Buttons::None => String::new(),
        _ if is_shown => String::new(),
        Buttons::Three if has_actions => format!("SEL {select} hold all"),
        Buttons::Three => format!("SEL {select}"),
        Buttons::One if has_actions => "hold: actions".to_owned(),
        Buttons::One => format!("hold: {select}"),
    }
}

pub fn details(view: &StatusView, key: &str, line: usize) -> Rows {
    let Some(problem) = find(view, key) else { return vec!["PROBLEMS".to_owned()] };
    let mut rows = vec![headed(&problem, "")];
    let lines = wrap(&problem.trouble.sentence(), COLUMNS, DETAIL_LINES_MAX);
    let from = line.min(lines.len().saturating_sub(1));
    rows.extend(lines.into_iter().skip(from).take(ROWS - 1));
    rows
}

pub fn network(view: &StatusView, number: &str) -> Rows {
    let mut rows = vec![pair("NETWORK", number, COLUMNS)];
    rows.extend(view.nics.iter().take(NICS).map(interface));
    let mode = match view.nics.iter().find(|nic| nic.mode != Mode::Off) {
        Some(nic) if nic.armed() => format!("dhcp {}", nic.mode),
        Some(nic) => format!("dhcp {} held", nic.mode),
        None => "dhcp off".to_owned(),
    };
    rows.push(fit(&format!("{mode}  {} on", view.powered_on()), COLUMNS));
    let foreign = view.nics.iter().find_map(|nic| nic.foreign.first());
    rows.push(match foreign {
        None => "other dhcp: none".to_owned(),
        Some(server) => fit(&format!("other {}", server.address), COLUMNS),
    });
    let internet = match view.system.internet {
        Some(true) => "internet ok",
        Some(false) => "internet no",
        None => "internet ?",
    };
    let time = match view.clock.state {
        TimeState::Synced => "time ok",
        TimeState::Holdover => "time kept",
        TimeState::Unset => "no time",
    };
    rows.push(fit(&format!("{internet}  {time}"), COLUMNS));
    rows
}

/// Formats interface and address, such as `eth0 10.20.30.40/24`. If the line is too long, the
/// prefix length is removed first.
fn interface(nic: &Nic) -> String {
    let name = fit(&nic.name, 6);
    let whole = format!("{name} {}", nic.address);
    match nic.address() {
        None if nic.link_mbps.is_none() => format!("{name} no cable"),
        None => format!("{name} no address"),
        Some(_) if whole.chars().count() <= COLUMNS => fit(&whole, COLUMNS),
        Some(address) => fit(&format!("{name} {address}"), COLUMNS),
    }
}

pub fn images(view: &StatusView, number: &str) -> Rows {
    let used = moment::bytes(view.images.used);
    let mut rows = vec![pair("IMAGES", number, COLUMNS)];
    rows.push(fit(&format!("{used} of {}", moment::bytes(view.images.capacity)), COLUMNS));
    rows.push(fit(&counted(view.images.items.len(), "file"), COLUMNS));
    rows
}

pub fn system(view: &StatusView, number: &str) -> Rows {
    let system = &view.system;
    let cpu = system.cpu_percent.map_or("?".to_owned(), |it| format!("{}%", it.min(100)));
    let ram = format!("{}/{}", moment::bytes(system.ram_used), moment::bytes(system.ram_total));
    let cache = moment::bytes(view.images.used);
    let heat = system.temperature.map_or(String::new(), |it| format!("{it}C"));
    let backup = match system.backup_at {
        Some(at) => format!("backup {}", view.ago(at)),
        None => "no backup yet".to_owned(),
    };
    let rows = [
        pair("SYSTEM", number, COLUMNS),
        version(view),
        format!("cpu {cpu}  ram {ram}"),
        format!("disk {}% cache {cache}", system.disk_percent()),
        format!("{heat:9}up {}", moment::uptime(view.uptime_seconds)),
        backup,
    ];
    rows.iter().map(|row| fit(row, COLUMNS)).collect()
}

pub fn update(view: &StatusView, number: &str) -> Rows {
    let Some(update) = &view.update else {
        let running = fit(&format!("running v{}", view.version), COLUMNS);
        return vec![pair("UPDATE", number, COLUMNS), "up to date".to_owned(), running];
    };
    let mut rows = vec![pair(&format!("UPDATE {}", update.version), number, COLUMNS)];
    if let Some(percent) = update.percent {
        let bar = bar::of_characters(u64::from(percent), 100, 17);
        rows.push(format!("{bar}{:>4}", format!("{}%", percent.min(100))));
    }
    rows.push(fit(&crate::screens::update_step(update), COLUMNS));
    rows.extend(update_rest(view, update));
    rows
}

fn update_rest(view: &StatusView, update: &Update) -> Rows {
    let mut rows = Vec::new();
    if update.state == UpdateState::RolledBack {
        rows.extend(wrap(&update.reason, COLUMNS, 2));
        rows.push(fit(&format!("back on {}", view.version), COLUMNS));
    } else if update.state.under_way() {
        rows.push("machines keep running".to_owned());
        rows.extend(wrap("do not worry about the power", COLUMNS, 2));
    }
    rows
}
