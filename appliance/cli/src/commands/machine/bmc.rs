//! `bmc`: management controllers on the networks of the box.

use bmc_discovery::{Proposal, ProtocolKind};
use serde_json::json;
use status::plain;

use super::super::Context;
use crate::client::Path;
use crate::error::Error;
use crate::output::{Format, Table};

/// Find the management controllers (BMCs) of machines
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Search the box's networks for BMCs, and show the machine of each and the reason
    ///
    /// Finds IPMI, Intel AMT and Redfish. Sends no login. Example: `tinbox bmc discover`
    #[command(verbatim_doc_comment)]
    Discover {
        /// Print the YAML that accepts the found BMCs; enter their logins, then apply it
        #[arg(long)]
        manifest: bool,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    let Command::Discover { manifest } = command;
    let answer = context.client.post(&Path::bmc_discovery(), "", &json!({})).await?;
    let found: Vec<Proposal> = serde_json::from_value(answer).map_err(|error| {
        Error::Usage(format!("the box's answer about BMCs cannot be read: {error}"))
    })?;
    let printer = &context.printer;
    if manifest {
        let new = found.iter().filter(|it| it.accepted.is_empty());
        let manifests: Vec<&str> = new.map(|it| it.manifest.trim_end()).collect();
        return printer.line(&manifests.join("\n---\n"));
    }
    if let (Format::Json | Format::Yaml, Some(printed)) = (printer.format, printer.values(&found)) {
        return printed;
    }
    if found.is_empty() {
        printer.note(
            "no BMC answered: they must be on a network of the box, and IPMI over LAN or AMT must \
             be enabled in the firmware",
        );
        return Ok(());
    }
    printer.table(table(&found))
}

fn table(found: &[Proposal]) -> Table {
    let mut table = Table::new(&["ADDRESS", "PROTOCOLS", "MACHINE", "WHY"]);
    for Proposal { bmc, owner, accepted, .. } in found {
        let protocols: Vec<&str> = bmc.protocols.iter().map(|it| name(*it)).collect();
        let owner = owner.as_ref();
        let why = match (accepted.as_str(), owner) {
            ("", Some(owner)) => owner.reason.clone(),
            ("", None) => "unknown machine".to_owned(),
            (machine, _) => format!("in use as {machine}"),
        };
        table.row([
            bmc.address.to_string().into(),
            protocols.join(",").into(),
            plain(owner.map_or("", |owner| &owner.name)).into(),
            plain(&why).into(),
        ]);
    }
    table
}

fn name(protocol: ProtocolKind) -> &'static str {
    match protocol {
        ProtocolKind::AmtTls => "amt+tls",
        ProtocolKind::AmtPlain => "amt",
        ProtocolKind::Redfish => "redfish",
        ProtocolKind::Ipmi => "ipmi",
    }
}

#[cfg(test)]
mod tests {
    use bmc_discovery::{DiscoveredBmc, OwnerMatch, Proposal, ProtocolKind};

    use super::table;

    #[test]
    fn each_bmc_has_its_machine_and_the_reason() {
        let proposal = |last: u8, protocols: Vec<ProtocolKind>| Proposal {
            bmc: DiscoveredBmc {
                address: [10, 0, 0, last].into(),
                mac: String::new(),
                protocols,
                uuids: Vec::new(),
                description: String::new(),
            },
            owner: None,
            accepted: String::new(),
            manifest: String::new(),
        };
        let owner = OwnerMatch {
            namespace: "default".into(),
            name: "nuc1".into(),
            reason: "both have the UUID 33221100-5544-7766-8899-aabbccddeeff".into(),
            has_bmc: false,
        };
        let one = Proposal { owner: Some(owner), ..proposal(7, vec![ProtocolKind::AmtTls]) };
        let two = Proposal {
            accepted: "default/nuc2-bmc".into(),
            ..proposal(8, vec![ProtocolKind::Redfish, ProtocolKind::Ipmi])
        };
        let three = proposal(9, vec![ProtocolKind::Ipmi]);
        golden::check("bmc-discover.txt", &table(&[one, two, three]).render(false));
    }
}
