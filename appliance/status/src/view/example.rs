//! Example views for golden tests: a rack of twelve machines in different states.

mod cluster_api;
mod system;

use api::network::Mode;
use jiff::{SignedDuration, Timestamp};
use stdx::MacAddr;

use super::machine::Sentence;
use super::{
    BootStep, Claim, Clock, Event, ForeignServer, Machine, MachineState, Nic, Power, Role,
};
use super::{StatusView, Text, TimeState, Trouble, Update, UpdateState, Work};
use crate::dhcp_client::DhcpClient;
use crate::image::{Image, ImageState, Images};
use crate::log::LogLine;

/// Time of the examples: Monday, 23 November 2026, 14:02:23 UTC.
const NOW: i64 = 1_795_442_543;

fn before(seconds: i64) -> Timestamp {
    let now = Timestamp::from_second(NOW).unwrap_or_default();
    now.saturating_sub(SignedDuration::from_secs(seconds)).unwrap_or_default()
}

/// View of a rack in work: some machines are installed or wait, and one failed.
pub fn working() -> StatusView {
    StatusView {
        revision: 4_711,
        now: before(0),
        name: "box-7f3a".into(),
        version: "1.4.0".into(),
        slot: "A".into(),
        pin: "F3A9-1C20-8BQK-77TM".into(),
        safe_mode: Text::default(),
        without_state: false,
        uptime_seconds: 12 * 86_400 + 4 * 3_600 + 7 * 60,
        boot: steps(7),
        claim: None,
        clock: Clock {
            state: TimeState::Synced,
            source: "10.20.30.1".into(),
            utc_offset_seconds: 0,
            zone: "".into(),
        },
        nics: nics(),
        machines: machines(),
        workflows: workflows(),
        heard: dhcp_clients(),
        ignored: vec![MacAddr([0x00, 0x11, 0x32, 0x5c, 0x9a, 0x01])],
        dismissed: Vec::new(),
        images: images(),
        cluster_api: cluster_api::cluster_api(),
        update: None,
        system: system::system(),
        events: events(),
        log: log(),
        faults: Vec::new(),
        boot_traffic: (0..60).map(|at| (at * 7_919 % 113) << 20).collect(),
        identifying: false,
    }
}

/// View of a box in safe mode, chosen in the boot menu.
pub fn safe_mode() -> StatusView {
    let mut view = working();
    view.safe_mode = "somebody chose it in the boot menu".into();
    for nic in &mut view.nics {
        nic.armed_since = None;
    }
    view
}

/// View of a box whose state volume cannot be mounted.
pub fn without_state() -> StatusView {
    let mut view = safe_mode();
    view.safe_mode = "its state volume cannot be used: cannot mount /dev/mmcblk0p4 at /state: \
                      Structure needs cleaning"
        .into();
    view.without_state = true;
    view.machines.clear();
    view.events.clear();
    view
}

/// View of a starting box. With `slow`, the fourth step takes longer than usual.
pub fn booting(slow: bool) -> StatusView {
    let mut boot = steps(3);
    boot[3].took_millis = Some(if slow { 9_000 } else { 1_000 });
    let machines = Vec::new();
    StatusView { boot, machines, uptime_seconds: 9, events: Vec::new(), ..working() }
}

/// View of an unclaimed box that is reachable on the network.
pub fn unclaimed() -> StatusView {
    let urls = vec!["https://10.20.30.40".into(), "https://box-7f3a.local".into()];
    let claim = Claim { urls, code: "7KQ4M2".into(), tries_left: 17, tries_max: 20 };
    let mut view = StatusView { claim: Some(claim), machines: Vec::new(), ..working() };
    view.events.clear();
    view.boot_traffic.clear();
    view.uptime_seconds = 312;
    view.images = Images::default();
    for nic in &mut view.nics {
        nic.mode = Mode::Off;
        nic.armed_since = None;
    }
    view
}

/// View of an unclaimed box without an address.
pub fn without_address() -> StatusView {
    let mut view = unclaimed();
    view.nics[0].address = Text::default();
    view.nics[0].link_since = Some(before(12));
    view.claim.iter_mut().for_each(|claim| claim.urls.clear());
    view
}

/// View of a rack whose machines are all in service.
pub fn calm() -> StatusView {
    let mut view = working();
    for machine in &mut view.machines {
        let Machine { name, mac, ip, .. } = machine.clone();
        let (state, power) = (MachineState::InService, Power::On);
        *machine = Machine { name, mac, ip, state, power, ..Machine::default() };
    }
    view
}

/// View of a box that stopped DHCP because of another DHCP server.
pub fn dhcp_stopped() -> StatusView {
    let mut view = working();
    view.nics[1].armed_since = None;
    view.nics[1].foreign = vec![ForeignServer {
        address: "192.168.1.1".into(),
        mac: "a4:2b:b0:11:22:33".into(),
        vendor: "TP-Link".into(),
        offered: "192.168.1.104".into(),
        heard: Some(before(4)),
    }];
    view
}

/// View of a box whose rack cable is unplugged.
pub fn no_cable() -> StatusView {
    let mut view = working();
    view.nics[1].link_mbps = None;
    view.nics[1].link_since = Some(before(31));
    view
}

/// View of a box that writes an update to slot B.
pub fn updating() -> StatusView {
    let update = Update {
        version: "1.5.0".into(),
        state: UpdateState::Verified,
        percent: Some(66),
        slot: "B".into(),
        since: Some(before(40)),
        ..Update::default()
    };
    StatusView { update: Some(update), ..working() }
}

/// View of a box whose update failed and was rolled back.
pub fn undone() -> StatusView {
    let update = Update {
        version: "1.5.0".into(),
        state: UpdateState::RolledBack,
        slot: "B".into(),
        reason: "eth1 could not serve".into(),
        since: Some(before(95)),
        ..Update::default()
    };
    StatusView { update: Some(update), ..working() }
}

fn steps(done: usize) -> Vec<BootStep> {
    let steps = [
        ("starting the kernel", 3_100),
        ("mounting the disks", 400),
        ("finding the network", 1_500),
        ("opening the store", 2_000),
        ("making certificates", 700),
        ("starting the API", 500),
        ("looking for other servers", 10_000),
    ];
    let step = |(at, (name, usual_millis)): (usize, (&str, u64))| BootStep {
        name: name.into(),
        usual_millis,
        took_millis: (at < done).then_some(usual_millis - usual_millis / 5),
        done: at < done,
    };
    steps.into_iter().enumerate().map(step).collect()
}

fn nics() -> Vec<Nic> {
    let eth0 = Nic {
        name: "eth0".into(),
        mac: Some(MacAddr([0x52, 0x54, 0, 0x77, 0x7f, 0x3a])),
        link_mbps: Some(1_000),
        link_since: Some(before(12 * 86_400)),
        role: Role::Management,
        address: "10.20.30.40/24".into(),
        ..Nic::default()
    };
    let eth1 = Nic {
        name: "eth1".into(),
        mac: Some(MacAddr([0x52, 0x54, 0, 0x77, 0x7f, 0x3b])),
        link_mbps: Some(2_500),
        link_since: Some(before(3 * 86_400)),
        role: Role::Provisioning,
        address: "10.99.0.1/24".into(),
        mode: Mode::Reserved,
        armed_since: Some(before(3 * 86_400)),
        probed: Some(before(132)),
        ..Nic::default()
    };
    vec![eth0, eth1]
}

fn machines() -> Vec<Machine> {
    use MachineState::{Failed, InService, Installing, Ready, Waiting};
    let states = [
        InService, InService, InService, Installing, Installing, InService, Failed, Ready, Waiting,
        Waiting, Ready, Ready,
    ];
    let machine = |(at, state): (usize, MachineState)| {
        let number = u8::try_from(at + 1).unwrap_or_default();
        let on = !matches!(number, 10..=12);
        Machine {
            name: format!("nuc-{number:02}").into(),
            state,
            mac: Some(MacAddr([0x52, 0x54, 0, 0x77, 0, number])),
            ip: format!("10.99.0.{}", 50 + u16::from(number)).into(),
            power: if on { Power::On } else { Power::Off },
            has_bmc: true,
            last_seen: on.then(|| before(20)),
            ..Machine::default()
        }
    };
    let mut machines: Vec<Machine> = states.into_iter().enumerate().map(machine).collect();
    installing(&mut machines[3], 68);
    installing(&mut machines[4], 31);
    fail(&mut machines[6]);
    machines[8].step = "waits for BMC".into();
    machines[8].workflow = "wf-15".into();
    machines
}

fn installing(machine: &mut Machine, percent: u8) {
    machine.step = "image2disk".into();
    machine.workflow = if percent > 50 { "wf-12".into() } else { "wf-13".into() };
    machine.percent = Some(percent);
    machine.bytes_total = 3_328_599_654;
    machine.bytes_done = machine.bytes_total / 100 * u64::from(percent);
    machine.bytes_per_second = Some(108 << 20);
    machine.millis_left = Some(u64::from(100 - percent) * 290);
    machine.since = Some(before(84));
    let story = [
        (84, "is on, according to its BMC"),
        (61, "runs agent 0.1.0"),
        (19, "action image2disk started"),
    ];
    machine.story = story.map(|(ago, text)| sentence(ago, text, false)).into();
}

fn fail(machine: &mut Machine) {
    machine.step = "image2disk".into();
    machine.workflow = "wf-14".into();
    (machine.attempt, machine.attempts_max) = (2, 3);
    machine.since = Some(before(71));
    machine.trouble = Some(Trouble {
        what: "image2disk failed".into(),
        on: machine.name.clone(),
        why: "checksum does not match".into(),
        now: "Compare the image's sum with the Template's, then retry".into(),
        code: "ChecksumMismatch".into(),
        ..Trouble::default()
    });
    machine.story = vec![
        sentence(140, "runs agent 0.1.0", false),
        sentence(131, "action image2disk started", false),
        sentence(71, "action image2disk failed after 60 s: checksum does not match", true),
    ];
}

/// Workflows of the machines, and one whose template cannot be rendered.
fn workflows() -> Vec<Work> {
    use api::tinkerbell::State::{Failed, New, Pending, Running};
    let work = |name: &str, machine: &str, state, done, ago| Work {
        name: name.into(),
        machine: machine.into(),
        template: "rocky".into(),
        state,
        step: if matches!(state, Running | Failed) { "image2disk".into() } else { Text::default() },
        done,
        actions: 4,
        attempt: 1,
        attempts_max: 3,
        since: Some(before(ago)),
        ..Work::default()
    };
    let mut failed = Machine { name: "nuc-07".into(), ..Machine::default() };
    fail(&mut failed);
    let (attempt, trouble) = (failed.attempt, failed.trouble);
    vec![
        work("wf-13", "nuc-05", Running, 1, 84),
        work("wf-12", "nuc-04", Running, 1, 84),
        Work { attempt, trouble, ..work("wf-14", "nuc-07", Failed, 1, 71) },
        work("wf-15", "nuc-09", Pending, 0, 40),
        Work { actions: 0, held: true, ..work("wf-16", "nuc-10", New, 0, 300) },
    ]
}

fn dhcp_clients() -> Vec<DhcpClient> {
    let client = |mac, hardware: &str, ago, decision: &str| DhcpClient {
        mac: MacAddr(mac),
        hardware: hardware.to_owned(),
        asked: before(ago),
        decision: decision.to_owned(),
    };
    let unknown = "not answered: no Hardware has this MAC address; enroll it?";
    vec![
        client([0x52, 0x54, 0, 0x77, 0, 5], "default/nuc-05", 84, "offered 10.99.0.55"),
        client([0x1c, 0x69, 0x7a, 0x0b, 0x4e, 0x21], "", 120, unknown),
    ]
}

fn sentence(ago: i64, text: &str, warning: bool) -> Sentence {
    Sentence { at: before(ago), text: text.into(), warning }
}

fn images() -> Images {
    let image = |name: &str, size, state| Image {
        origin: format!("https://images.example.org/{name}"),
        size,
        state,
        received: size,
        last_used: Some(before(3_600)),
        ..Image::default()
    };
    let mut coming = image("rocky-10.raw.zst", 1_610_612_736, ImageState::Fetching);
    coming.received = 644_245_094;
    coming.bytes_per_second = 45 << 20;
    let items = vec![
        coming,
        Image { pinned: true, ..image("ubuntu-24.04.raw.zst", 943_718_400, ImageState::Ready) },
        Image { goes: 1, ..image("debian-13.raw.zst", 419_430_400, ImageState::Ready) },
    ];
    Images { capacity: 47_663_742_976, used: 19_542_101_197, warning: String::new(), items }
}

fn events() -> Vec<Event> {
    let events = [
        (12, "nuc-04", "fetched rocky-10.raw.zst by HTTP, 2.1 GiB in 19 s", false),
        (71, "nuc-07", "action image2disk failed after 60 s: checksum does not match", true),
        (84, "nuc-05", "is on, according to its BMC", false),
        (131, "nuc-07", "action image2disk started", false),
        (300, "", "probed eth1: no other DHCP server", false),
    ];
    let event = |(ago, subject, text, warning): (i64, &str, &str, bool)| Event {
        at: before(ago),
        subject: subject.into(),
        sentence: text.into(),
        warning,
    };
    events.map(event).into()
}

fn log() -> Vec<LogLine> {
    let line = |ago, severity: &str, program: &str, text: &str| LogLine {
        received: before(ago),
        severity: severity.into(),
        program: program.into(),
        text: text.into(),
    };
    vec![
        line(300, "info", "dhcp", "probe of eth1: no other server answers"),
        line(131, "info", "rpc", "nuc-07: image2disk started, try 2 of 3"),
        line(71, "err", "rpc", "nuc-07: image2disk failed: checksum does not match"),
        line(12, "info", "netboot", "nuc-04: sent rocky-10.raw.zst, 2.1 GiB"),
    ]
}
