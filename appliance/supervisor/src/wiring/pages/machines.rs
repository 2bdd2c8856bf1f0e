//! Data of one machine or workflow that is not in the status view.

use std::sync::Arc;

use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware, WORKFLOW, Workflow};
use image_catalog::CheckedImage;
use image_uploads::OsImageUploads;
use machine_actions::MachineActions;
use objects::ObjectError;
use printers::{bmc, document, inventory};
use provisioning::images::Images;
use provisioning::index::Index;
use serde_json::Value;
use status::log::LogLine;
use status::view::work::WorkDetails;
use web::FileBody;
use web_pages::machine::tabs::{Section, SectionContent, Tab};

use super::source::sentences;
use crate::bmc_readings::{BmcReader, ReadingError};
use crate::handlers::log_tail;
use crate::wiring::machine_leds::NO_BMC;

/// Number of log lines on the page of a machine.
const LOG_LINES: usize = 100;

/// Readings of a BMC: heading, and name in the API.
const READINGS: [(&str, &str); 3] =
    [("Sensors", "sensors"), ("Inventory", "inventory"), ("Events", "events")];
/// Text for a machine whose agent has not reported.
const NO_FACTS: &str = "The agent of this machine has not reported its parts yet. The agent \
                        reports when the machine boots from the network for a workflow.";

/// Machines of the pages: their actions, logs and workflows.
pub(super) struct PageMachines {
    pub actions: MachineActions,
    pub images: Images,
    index: Index,
    syslog: Arc<syslog::Log>,
    bmcs: BmcReader,
}

impl PageMachines {
    pub fn new(
        bmcs: BmcReader,
        (index, images): (&Index, &Images),
        syslog: &Arc<syslog::Log>,
    ) -> Self {
        let actions = MachineActions { objects: Arc::clone(&bmcs.objects) };
        let (index, images) = (index.clone(), images.clone());
        Self { actions, images, index, syslog: Arc::clone(syslog), bmcs }
    }

    /// Stores an uploaded image in the cache, and creates its OSImage.
    ///
    /// # Errors
    /// The file or the OSImage is refused. The error is a sentence for people.
    pub async fn upload_image(&self, image: CheckedImage, body: FileBody) -> Result<(), String> {
        let uploads =
            OsImageUploads::new(Arc::new(self.images.clone()), Arc::clone(&self.actions.objects));
        uploads.store(image, body).await.map(drop).map_err(|error| sentences(&error))
    }

    /// Returns the Hardware of a machine. If several namespaces have one, the first counts.
    fn hardware(&self, machine: &str) -> Option<Arc<Hardware>> {
        self.index.machines().into_iter().find(|it| it.metadata.name == machine)
    }

    /// Returns the latest log lines of a machine, oldest first.
    pub fn log(&self, machine: &str) -> Vec<LogLine> {
        let named = self.hardware(machine);
        named.map(|it| log_tail(&self.syslog, &it.key(), LOG_LINES)).unwrap_or_default()
    }

    /// Returns the content of a machine's tab that no event changes.
    pub async fn tab(&self, machine: &str, tab: Tab) -> Vec<Section> {
        let Some(hardware) = self.hardware(machine) else { return Vec::new() };
        match tab {
            Tab::Hardware => vec![self.parts(&hardware.key()).await],
            Tab::Yaml => vec![self.yaml(&hardware.key()).await],
            Tab::Bmc => self.readings(&hardware).await,
            Tab::History | Tab::Log | Tab::Console => Vec::new(),
        }
    }

    async fn parts(&self, key: &ObjectKey) -> Section {
        let content = match self.actions.objects.get(HARDWARE, key).await {
            Ok(object) => {
                let facts = inventory::facts(&object);
                match facts.values().all(Value::is_null) {
                    true => SectionContent::Nothing(NO_FACTS.to_owned()),
                    false => SectionContent::Table(inventory::table(&facts)),
                }
            }
            Err(error) => SectionContent::Failed(stdx::sentences(&error)),
        };
        Section { heading: "Parts", content }
    }

    async fn yaml(&self, key: &ObjectKey) -> Section {
        let content = match self.actions.objects.get(HARDWARE, key).await {
            Ok(object) => SectionContent::Text(document::yaml(&document::brief(object))),
            Err(error) => SectionContent::Failed(stdx::sentences(&error)),
        };
        Section { heading: "Hardware", content }
    }

    /// Reads the BMC of a machine: one request after the other, because many BMCs serve only one.
    async fn readings(&self, hardware: &Hardware) -> Vec<Section> {
        let Some(reference) = &hardware.spec.bmc_ref else {
            let content = SectionContent::Nothing(NO_BMC.to_owned());
            return vec![Section { heading: "", content }];
        };
        let key = ObjectKey::new(&hardware.key().namespace, &reference.name);
        let mut sections = Vec::new();
        for (heading, reading) in READINGS {
            let content = reading_content(self.bmcs.read(&key, reading).await);
            let ends = matches!(content, SectionContent::Failed(_));
            sections.push(Section { heading, content });
            // A BMC that does not answer now would let the person wait for each reading.
            if ends {
                break;
            }
        }
        sections
    }

    /// Returns a workflow with its actions. The index has its namespace, so that an open page reads
    /// one object at each update and not all.
    pub async fn workflow(&self, name: &str) -> Result<Option<WorkDetails>, ObjectError> {
        let courses = self.index.courses();
        let Some((key, _)) = courses.iter().find(|(key, _)| key.name == name) else {
            return Ok(None);
        };
        let found = objects::find::<Workflow>(&*self.actions.objects, WORKFLOW, key).await?;
        Ok(found.as_ref().map(WorkDetails::of))
    }
}

/// Returns the content of a reading, newest event first.
fn reading_content(reading: Result<Value, ReadingError>) -> SectionContent {
    match reading {
        Ok(Value::Array(rows)) if rows.is_empty() => {
            SectionContent::Nothing("The BMC reports none.".to_owned())
        }
        Ok(Value::Array(mut rows)) => {
            if rows[0].get("message").is_some() {
                rows.reverse();
            }
            SectionContent::Table(bmc::readings(&Value::Array(rows)))
        }
        Ok(value) => SectionContent::Table(bmc::readings(&value)),
        Err(error) => {
            // A hint about other readings is for the CLI.
            let why = error.sentence();
            match error {
                ReadingError::NotFound(_) => SectionContent::Nothing(why),
                _ => SectionContent::Failed(why),
            }
        }
    }
}
