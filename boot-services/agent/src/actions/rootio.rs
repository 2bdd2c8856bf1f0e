//! `storage`: creates all partitions, arrays, volumes and file systems that STORAGE describes in
//! YAML or JSON. With MBR set, partition tables are MBR, not GPT. `rootio` is upstream's action.
//! Its command (`partition`, `format`, `mount`, `wipe`) applies one part of the description from
//! the metadata service MIRROR_HOST, port METADATA_SERVICE_PORT (default 50061).
//!
//! Unlike upstream, a failed step fails the action. A disk with another partition table is not
//! overwritten unless its `wipe_table` is true. Partitions begin at whole mebibytes.

use std::sync::Arc;

use imaging::Meter;
use imaging::storage::{self, Storage, TEXT_BYTES, Table};
use imaging::stream::{Timeouts, Url, read_text};

use super::environment::Environment;
use crate::Error;

/// Default port of Tinkerbell's metadata service.
const METADATA_PORT: u16 = 50061;

/// Storage description, and the parts of the description to apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Rootio {
    described: LayoutSource,
    parts: Vec<Part>,
    table: Table,
}

/// Source of the storage description: the action itself, or a URL.
#[derive(Debug, Clone, PartialEq)]
enum LayoutSource {
    Here(Box<Storage>),
    At(Url, Timeouts),
}

/// Part of the description that a command applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Wipe,
    Partition,
    Format,
    Mount,
}

impl Rootio {
    /// Parses the action `storage`, which partitions and formats everything in STORAGE.
    pub(super) fn storage(environment: &Environment<'_>) -> Result<Self, Error> {
        let text = environment.required("STORAGE")?;
        let storage = Storage::parse(text).map_err(|reason| environment.bad("STORAGE", reason))?;
        Ok(Self {
            described: LayoutSource::Here(Box::new(storage)),
            parts: vec![Part::Partition, Part::Format],
            table: table(environment),
        })
    }

    /// Parses the action `rootio`, which applies the parts that `command` names.
    pub(super) fn parse(
        environment: &Environment<'_>,
        command: &[String],
        timeouts: Timeouts,
    ) -> Result<Self, Error> {
        let words = command.iter().filter(|word| !word.ends_with("rootio"));
        let parts = words.map(|word| match word.as_str() {
            "partition" => Ok(Part::Partition),
            "format" => Ok(Part::Format),
            "mount" => Ok(Part::Mount),
            "wipe" => Ok(Part::Wipe),
            other => Err(environment.bad("command", format!("{other:?} is not one of {COMMANDS}"))),
        });
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() {
            return Err(environment.bad("command", format!("it is missing; use {COMMANDS}")));
        }
        let host = environment.required("MIRROR_HOST")?;
        let default = METADATA_PORT.to_string();
        let port = environment.optional("METADATA_SERVICE_PORT").unwrap_or(&default);
        if port.parse::<u16>().is_err() {
            return Err(
                environment.bad("METADATA_SERVICE_PORT", format!("{port:?} is not a valid port"))
            );
        }
        let url = format!("http://{host}:{port}/metadata").parse()?;
        let table = table(environment);
        Ok(Self { described: LayoutSource::At(url, timeouts), parts, table })
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, imaging::Error> {
        let storage = match self.described {
            LayoutSource::Here(storage) => *storage,
            LayoutSource::At(url, timeouts) => {
                let text = read_text(&url, TEXT_BYTES, timeouts).await?;
                Storage::of_metadata(&text).map_err(|reason| imaging::Error::Storage {
                    reason: format!("{reason} ({url})"),
                })?
            }
        };
        let mut summaries = Vec::new();
        for part in self.parts {
            let storage = storage.clone();
            summaries.push(match part {
                Part::Partition => storage::partition(storage, self.table, meter).await?,
                Part::Format => storage::format(storage, meter).await?,
                Part::Mount => storage::mount(storage, meter).await?,
                Part::Wipe => storage::wipe(storage, meter).await?,
            });
        }
        Ok(summaries.join("; "))
    }
}

/// Valid commands of rootio, for error messages.
const COMMANDS: &str = "partition, format, mount and wipe";

/// Returns MBR if the variable MBR is not empty, as upstream, else GPT.
fn table(environment: &Environment<'_>) -> Table {
    if environment.optional("MBR").is_some() { Table::Mbr } else { Table::Gpt }
}

#[cfg(test)]
mod tests {
    use imaging::stream::Timeouts;

    use super::{LayoutSource, Part, Rootio, Table};
    use crate::actions::environment::Environment;

    fn parse(command: &[&str], list: &[&str]) -> Result<Rootio, String> {
        let list: Vec<_> = list.iter().map(|entry| (*entry).to_owned()).collect();
        let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
        Rootio::parse(&Environment::new("rootio", &list), &command, Timeouts::DEFAULT)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_upstreams() {
        let host = "MIRROR_HOST=10.77.0.1";
        let rootio = parse(&["partition"], &[host]).unwrap();
        assert_eq!((rootio.parts, rootio.table), (vec![Part::Partition], Table::Gpt));
        let LayoutSource::At(url, _) = rootio.described else { panic!("it is not fetched") };
        assert_eq!(url.to_string(), "http://10.77.0.1:50061/metadata");
        let more = [host, "METADATA_SERVICE_PORT=7172", "MBR=yes"];
        let rootio = parse(&["/usr/bin/rootio", "wipe", "format", "mount"], &more).unwrap();
        assert_eq!(rootio.parts, [Part::Wipe, Part::Format, Part::Mount]);
        assert_eq!(rootio.table, Table::Mbr);
        let LayoutSource::At(url, _) = rootio.described else { panic!("it is not fetched") };
        assert_eq!(url.to_string(), "http://10.77.0.1:7172/metadata");
    }

    #[test]
    fn what_is_missing_has_its_sentence() {
        let host = "MIRROR_HOST=10.77.0.1";
        for (command, list, words) in [
            (&[][..], &[host][..], "rootio cannot use command: it is missing; use partition, "),
            (&["rootio"], &[host], "rootio cannot use command: it is missing"),
            (&["version"], &[host], "cannot use command: \"version\" is not one of partition, "),
            (&["format"], &[], "rootio needs MIRROR_HOST"),
            (&["format"], &[host, "METADATA_SERVICE_PORT=x"], "\"x\" is not a valid port"),
        ] {
            let error = parse(command, list).unwrap_err();
            assert!(error.contains(words), "{command:?} {list:?}: {error}");
        }
    }
}
