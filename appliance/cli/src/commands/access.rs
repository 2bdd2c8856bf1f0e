//! `access`: the access tokens of the box.

use serde_json::{Value, json};
use status::plain;

use crate::client::Path;
use crate::commands::Context;
use crate::error::Error;
use crate::output::{Format, Table};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List the access tokens of the box. Example: `tinbox access list`
    ///
    /// Tokens of ServiceAccounts are not listed; deleting a ServiceAccount ends its tokens.
    #[command(verbatim_doc_comment)]
    List,
    /// Replace the administrator's token and print the new kubeconfig
    ///
    /// The old token stops working immediately, in all copies of the kubeconfig: save the output as
    /// the new kubeconfig. Example: `tinbox access rotate >new.kubeconfig`
    #[command(verbatim_doc_comment)]
    Rotate,
    /// Revoke one token immediately; the last administrator's token is refused. Example: `tinbox
    /// access revoke 9f86d081884c`
    Revoke {
        /// Id of the token, as shown by `tinbox access list`
        #[arg(value_name = "ID")]
        id: String,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    let printer = &context.printer;
    match command {
        Command::List => {
            let answer = context.client.get(&Path::access("")).await?;
            let tokens = answer["tokens"].as_array().cloned().unwrap_or_default();
            if let Some(printed) = printer.values(&tokens) {
                return printed;
            }
            printer.table(rows(&tokens))
        }
        Command::Rotate => {
            let answer = context.client.post(&Path::access("/rotate"), "", &json!({})).await?;
            if !matches!(printer.format, Format::Table | Format::Wide | Format::Name) {
                return printer.object(&answer);
            }
            let made = answer["kubeconfig"].as_str().unwrap_or_default();
            made.lines().try_for_each(|line| printer.line(&at(line, context)))?;
            printer.note("older kubeconfigs of the administrator are no longer valid");
            Ok(())
        }
        Command::Revoke { id } => {
            let order = json!({ "id": id });
            let answer = context.client.post(&Path::access("/revoke"), "", &order).await?;
            let user = answer["revoked"]["user"].as_str().unwrap_or_default();
            printer.line(&format!("{} of {} revoked", plain(&id), plain(user)))
        }
    }
}

/// Replaces the `server` of a kubeconfig line by the address that this command used.
fn at(line: &str, context: &Context) -> String {
    let line: String = line.chars().filter(|char| !char.is_control()).collect();
    match line.split_once("server: ") {
        Some((before, _)) => format!("{before}server: {}", context.client.server()),
        None => line,
    }
}

fn rows(tokens: &[Value]) -> Table {
    let mut table = Table::new(&["ID", "USER", "GROUPS"]);
    for token in tokens {
        let text = |field: &str| plain(token[field].as_str().unwrap_or_default());
        let groups = token["groups"].as_array().into_iter().flatten();
        let groups: Vec<String> = groups.filter_map(Value::as_str).map(plain).collect();
        table.row([text("id").into(), text("user").into(), groups.join(",").into()]);
    }
    table
}
