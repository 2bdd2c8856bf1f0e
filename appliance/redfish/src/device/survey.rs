//! Reads what the resources of one machine say about its hardware.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::hardware::{disk_bytes, electrical, log_record, newest, sensor, sort_logs, thermal};
use crate::line::Turn;
use crate::{Document, Error, Inventory, LogRecord, Reading};

/// Maximum processors and network interfaces that are read.
const PARTS_MAX: usize = 16;
/// Maximum storage controllers that are read.
const STORAGES_MAX: usize = 24;
/// Maximum drives that are read one by one.
const DRIVES_MAX: usize = 32;
/// Time in which the drives of one inventory are read, so that slow BMCs give the rest of it.
const DRIVES_LIMIT: Duration = Duration::from_secs(30);
/// Maximum sensors that are read one by one.
const SENSORS_MAX: usize = 64;
/// Maximum logs that are tried in the search for one with entries.
const LOGS_MAX: usize = 12;
/// Maximum pages of a log that are read.
const PAGES_MAX: usize = 16;
/// Maximum entries of a log that are read one by one.
const ENTRIES_MAX: usize = 50;

/// Reads the inventory. A resource that is missing or that the service cannot read leaves its
/// fields empty.
pub async fn inventory(
    turn: &mut Turn<'_>,
    name: &str,
    system: &Document,
) -> Result<Inventory, Error> {
    let manager = turn.state.places.get(name).and_then(|places| places.manager.clone());
    let manager = turn.readable(manager).await?;
    let processors = parts(turn, system.link("/Processors"), PARTS_MAX).await?;
    let interfaces = parts(turn, system.link("/EthernetInterfaces"), PARTS_MAX).await?;
    let read = Inventory::read(system, manager.as_ref(), &processors, &interfaces);
    Ok(Inventory { disk_bytes: disks(turn, system).await?, ..read })
}

async fn parts(
    turn: &mut Turn<'_>,
    collection: Option<String>,
    limit: usize,
) -> Result<Vec<Document>, Error> {
    let Some(collection) = turn.readable(collection).await? else { return Ok(Vec::new()) };
    let mut parts = Vec::new();
    for path in collection.links("/Members").into_iter().take(limit) {
        parts.extend(turn.readable(Some(path)).await?);
    }
    Ok(parts)
}

/// Reads the capacities of the drives of `Storage`. Older services have `SimpleStorage` only, and
/// some have both and no drive in the first.
async fn disks(turn: &mut Turn<'_>, system: &Document) -> Result<Vec<u64>, Error> {
    let end = Instant::now() + DRIVES_LIMIT;
    let storages = parts(turn, system.link("/Storage"), STORAGES_MAX).await?;
    let mut drives: Vec<String> = storages.iter().flat_map(|it| it.links("/Drives")).collect();
    // Controllers that share a backplane list its drives twice.
    let mut known = HashSet::new();
    drives.retain(|path| known.insert(path.clone()));
    let mut disks = Vec::new();
    for (number, path) in drives.iter().enumerate() {
        if number >= DRIVES_MAX || Instant::now() >= end {
            let missing = drives.len() - number;
            tracing::warn!(system = system.path, missing, "not all drives were read");
            break;
        }
        let drive = turn.readable(Some(path.clone())).await?;
        disks.extend(drive.and_then(|drive| disk_bytes(&drive.json)));
    }
    if disks.is_empty() {
        let simple = parts(turn, system.link("/SimpleStorage"), STORAGES_MAX).await?;
        let devices = simple.iter().flat_map(|it| it.items("/Devices"));
        disks.extend(devices.filter_map(disk_bytes));
    }
    Ok(disks)
}

/// Reads the sensors: `Thermal` and `Power` hold all values in two resources; newer services have
/// only a collection of sensors.
pub async fn sensors(turn: &mut Turn<'_>, name: &str) -> Result<Vec<Reading>, Error> {
    let chassis = turn.state.places.get(name).and_then(|places| places.chassis.clone());
    let Some(chassis) = turn.find(chassis).await? else { return Ok(Vec::new()) };
    let mut readings = Vec::new();
    if let Some(found) = turn.find(chassis.link("/Thermal")).await? {
        readings.extend(thermal(&found));
    }
    if let Some(found) = turn.find(chassis.link("/Power")).await? {
        readings.extend(electrical(&found));
    }
    if readings.is_empty() {
        let found = turn.members(chassis.link("/Sensors"), SENSORS_MAX).await?;
        readings.extend(found.iter().filter_map(|it| sensor(&it.json)));
    }
    Ok(readings)
}

/// Reads the newest entries of the log about the hardware.
pub async fn events(
    turn: &mut Turn<'_>,
    name: &str,
    system: &Document,
    limit: usize,
) -> Result<Vec<LogRecord>, Error> {
    let manager = turn.state.places.get(name).and_then(|places| places.manager.clone());
    let manager = turn.find(manager).await?;
    let mut logs = Vec::new();
    for owner in [Some(system), manager.as_ref()].into_iter().flatten() {
        if let Some(found) = turn.find(owner.link("/LogServices")).await? {
            logs.extend(found.links("/Members"));
        }
    }
    let missing = || Error::Missing { path: system.path.clone(), what: "event log" };
    sort_logs(&mut logs);
    let mut next = None;
    for log in logs.into_iter().take(LOGS_MAX) {
        // Some services list a log that they do not have.
        next = turn.find(Some(log)).await?.and_then(|log| log.link("/Entries"));
        if next.is_some() {
            break;
        }
    }
    if next.is_none() {
        return Err(missing());
    }
    let mut records = Vec::new();
    for _ in 0..PAGES_MAX {
        let Some(page) = turn.find(next.take()).await? else { break };
        let known = records.len();
        records.extend(page.items("/Members").into_iter().filter_map(log_record));
        if records.len() == known {
            // A service that lists only references; the newest entries are first or last.
            let links = page.links("/Members");
            let half = ENTRIES_MAX / 2;
            let end = links.len().saturating_sub(half).max(half);
            let ends = links.iter().take(half).chain(links.iter().skip(end));
            for path in ends {
                let entry = turn.find(Some(path.clone())).await?;
                records.extend(entry.and_then(|entry| log_record(&entry.json)));
            }
        }
        next = page.text("/Members@odata.nextLink").and_then(crate::document::path);
    }
    records.dedup();
    Ok(newest(records, limit))
}
