//! Conversion of observations of the boot services to events in the history of a machine.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use api::core::ObjectEvent;
use api::tinkerbell::{HARDWARE, Hardware};
use controllers::power::{RequestTimes, Source};
use dhcp::{DhcpEvent, DropReason};
use metadata::PhoneHome;
use netboot::{FetchEvent, Outcome};
use status::boot_event::{BootEvent, Stage, Via, unknown_machine};
use status::dhcp_client::DhcpClient;
use stdx::{Clock, MacAddr};

use crate::events::dhcp_requests::DhcpRequests;
use crate::index::Index;
use crate::machines::learned_loaders::Loaders;
use crate::objects::recorder::{Recorder, Subject};

/// Maximum number of machines whose boot stage is stored.
const STAGES_MAX: usize = 4096;

/// Observer of the boot services that records events in the history of the machine.
pub struct Observers {
    index: Index,
    recorder: Recorder,
    clock: Arc<dyn Clock>,
    loaders: Arc<Loaders>,
    dhcp_requests: DhcpRequests,
    stages: Mutex<HashMap<MacAddr, Stage>>,
    request_times: RequestTimes,
}

impl Observers {
    /// Creates an observer that writes to `recorder`.
    pub fn new(
        index: Index,
        recorder: Recorder,
        clock: Arc<dyn Clock>,
        loaders: Arc<Loaders>,
    ) -> Self {
        let (dhcp_requests, stages) = (DhcpRequests::default(), Mutex::default());
        let request_times = RequestTimes::default();
        Self { index, recorder, clock, loaders, dhcp_requests, stages, request_times }
    }

    /// Returns the DHCP clients of the last hour, newest request first.
    pub fn dhcp_clients(&self) -> Vec<DhcpClient> {
        let list = self.dhcp_requests.list(self.clock.now()).into_iter();
        list.map(|(mac, asked)| DhcpClient {
            mac,
            hardware: self.index.by_mac(mac).map_or_else(String::new, |it| it.key().to_string()),
            asked: asked.at,
            decision: asked.decision,
        })
        .collect()
    }

    /// Returns the times of the last requests of each machine.
    pub fn request_times(&self) -> &RequestTimes {
        &self.request_times
    }

    /// Records the time of a request of a machine.
    fn sighted(&self, hardware: &Hardware, source: Source) {
        self.request_times.note(hardware.key(), source, self.clock.steady());
    }

    /// Records an event in the history of a machine.
    pub fn record_event(&self, hardware: &Hardware, event: &BootEvent) {
        if matches!(event, BootEvent::PoweredOn | BootEvent::PoweredOff) {
            self.recorder.begin_anew(&subject(hardware), |reason| reason == event.reason());
        }
        let metadata = &hardware.metadata;
        let object_event =
            self.object_event(&metadata.namespace, &metadata.name, &metadata.uid, event);
        self.recorder.record(object_event);
    }

    fn object_event(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        event: &BootEvent,
    ) -> ObjectEvent {
        ObjectEvent {
            about: HARDWARE,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            reason: event.reason().to_owned(),
            message: event.sentence(),
            warning: event.warning(),
            component: "tinboxd".to_owned(),
            at: self.clock.now(),
        }
    }

    /// Records repeated boot events again, because a new network boot begins.
    fn begin_anew(&self, hardware: &Hardware) {
        self.recorder.begin_anew(&subject(hardware), |reason| reason.starts_with("Asked"));
    }

    fn stage(&self, hardware: &Hardware, stage: dhcp::Stage) -> Stage {
        match stage {
            dhcp::Stage::Pxe if hardware.spec.uefi() => Stage::UefiFirmware,
            dhcp::Stage::Pxe => Stage::BiosFirmware,
            dhcp::Stage::HttpBoot => Stage::UefiHttpFirmware,
            dhcp::Stage::Ipxe => Stage::Ipxe,
            dhcp::Stage::System => match self.index.run_of(hardware) {
                Some(_) => Stage::Agent,
                None => Stage::System,
            },
            _ => Stage::System,
        }
    }

    fn remember_stage(&self, mac: MacAddr, stage: Stage) {
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        if stages.len() < STAGES_MAX || stages.contains_key(&mac) {
            stages.insert(mac, stage);
        }
    }

    fn last_stage(&self, mac: MacAddr) -> Stage {
        let stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        stages.get(&mac).copied().unwrap_or(Stage::System)
    }

    fn unknown(&self, mac: MacAddr, drop_reason: Option<DropReason>) {
        let event = match drop_reason {
            Some(_) => BootEvent::UnknownMachine { mac },
            None if self.index.enrolls() => BootEvent::Enrolls { mac },
            None => return tracing::debug!(%mac, "an unknown machine gets an address"),
        };
        let object_event = self.object_event("default", &unknown_machine(mac), "", &event);
        self.recorder.record_about(&Subject::UnknownMachines, object_event);
    }
}

fn subject(hardware: &Hardware) -> Subject {
    let metadata = &hardware.metadata;
    Subject::Object {
        kind: HARDWARE.kind,
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
    }
}

impl dhcp::Observer for Observers {
    fn observe(&self, event: DhcpEvent) {
        self.dhcp_requests.note(&event, self.clock.now());
        if let DhcpEvent::Discover { mac, .. } | DhcpEvent::Requested { mac, .. } = &event {
            self.index.by_mac(*mac).inspect(|it| self.sighted(it, Source::Dhcp));
        }
        match event {
            DhcpEvent::UnknownMac { mac, drop_reason, .. } => self.unknown(mac, drop_reason),
            DhcpEvent::Discover { mac, stage } => self.with(mac, |hardware| {
                let stage = self.stage(hardware, stage);
                self.remember_stage(mac, stage);
                if stage != Stage::Agent {
                    self.begin_anew(hardware);
                }
                Some(BootEvent::AskedForAddress { stage })
            }),
            DhcpEvent::Requested { mac, stage, .. } => self.with(mac, |hardware| {
                self.remember_stage(mac, self.stage(hardware, stage));
                None
            }),
            DhcpEvent::Acked { mac, address, file } => self.with(mac, |hardware| {
                let stage = self.last_stage(mac);
                self.learn(hardware, mac, stage, file.as_deref());
                Some(BootEvent::GotAddress { ip: address.into(), stage })
            }),
            DhcpEvent::Refused { mac, reason } => self.with(mac, |_| {
                Some(BootEvent::Refused { what: "an address".to_owned(), why: reason })
            }),
            DhcpEvent::Conflict { mac, address, holder } => {
                self.with(mac, |_| Some(BootEvent::AddressInUse { ip: address.into(), by: holder }))
            }
            DhcpEvent::Ignored { mac, reason } if is_worth_telling(reason) => {
                self.with(mac, |_| {
                    Some(BootEvent::Refused {
                        what: "an answer".to_owned(),
                        why: reason.to_string(),
                    })
                })
            }
            other => tracing::debug!(?other, "DHCP"),
        }
    }
}

/// Returns true if a person can act on the reason. The other reasons occur in every boot.
fn is_worth_telling(reason: DropReason) -> bool {
    !matches!(
        reason,
        DropReason::OtherServer(_)
            | DropReason::NotNetbooting
            | DropReason::Checking(_)
            | DropReason::TooFast
    )
}

impl dhcp::v6::Observer for Observers {
    fn observe(&self, event: dhcp::v6::Event) {
        use dhcp::v6::Event;
        if let Event::Offered { mac, .. } | Event::Replied { mac, .. } = &event {
            self.index.by_mac(*mac).inspect(|it| self.sighted(it, Source::Dhcp));
        }
        match event {
            Event::Unknown { mac } => self.unknown(mac, Some(DropReason::Unknown)),
            Event::Offered { mac, stage } => self.with(mac, |hardware| {
                Some(BootEvent::AskedForAddress { stage: self.stage(hardware, stage) })
            }),
            Event::Replied { mac, stage, .. } => self.with(mac, |hardware| {
                let stage = self.stage(hardware, stage);
                let of = |address| match address {
                    IpAddr::V4(address) => self.index.ipv6_twin(address).map(IpAddr::V6),
                    own @ IpAddr::V6(_) => Some(own),
                };
                let ip = hardware.spec.addresses().find_map(of)?;
                Some(BootEvent::GotAddress { ip, stage })
            }),
            other => tracing::debug!(?other, "DHCPv6"),
        }
    }
}

impl Observers {
    /// Records the event that `event` returns for the known machine with `mac`. An unknown machine
    /// or `None` records nothing.
    fn with(&self, mac: MacAddr, event: impl FnOnce(&Hardware) -> Option<BootEvent>) {
        let Some(hardware) = self.index.by_mac(mac) else { return };
        if let Some(event) = event(&hardware) {
            self.record_event(&hardware, &event);
        }
    }

    /// Updates the learned boot loader of a machine: `file` is the loader that DHCP sent to its
    /// firmware, and a DHCP request from iPXE shows that the loader works.
    fn learn(&self, hardware: &Hardware, mac: MacAddr, stage: Stage, file: Option<&str>) {
        let firmware = [Stage::BiosFirmware, Stage::UefiFirmware, Stage::UefiHttpFirmware];
        if stage == Stage::Ipxe {
            self.loaders.spoke(hardware, mac, Instant::now());
        } else if firmware.contains(&stage)
            && let Some(file) = file.and_then(|file| file.rsplit('/').next())
            && let Some((from, to)) = self.loaders.asked(hardware, mac, file, Instant::now())
        {
            let (from, to) = (from.to_owned(), to.to_owned());
            self.record_event(hardware, &BootEvent::ChangedLoader { from, to });
        }
    }
}

impl netboot::Observer for Observers {
    fn fetched(&self, event: FetchEvent) {
        let (peer, mac) = match &event {
            FetchEvent::Tftp { peer, .. } | FetchEvent::Http { peer, .. } => (*peer, None),
            FetchEvent::Script { peer, mac, .. } => (*peer, *mac),
        };
        let by_mac = mac.and_then(|mac| self.index.by_mac(mac));
        let Some(hardware) = by_mac.or_else(|| self.index.by_address(peer)) else {
            return tracing::debug!(?event, "an unknown machine fetched");
        };
        self.sighted(&hardware, Source::Boot);
        if let Some(event) = fetch_moment(event) {
            if let BootEvent::FetchedLoader { file, .. } = &event {
                let file = file.rsplit('/').next().unwrap_or_default();
                for mac in hardware.spec.macs() {
                    self.loaders.fetched(&hardware, mac, file, Instant::now());
                }
            }
            self.record_event(&hardware, &event);
        }
    }
}

fn fetch_moment(event: FetchEvent) -> Option<BootEvent> {
    Some(match event {
        FetchEvent::Tftp { file, bytes, millis, outcome, .. } => match outcome {
            Outcome::Completed => BootEvent::FetchedLoader { file, via: Via::Tftp, bytes, millis },
            Outcome::SizeOnly => return None,
            Outcome::Aborted { message, .. } => failed(file, Via::Tftp, &message),
            Outcome::TimedOut => failed(file, Via::Tftp, "it stopped responding"),
            Outcome::NotFound if file.ends_with(netboot::loader::NOT_ALLOWED) => return None,
            Outcome::NotFound => {
                let why = no_loader(&file).unwrap_or_else(|| "the file does not exist".to_owned());
                failed(file, Via::Tftp, &why)
            }
            Outcome::Refused(why) => failed(file, Via::Tftp, why),
        },
        FetchEvent::Http { path, bytes, millis, status, .. } => {
            let (file, via) = (path.rsplit('/').next().unwrap_or_default().to_owned(), Via::Http);
            match (path.split('/').nth(1), status) {
                // Name that DHCP sends to a machine that may not boot from the network. The file
                // never exists.
                (_, 404) if file == netboot::loader::NOT_ALLOWED => return None,
                (_, 404) if let Some(why) = no_loader(&file) => failed(path, via, &why),
                (_, 400..) => failed(path, via, &format!("HTTP status {status}")),
                (Some("agent"), _) if file.starts_with("vmlinuz") => {
                    BootEvent::FetchedKernel { bytes, millis }
                }
                (Some("agent"), _) if file.starts_with("initramfs") => {
                    BootEvent::FetchedInitrd { bytes, millis }
                }
                (Some("ipxe"), _) => BootEvent::FetchedLoader { file, via, bytes, millis },
                (Some("images" | "agent" | "iso" | "uki"), _) => {
                    BootEvent::FetchedFile { file, via, bytes, millis }
                }
                _ => return None,
            }
        }
        FetchEvent::Script { boot, status: 200, .. } => match boot {
            "agent" => BootEvent::FetchedScript,
            "local-disk" => BootEvent::SentToDisk,
            other => {
                let file = format!("{other}.ipxe");
                BootEvent::FetchedFile { file, via: Via::Http, bytes: 0, millis: 0 }
            }
        },
        FetchEvent::Script { boot: "withheld", .. } => {
            let why = "the sender is not known to be this machine";
            failed("auto.ipxe".to_owned(), Via::Http, why)
        }
        FetchEvent::Script { status, .. } => {
            failed("auto.ipxe".to_owned(), Via::Http, &format!("HTTP status {status}"))
        }
    })
}

/// Returns the reason why a boot loader of DHCP is missing; `None` for any other file.
fn no_loader(file: &str) -> Option<String> {
    let name = file.rsplit('/').next().unwrap_or_default();
    dhcp::BINARIES.iter().any(|(_, loader)| *loader == name).then(|| {
        format!(
            "this box has no boot loader for the machine's architecture; add ipxe/{name} to the \
             box's artifacts"
        )
    })
}

fn failed(file: String, via: Via, why: &str) -> BootEvent {
    BootEvent::FetchFailed { file, via, why: why.to_owned() }
}

impl metadata::Observer for Observers {
    fn answered(&self, peer: IpAddr, path: &str, status: u16) {
        let Some(hardware) = self.index.requester(peer).machine() else { return };
        self.sighted(&hardware, Source::Metadata);
        // A boot makes about thirty metadata requests, and only one of them is recorded. For
        // cloud-init it is the first request in the version that it requires.
        if status == 200
            && matches!(
                path,
                "/2009-04-04/meta-data/instance-id"
                    | "/nocloud/meta-data"
                    | "/nocloud/v1/meta-data"
                    | "/ignition"
                    | "/config.ign"
                    | "/talos"
            )
        {
            self.record_event(&hardware, &BootEvent::AskedMetadata { path: path.to_owned() });
        }
    }

    fn withheld(&self, peer: IpAddr, hardware: &str) {
        tracing::warn!(%peer, hardware, "user data was requested outside its window");
    }

    fn refused(&self, peer: IpAddr, hardware: &str, mac: MacAddr) {
        tracing::debug!(%peer, hardware, %mac, "metadata was requested by another NIC");
        if let Some(hardware) = self.index.by_address(peer) {
            let what = "metadata".to_owned();
            let why =
                format!("NIC {mac} uses the machine's address {peer}, but is not in the Hardware");
            self.record_event(&hardware, &BootEvent::Refused { what, why });
        }
    }

    fn phoned_home(&self, news: PhoneHome) {
        if let Some(hardware) = self.index.requester(news.peer).machine() {
            self.sighted(&hardware, Source::Metadata);
            let hostname = news.hostname.unwrap_or_default();
            self.record_event(&hardware, &BootEvent::PhonedHome { hostname });
        }
    }
}

#[cfg(test)]
mod tests;
