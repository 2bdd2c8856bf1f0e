//! What the boot services see, as moments of a machine's story.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::core::Happening;
use api::tinkerbell::{HARDWARE, Hardware};
use dhcp::Seen;
use metadata::PhoneHome;
use netboot::{Fetched, Outcome};
use status::story::{Moment, Stage, Via, stranger};
use stdx::{Clock, MacAddr};
use tokio::time::Instant;

use crate::index::Index;
use crate::recorder::Recorder;

/// The same moment of the same machine is told once in this time: firmware repeats itself.
const ONCE_EVERY: Duration = Duration::from_secs(20);
/// How many recent moments are remembered for that.
const RECENT_MAX: usize = 4096;

/// Turns what was seen into the story of the machine it was seen of.
pub struct Observers {
    index: Index,
    recorder: Recorder,
    clock: Arc<dyn Clock>,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    told: HashMap<(String, String), Instant>,
    stages: HashMap<MacAddr, Stage>,
}

impl Observers {
    /// Observers that write to `recorder`.
    pub fn new(index: Index, recorder: Recorder, clock: Arc<dyn Clock>) -> Self {
        Self { index, recorder, clock, recent: Mutex::default() }
    }

    /// Add a moment to the story of a machine.
    pub fn tell(&self, hardware: &Hardware, moment: &Moment) {
        let sentence = moment.sentence();
        if !self.is_news(&hardware.key().to_string(), &sentence) {
            return;
        }
        let metadata = &hardware.metadata;
        self.record(&metadata.namespace, &metadata.name, &metadata.uid, moment, sentence);
    }

    fn record(&self, namespace: &str, name: &str, uid: &str, moment: &Moment, sentence: String) {
        self.recorder.record(Happening {
            about: HARDWARE,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            reason: moment.reason().to_owned(),
            message: sentence,
            warning: moment.warning(),
            component: "tinboxd".to_owned(),
            at: self.clock.now(),
        });
    }

    fn is_news(&self, about: &str, sentence: &str) -> bool {
        let now = Instant::now();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.told.len() >= RECENT_MAX {
            recent.told.retain(|_, at| now.duration_since(*at) < ONCE_EVERY);
        }
        if recent.told.len() >= RECENT_MAX {
            return false;
        }
        let before = recent.told.insert((about.to_owned(), sentence.to_owned()), now);
        before.is_none_or(|at| now.duration_since(at) >= ONCE_EVERY)
    }

    /// A network boot that begins anew may repeat every sentence of the last one.
    fn begin_anew(&self, about: &str) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.told.retain(|(known, sentence), _| known != about || sentence.starts_with("asked"));
    }

    fn stage(&self, hardware: &Hardware, stage: dhcp::Stage) -> Stage {
        match stage {
            dhcp::Stage::Pxe if hardware.spec.uefi() => Stage::UefiFirmware,
            dhcp::Stage::Pxe => Stage::BiosFirmware,
            dhcp::Stage::HttpBoot => Stage::UefiHttpFirmware,
            dhcp::Stage::Ipxe => Stage::Ipxe,
            dhcp::Stage::System => match self.index.run_of_hardware(&hardware.key()) {
                Some(_) => Stage::Agent,
                None => Stage::System,
            },
            _ => Stage::System,
        }
    }

    fn remember_stage(&self, mac: MacAddr, stage: Stage) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.stages.len() < RECENT_MAX || recent.stages.contains_key(&mac) {
            recent.stages.insert(mac, stage);
        }
    }

    fn last_stage(&self, mac: MacAddr) -> Stage {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.stages.get(&mac).copied().unwrap_or(Stage::System)
    }

    fn unknown(&self, mac: MacAddr) {
        let moment = Moment::UnknownMachine { mac };
        let sentence = moment.sentence();
        let name = stranger(mac);
        if self.is_news(&name, &sentence) {
            self.record("default", &name, "", &moment, sentence);
        }
    }
}

impl dhcp::Observer for Observers {
    fn seen(&self, seen: Seen) {
        let mac = match &seen {
            Seen::UnknownMac { mac, .. } => return self.unknown(*mac),
            Seen::Discover { mac, .. }
            | Seen::Requested { mac, .. }
            | Seen::Acked { mac, .. }
            | Seen::Refused { mac, .. } => *mac,
            other => return tracing::debug!(?other, "DHCP"),
        };
        let Some(hardware) = self.index.by_mac(mac) else { return };
        let moment = match seen {
            Seen::Discover { stage, .. } => {
                let stage = self.stage(&hardware, stage);
                self.remember_stage(mac, stage);
                if stage != Stage::Agent {
                    self.begin_anew(&hardware.key().to_string());
                }
                Moment::AskedForAddress { stage }
            }
            Seen::Requested { stage, .. } => {
                let stage = self.stage(&hardware, stage);
                return self.remember_stage(mac, stage);
            }
            Seen::Acked { address, .. } => {
                Moment::GotAddress { ip: address.into(), stage: self.last_stage(mac) }
            }
            Seen::Refused { reason, .. } => {
                Moment::Refused { what: "an address".to_owned(), why: reason }
            }
            _ => return,
        };
        self.tell(&hardware, &moment);
    }
}

impl netboot::Observer for Observers {
    fn fetched(&self, fetched: Fetched) {
        let peer = match &fetched {
            Fetched::Tftp { peer, .. }
            | Fetched::Http { peer, .. }
            | Fetched::Script { peer, .. } => *peer,
        };
        let Some(hardware) = self.index.by_address(peer) else {
            return tracing::debug!(?fetched, "an unknown machine fetched");
        };
        if let Some(moment) = fetch_moment(fetched) {
            self.tell(&hardware, &moment);
        }
    }
}

fn fetch_moment(fetched: Fetched) -> Option<Moment> {
    Some(match fetched {
        Fetched::Tftp { file, bytes, millis, outcome, .. } => match outcome {
            Outcome::Completed => Moment::FetchedLoader { file, via: Via::Tftp, bytes, millis },
            Outcome::SizeOnly => return None,
            Outcome::Aborted { message, .. } => failed(file, Via::Tftp, &message),
            Outcome::TimedOut => failed(file, Via::Tftp, "it fell silent"),
            Outcome::NotFound => failed(file, Via::Tftp, "there is no such file"),
            Outcome::Refused(why) => failed(file, Via::Tftp, why),
        },
        Fetched::Http { path, bytes, millis, status, .. } => {
            let (file, via) = (path.rsplit('/').next().unwrap_or_default().to_owned(), Via::Http);
            match (path.split('/').nth(1), status) {
                (_, 400..) => failed(path, via, &format!("HTTP status {status}")),
                (Some("agent"), _) if file.starts_with("vmlinuz") => {
                    Moment::FetchedKernel { bytes, millis }
                }
                (Some("agent"), _) if file.starts_with("initramfs") => {
                    Moment::FetchedInitrd { bytes, millis }
                }
                (Some("ipxe"), _) => Moment::FetchedLoader { file, via, bytes, millis },
                (Some("images" | "agent"), _) => Moment::FetchedFile { file, via, bytes, millis },
                _ => return None,
            }
        }
        Fetched::Script { boot, status: 200, .. } => match boot {
            "agent" => Moment::FetchedScript,
            "local-disk" => Moment::SentToDisk,
            other => {
                let file = format!("{other}.ipxe");
                Moment::FetchedFile { file, via: Via::Http, bytes: 0, millis: 0 }
            }
        },
        Fetched::Script { status, .. } => {
            failed("auto.ipxe".to_owned(), Via::Http, &format!("HTTP status {status}"))
        }
    })
}

fn failed(file: String, via: Via, why: &str) -> Moment {
    Moment::FetchFailed { file, via, why: why.to_owned() }
}

impl metadata::Observer for Observers {
    fn asked(&self, peer: IpAddr, path: &str, status: u16) {
        // Thirty questions a boot are one sentence: cloud-init's first in the version it requires.
        if status == 200
            && matches!(path, "/2009-04-04/meta-data/instance-id" | "/nocloud/meta-data")
            && let Some(hardware) = self.index.by_address(peer)
        {
            self.tell(&hardware, &Moment::AskedMetadata { path: path.to_owned() });
        }
    }

    fn phoned_home(&self, news: PhoneHome) {
        if let Some(hardware) = self.index.by_address(news.peer) {
            let hostname = news.hostname.unwrap_or_default();
            self.tell(&hardware, &Moment::PhonedHome { hostname });
        }
    }
}
