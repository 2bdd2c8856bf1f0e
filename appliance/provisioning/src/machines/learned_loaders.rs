//! Boot loader that works on each machine. The box learns the loader from boots of the machine and
//! stores the result in the Hardware.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use api::tinkerbell::{HARDWARE, Hardware};
use netboot::fallback::{BIOS, Decision, EFI, Event, Fallback, LoaderState};
use objects::Objects;
use stdx::MacAddr;
use tokio::sync::mpsc;

/// Annotation of the Hardware with the learned loader.
const ANNOTATION: &str = "tinbox.dev/loader";
/// Maximum number of machines whose loader is in memory.
const MACHINES_MAX: usize = 16_384;
/// Maximum number of loaders that wait to be stored. Further loaders are dropped, and learned again
/// at the next boot.
const LESSONS_MAX: usize = 64;

/// Learned loader of one machine.
pub struct LearnedLoader {
    hardware: api::meta::ObjectKey,
    learned: LoaderState,
}

impl LearnedLoader {
    /// Returns the key of the machine's Hardware.
    pub fn hardware(&self) -> &api::meta::ObjectKey {
        &self.hardware
    }

    /// Returns name and value of the annotation that stores the loader.
    pub fn annotation(&self) -> (&'static str, String) {
        (ANNOTATION, self.learned.to_string())
    }
}

/// Boot loaders of all machines, in memory.
pub struct Loaders {
    machines: Mutex<HashMap<MacAddr, Fallback>>,
    lessons: mpsc::Sender<LearnedLoader>,
}

impl Loaders {
    /// Creates an empty state. The receiver gets each learned loader.
    pub fn new() -> (Self, mpsc::Receiver<LearnedLoader>) {
        let (lessons, receiver) = mpsc::channel(LESSONS_MAX);
        (Self { machines: Mutex::default(), lessons }, receiver)
    }

    fn machines(&self) -> MutexGuard<'_, HashMap<MacAddr, Fallback>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file name of a machine's boot loader; `None` if unknown.
    pub fn learned(&self, mac: MacAddr) -> Option<String> {
        self.machines().get(&mac).map(|fallback| fallback.loader().to_owned())
    }

    /// Records that firmware requested a boot loader. `first` is the default loader. If the box
    /// changes the loader, returns the failed loader and the next.
    pub fn asked(
        &self,
        hardware: &Hardware,
        mac: MacAddr,
        first: &str,
        now: Instant,
    ) -> Option<(&str, &str)> {
        let mut machines = self.machines();
        if !machines.contains_key(&mac) && machines.len() < MACHINES_MAX {
            machines.insert(mac, known(hardware, first)?);
        }
        drop(machines);
        self.next(hardware, mac, Event::Requested, now)
    }

    /// Records that a machine downloaded a complete file.
    pub fn fetched(&self, hardware: &Hardware, mac: MacAddr, file: &str, now: Instant) {
        self.next(hardware, mac, Event::Fetched(file), now);
    }

    /// Records a DHCP request from iPXE, which shows that the boot loader works.
    pub fn spoke(&self, hardware: &Hardware, mac: MacAddr, now: Instant) {
        self.next(hardware, mac, Event::Ipxe, now);
    }

    /// Applies an event. If the box changes the loader, returns the failed loader and the next.
    fn next(
        &self,
        hardware: &Hardware,
        mac: MacAddr,
        event: Event<'_>,
        now: Instant,
    ) -> Option<(&'static str, &'static str)> {
        let mut machines = self.machines();
        let fallback = machines.get_mut(&mac)?;
        let decision = fallback.next(event, now);
        let learned = fallback.learned();
        drop(machines);
        if decision != Decision::Nothing
            && self.lessons.try_send(LearnedLoader { hardware: hardware.key(), learned }).is_err()
        {
            tracing::debug!(%mac, "dropped a learned loader: too many at once");
        }
        match decision {
            Decision::Next { from, to } => Some((from, to)),
            Decision::Nothing | Decision::Works => None,
        }
    }
}

/// Returns the stored or an initial state; `None` for firmware with only one loader.
fn known(hardware: &Hardware, first: &str) -> Option<Fallback> {
    let kept = hardware.metadata.annotations.get(ANNOTATION);
    let row = [EFI, BIOS].into_iter().find(|row| row.contains(&first))?;
    let kept: Option<LoaderState> = kept.and_then(|text| text.parse().ok());
    // After a change from BIOS to UEFI, the stored loader is of the wrong type.
    let fits = |kept: &Fallback| row.contains(&kept.loader());
    let kept = kept.map(Fallback::from).filter(fits);
    Some(kept.unwrap_or_else(|| Fallback::new(row, first)))
}

/// Stores each received loader in the Hardware of its machine. Returns after the sender is dropped.
pub async fn keep(objects: &dyn Objects, mut lessons: mpsc::Receiver<LearnedLoader>) {
    while let Some(LearnedLoader { hardware, learned }) = lessons.recv().await {
        let Ok(mut object) = objects.get(HARDWARE, &hardware).await else { continue };
        if let Some(annotations) = object["metadata"]
            .as_object_mut()
            .map(|metadata| metadata.entry("annotations").or_insert_with(|| serde_json::json!({})))
        {
            annotations[ANNOTATION] = learned.to_string().into();
        }
        // The object changed at the same time. The loader is learned again at the next boot.
        if let Err(error) = objects.update(HARDWARE, object).await {
            tracing::debug!(%hardware, %error, "cannot store the loader of a machine");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use api::tinkerbell::Hardware;
    use stdx::MacAddr;

    use super::{ANNOTATION, Loaders};

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_machine_is_named_what_it_remembers() {
        let (loaders, mut lessons) = Loaders::new();
        let mut hardware = Hardware::default();
        let annotations = &mut hardware.metadata.annotations;
        annotations.insert(ANNOTATION.into(), "ipxe.efi works".into());
        assert_eq!(loaders.learned(MAC), None);
        assert_eq!(loaders.asked(&hardware, MAC, "snponly.efi", Instant::now()), None);
        assert_eq!(loaders.learned(MAC).as_deref(), Some("ipxe.efi"));
        loaders.fetched(&hardware, MAC, "ipxe.efi", Instant::now());
        loaders.spoke(&hardware, MAC, Instant::now());
        assert!(lessons.try_recv().is_err(), "nothing new");
    }

    #[test]
    fn what_works_is_a_lesson_and_what_is_of_another_firmware_is_none() {
        let (loaders, mut lessons) = Loaders::new();
        let mut hardware = Hardware::default();
        hardware.metadata.annotations.insert(ANNOTATION.into(), "undionly.kpxe works".into());
        loaders.asked(&hardware, MAC, "snponly.efi", Instant::now());
        assert_eq!(loaders.learned(MAC).as_deref(), Some("snponly.efi"));
        loaders.fetched(&hardware, MAC, "snponly.efi", Instant::now());
        loaders.spoke(&hardware, MAC, Instant::now());
        assert_eq!(lessons.try_recv().unwrap().learned.to_string(), "snponly.efi works");
        assert_eq!(
            loaders.asked(&hardware, MacAddr([2; 6]), "snp-arm64.efi", Instant::now()),
            None
        );
        assert_eq!(loaders.learned(MacAddr([2; 6])), None, "there is but one for it");
    }
}
