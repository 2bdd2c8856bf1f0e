//! `network`: what the box serves on its interfaces.

use api::network::{Mode, NETWORK, Network};
use jiff::Timestamp;
use serde_json::Value;
use status::heard::Heard;
use status::story::plain;

use super::{Context, name_of};
use crate::client::Path;
use crate::error::Error;
use crate::find::find;
use crate::output::{Cell, Table, age, text};

/// What the box serves on its interfaces.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List networks. Example: `tinbox network list`
    List,
    /// Show one network. Example: `tinbox network get eth1`
    Get {
        /// Name, which is the interface's.
        #[arg(value_name = "NAME")]
        network: String,
    },
    /// Say whom DHCP answers; takes effect at once. Example: `tinbox network mode eth1 reserved`
    Mode {
        /// Name, which is the interface's.
        #[arg(value_name = "NAME")]
        network: String,
        /// off: nobody; proxy: what to boot, beside another server; reserved: known machines; pool:
        /// everybody, from the network's pool.
        #[arg(value_enum)]
        mode: Wanted,
        /// Addresses to give away, with mode pool: first-last. Example: 10.77.0.100-10.77.0.199
        #[arg(long, value_name = "RANGE", required_if_eq("mode", "pool"))]
        pool: Vec<String>,
    },
    /// Show who asked for an address in the last hour, and what became of it.
    ///
    /// Example: `tinbox network heard`
    #[command(verbatim_doc_comment)]
    Heard,
    /// Serve again after another DHCP server was heard, once it is gone.
    ///
    /// The network is looked through for others first. Example: `tinbox network rearm eth1`
    #[command(verbatim_doc_comment)]
    Rearm {
        /// Name, which is the interface's.
        #[arg(value_name = "NAME")]
        network: String,
    },
}

/// A mode, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Wanted {
    /// Nobody is answered.
    Off,
    /// What to boot.
    Proxy,
    /// Known machines.
    Reserved,
    /// Everybody.
    Pool,
}

/// Do it.
///
/// # Errors
/// What failed.
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
        Command::Heard => heard(context).await,
        Command::Mode { network, mode, pool } => {
            let mut object = find(&context.client, NETWORK, "", &network).await?;
            set_mode(&mut object, mode, &pool);
            replace(context, &object, &format!("mode {}", mode.mode())).await
        }
        Command::Rearm { network } => {
            let mut object = find(&context.client, NETWORK, "", &network).await?;
            object["spec"]["rearm"] = Timestamp::now().to_string().into();
            replace(context, &object, "looks for other DHCP servers, then serves").await
        }
    }
}

async fn heard(context: &Context) -> Result<(), Error> {
    let answer = context.client.get(&Path::heard()).await?;
    let list: Vec<Heard> = serde_json::from_value(answer).unwrap_or_default();
    match context.printer.values(&list) {
        Some(printed) => printed,
        None if list.is_empty() => {
            context.printer.note("nobody asked for an address in the last hour");
            Ok(())
        }
        None => context.printer.table(&heard_table(&list)),
    }
}

async fn replace(context: &Context, object: &Value, word: &str) -> Result<(), Error> {
    let path = Path::object(NETWORK, "", &name_of(object));
    let replaced = context.client.replace(&path, object).await?;
    context.printer.done(&replaced, word)
}

/// A pool that was set stays when the mode is set without one.
fn set_mode(object: &mut Value, mode: Wanted, pool: &[String]) {
    object["spec"]["mode"] = mode.mode().to_string().into();
    if !pool.is_empty() {
        object["spec"]["pool"] = pool.into();
    }
}

impl Wanted {
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

fn heard_table(list: &[Heard]) -> Table {
    let mut table = Table::new(&["MAC", "HARDWARE", "ASKED", "ANSWER"]);
    for heard in list {
        table.row([
            heard.mac.to_string().into(),
            heard.hardware.as_str().into(),
            heard.asked.strftime("%H:%M:%S").to_string().into(),
            plain(&heard.decision).into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{Heard, Wanted, heard_table, set_mode, table};
    use serde_json::json;

    #[test]
    fn who_was_heard() {
        let heard = |mac: &str, hardware: &str, decision: &str| Heard {
            mac: mac.parse().unwrap(),
            hardware: hardware.to_owned(),
            asked: "2026-01-01T00:05:00Z".parse().unwrap(),
            decision: decision.to_owned(),
        };
        let list = [
            heard("52:54:00:77:00:09", "", "not answered: no Hardware has this MAC address"),
            heard("52:54:00:77:00:01", "default/nuc-1", "has 10.77.0.11"),
        ];
        crate::golden::check("network-heard.txt", &heard_table(&list).render(false));
    }

    #[test]
    fn the_list() {
        let items = [json!({
            "metadata": { "name": "eth1", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "interface": "eth1", "address": "10.77.0.1/24", "mode": "pool" },
            "status": { "phase": "Serving", "message": "known machines", "leased": 3, "free": 97 },
        })];
        let now = "2026-01-01T00:05:00Z".parse().unwrap();
        crate::golden::check("network-list.txt", &table(&items, now).render(false));
    }

    #[test]
    fn a_mode_keeps_what_it_does_not_name() {
        let mut object = json!({ "spec": { "mode": "pool", "pool": ["10.0.0.1"], "domain": "x" } });
        set_mode(&mut object, Wanted::Off, &[]);
        let spec = json!({ "mode": "off", "pool": ["10.0.0.1"], "domain": "x" });
        assert_eq!(object["spec"], spec);
        set_mode(&mut object, Wanted::Pool, &["10.0.0.2-10.0.0.9".to_owned()]);
        assert_eq!(object["spec"]["pool"], json!(["10.0.0.2-10.0.0.9"]));
    }
}
