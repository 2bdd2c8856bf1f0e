//! Search for the resources of one machine. No identifier is known in advance.

use super::led;
use crate::boot;
use crate::line::{Places, Turn};
use crate::power;
use crate::{Document, Error, Learned, Quirks};

/// Maximum systems of one service that are read in the search for the machine.
const SYSTEMS_MAX: usize = 32;

/// Finds the system, its BMC and its chassis, and what the service offers.
pub async fn discover(turn: &mut Turn<'_>, name: &str) -> Result<(Document, Learned), Error> {
    let root = turn.root().await?;
    let missing = |path: &str, what| Error::Missing { path: path.to_owned(), what };
    let systems = root.link("/Systems").ok_or_else(|| missing(&root.path, "Systems"))?;
    let collection = turn.get(&systems).await?;
    let members = collection.links("/Members");
    if members.is_empty() {
        return Err(missing(&collection.path, "Members"));
    }
    let system = match name {
        "" => only(turn, members).await?,
        name => named(turn, members, name).await?,
    };
    let manager = system.links("/Links/ManagedBy").into_iter().next();
    let manager = match manager {
        None => first_member(turn, root.link("/Managers")).await?,
        manager => manager,
    };
    let chassis = system.links("/Links/Chassis").into_iter().next();
    let chassis = match chassis {
        None => first_member(turn, root.link("/Chassis")).await?,
        chassis => chassis,
    };
    turn.state.quirks = Quirks::of(&root, Some(&system));
    let learned = learn(turn, &system, manager.clone(), chassis.clone()).await?;
    turn.state.remember(name, Places { system: system.path.clone(), manager, chassis });
    Ok((system, learned))
}

/// Reads what the service offers for the system. A resource that the service cannot read must not
/// prevent a change of power.
async fn learn(
    turn: &mut Turn<'_>,
    system: &Document,
    manager: Option<String>,
    chassis: Option<String>,
) -> Result<Learned, Error> {
    let bmc = turn.readable(manager).await?;
    let links = |pointer: &str| {
        let owners = [Some(system), bmc.as_ref()].into_iter().flatten();
        owners.filter_map(|owner| owner.link(pointer)).collect::<Vec<_>>()
    };
    // The collection of some BMCs has no slot.
    let mut media = false;
    for slots in links("/VirtualMedia") {
        media |= !media
            && turn.readable(Some(slots)).await?.is_some_and(|it| !it.links("/Members").is_empty());
    }
    let settings = turn.readable(boot::settings(system)).await?;
    let sensors = chassis.is_some();
    let identify = led::is_in(system)
        || turn.readable(chassis).await?.is_some_and(|chassis| led::is_in(&chassis));
    Ok(Learned {
        reset_types: reset_types(turn, system).await?,
        boot_always: boot::has_continuous(system, settings.as_ref()),
        http_boot: boot::has_http(system, settings.as_ref()),
        media,
        identify,
        sensors,
        events: !links("/LogServices").is_empty(),
    })
}

async fn first_member(
    turn: &mut Turn<'_>,
    collection: Option<String>,
) -> Result<Option<String>, Error> {
    let found = turn.find(collection).await?;
    Ok(found.and_then(|it| it.links("/Members").into_iter().next()))
}

/// Returns the system of a service without a name in the options: the only one, else the only
/// physical one, else the only physical one that can be reset. Some services list accelerator
/// boards as physical systems without the reset action.
async fn only(turn: &mut Turn<'_>, members: Vec<String>) -> Result<Document, Error> {
    let mut systems = Vec::new();
    for path in members.iter().take(SYSTEMS_MAX) {
        systems.push(turn.get(path).await?);
    }
    let is_physical = |it: &&Document| {
        systems.len() == 1 || it.text("/SystemType").is_none_or(|kind| kind == "Physical")
    };
    let physical: Vec<&Document> = systems.iter().filter(is_physical).collect();
    let has_reset: Vec<&Document> =
        physical.iter().copied().filter(|it| power::has_reset(it)).collect();
    match (physical.as_slice(), has_reset.as_slice()) {
        ([system], _) | (_, [system]) => Ok((*system).clone()),
        _ => Err(Error::SeveralSystems { found: names(&systems) }),
    }
}

fn names(systems: &[Document]) -> String {
    let names = systems.iter().map(|it| it.text("/Id").unwrap_or(it.name()));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the system with this identifier or name.
async fn named(turn: &mut Turn<'_>, members: Vec<String>, name: &str) -> Result<Document, Error> {
    let by_path = members.iter().find(|path| crate::document::last_segment(path) == name);
    if let Some(path) = by_path {
        return turn.get(path).await;
    }
    let mut found = Vec::new();
    for path in members.iter().take(SYSTEMS_MAX) {
        let system = turn.get(path).await?;
        let names = ["/Id", "/Name", "/HostName"].map(|pointer| system.text(pointer));
        if names.contains(&Some(name)) {
            return Ok(system);
        }
        found.push(system);
    }
    Err(Error::NoSystem { wanted: name.to_owned(), found: names(&found) })
}

/// Returns the values of `ResetType` that the system offers; empty if it does not state them.
pub async fn reset_types(turn: &mut Turn<'_>, system: &Document) -> Result<Vec<String>, Error> {
    let types = power::types(system);
    if !types.is_empty() {
        return Ok(types);
    }
    let info = turn.find(power::action_info(system)).await?;
    Ok(info.as_ref().map(power::types_of_info).unwrap_or_default())
}
