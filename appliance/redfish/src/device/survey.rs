//! Reads what the resources of one machine say about its hardware.

use crate::hardware::{electrical, log_record, newest, preferred_log, sensor, thermal};
use crate::line::Turn;
use crate::{Document, Error, Inventory, LogRecord, Reading};

/// Maximum processors and network interfaces that are read.
const PARTS_MAX: usize = 16;
/// Maximum sensors that are read one by one.
const SENSORS_MAX: usize = 64;
/// Maximum pages of a log that are read.
const PAGES_MAX: usize = 16;
/// Maximum entries of a log that are read one by one.
const ENTRIES_MAX: usize = 50;

/// Reads the inventory. A missing resource leaves its fields empty.
pub async fn inventory(
    turn: &mut Turn<'_>,
    name: &str,
    system: &Document,
) -> Result<Inventory, Error> {
    let manager = turn.state.places.get(name).and_then(|places| places.manager.clone());
    let manager = turn.find(manager).await?;
    let processors = turn.members(system.link("/Processors"), PARTS_MAX).await?;
    let interfaces = turn.members(system.link("/EthernetInterfaces"), PARTS_MAX).await?;
    Ok(Inventory::read(system, manager.as_ref(), &processors, &interfaces))
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
    let log = preferred_log(&logs).cloned().ok_or_else(missing)?;
    let mut next = turn.get(&log).await?.link("/Entries");
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
