//! `network`: the networks that the box serves.

use api::network::{Mode, NETWORK, Network};
use box_client::{Path, find};
use jiff::Timestamp;
use printers::dhcp_clients;
use serde_json::Value;
use status::dhcp_client::DhcpClient;
use status::plain;

use super::{Context, name_of};
use crate::error::Error;
use crate::output::{Cell, Table, age, text};

/// Manage the networks that the box serves
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List networks. Example: `tinbox network list`
    #[command(alias = "ls")]
    List,
    /// Show one network. Example: `tinbox network get eth1`
    Get {
        /// Name of the network, as `tinbox network list` shows it, such as eth1
        #[arg(value_name = "NAME")]
        network: String,
    },
    /// Set the DHCP mode of a network; no restart is needed
    ///
    /// Before the box assigns addresses, it searches the network for other DHCP servers for 10 s.
    /// The mode stays after a restart of the box, until the settings of the network in box.toml
    /// change.
    ///
    /// Example: `tinbox network mode eth1 reserved`
    Mode {
        /// Name of the network, as `tinbox network list` shows it, such as eth1
        #[arg(value_name = "NAME")]
        network: String,
        /// Machines that DHCP answers. off: none; proxy: known machines (with enrollment also
        /// unknown machines), boot information only, addresses come from another DHCP server;
        /// reserved: known machines, with their reserved addresses; pool: as reserved, and all
        /// other machines with addresses from the pool
        #[arg(value_enum)]
        mode: ModeArgument,
        /// Address range of the pool, first-last, such as 10.77.0.100-10.77.0.199; can be repeated.
        /// Replaces the former pool; required for mode pool
        #[arg(long, value_name = "RANGE", required_if_eq("mode", "pool"))]
        pool: Vec<String>,
    },
    /// List DHCP clients of the last hour and the answer each got
    ///
    /// Example: `tinbox network clients`
    #[command(verbatim_doc_comment, alias = "heard")]
    Clients,
    /// Resume DHCP after another DHCP server was found and removed
    ///
    /// The box first searches the network for other DHCP servers for 10 s, and stays stopped if one
    /// answers. Example: `tinbox network resume eth1`
    #[command(verbatim_doc_comment, alias = "rearm")]
    Resume {
        /// Name of the network, as `tinbox network list` shows it, such as eth1
        #[arg(value_name = "NAME")]
        network: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ModeArgument {
    /// Answer no machine
    Off,
    /// Answer known machines with boot information only; addresses come from another DHCP server
    Proxy,
    /// Answer known machines, with their reserved addresses
    Reserved,
    /// Answer as in reserved, and all other machines with addresses from the pool
    Pool,
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::List => {
            let (mut items, _) = context.client.list(&Path::collection(NETWORK, ""), "").await?;
            items.sort_by_cached_key(name_of);
            context.printer.objects(items, table)
        }
        Command::Get { network } => {
            context.printer.object(&find(&context.client, NETWORK, "", &network).await?)
        }
        Command::Clients => clients(context).await,
        Command::Mode { network, mode, pool } => {
            let mut object = find(&context.client, NETWORK, "", &network).await?;
            set_mode(&mut object, mode, &pool);
            replace(context, &object, &format!("mode {}", mode.mode())).await
        }
        Command::Resume { network } => {
            let mut object = find(&context.client, NETWORK, "", &network).await?;
            object["spec"]["rearm"] = Timestamp::now().to_string().into();
            replace(context, &object, "searches for other DHCP servers, then resumes").await
        }
    }
}

async fn clients(context: &Context) -> Result<(), Error> {
    let answer = context.client.get(&Path::dhcp_clients()).await?;
    let list: Vec<DhcpClient> = serde_json::from_value(answer).unwrap_or_default();
    match context.printer.values(&list) {
        Some(printed) => printed,
        None if list.is_empty() => {
            context.printer.note("no machine requested an address in the last hour");
            Ok(())
        }
        None => context.printer.table(dhcp_clients::table(&list)),
    }
}

async fn replace(context: &Context, object: &Value, word: &str) -> Result<(), Error> {
    let path = Path::object(NETWORK, "", &name_of(object));
    let replaced = context.client.replace(&path, object).await?;
    context.printer.done(&replaced, word)
}

/// Sets the DHCP mode, and the pool if `pool` is not empty.
fn set_mode(object: &mut Value, mode: ModeArgument, pool: &[String]) {
    object["spec"]["mode"] = mode.mode().to_string().into();
    if !pool.is_empty() {
        object["spec"]["pool"] = pool.into();
    }
}

impl ModeArgument {
    fn mode(self) -> Mode {
        match self {
            Self::Off => Mode::Off,
            Self::Proxy => Mode::Proxy,
            Self::Reserved => Mode::Reserved,
            Self::Pool => Mode::Pool,
        }
    }
}

fn table(items: &[Value], now: Timestamp) -> Table {
    let columns = ["NAME", "ADDRESS", "MODE", "PHASE", "LEASED", "FREE", "AGE", "WHY"];
    let mut table = Table::new(&columns);
    for item in items {
        let network = serde_json::from_value::<Network>(item.clone()).unwrap_or_default();
        table.row([
            Cell::from(name_of(item)),
            network.spec.address.into(),
            network.spec.mode.to_string().into(),
            text(item, "/status/phase").into(),
            network.status.leased.to_string().into(),
            network.status.free.to_string().into(),
            age(item, now).into(),
            plain(&network.status.message).into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{ModeArgument, set_mode, table};
    use serde_json::json;

    #[test]
    fn the_list() {
        let items = [json!({
            "metadata": { "name": "eth1", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "interface": "eth1", "address": "10.77.0.1/24", "mode": "pool" },
            "status": { "phase": "Serving", "message": "known machines", "leased": 3, "free": 97 },
        })];
        let now = "2026-01-01T00:05:00Z".parse().unwrap();
        golden::check("network-list.txt", &table(&items, now).render(false));
    }

    #[test]
    fn a_mode_keeps_what_it_does_not_name() {
        let mut object = json!({ "spec": { "mode": "pool", "pool": ["10.0.0.1"], "domain": "x" } });
        set_mode(&mut object, ModeArgument::Off, &[]);
        let spec = json!({ "mode": "off", "pool": ["10.0.0.1"], "domain": "x" });
        assert_eq!(object["spec"], spec);
        set_mode(&mut object, ModeArgument::Pool, &["10.0.0.2-10.0.0.9".to_owned()]);
        assert_eq!(object["spec"]["pool"], json!(["10.0.0.2-10.0.0.9"]));
    }
}
