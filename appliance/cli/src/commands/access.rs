//! `access`: the access tokens of the box.

use box_client::Path;
use printers::tokens;
use serde_json::{Value, json};
use status::access::DAYS_MAX;
use status::plain;

use crate::commands::Context;
use crate::error::Error;
use crate::output::Format;

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
    /// Create a token with a role, and print a kubeconfig with it
    ///
    /// The output is the only copy of the token. Example:
    /// `tinbox access create ci --role operator --days 30 >ci.kubeconfig`
    ///
    /// The rights of a role are those of the ClusterRole `tinbox:ROLE`.
    #[command(verbatim_doc_comment)]
    Create {
        /// Name of the program or person that uses the token
        #[arg(value_name = "NAME")]
        name: String,
        /// Role of the token
        #[arg(long, value_parser = ["viewer", "operator", "admin"])]
        role: String,
        /// Number of days until the token ends
        #[arg(long, default_value_t = 90, value_parser = days())]
        days: u32,
    },
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
            printer.table(tokens::table(&tokens))
        }
        Command::Rotate => {
            let answer = context.client.post(&Path::access("/rotate"), "", &json!({})).await?;
            kubeconfig(context, &answer)?;
            printer.note("older kubeconfigs of the administrator are no longer valid");
            Ok(())
        }
        Command::Create { name, role, days } => {
            let request = json!({ "name": name, "role": role, "days": days });
            let answer = context.client.post(&Path::access("/create"), "", &request).await?;
            kubeconfig(context, &answer)
        }
        Command::Revoke { id } => {
            let order = json!({ "id": id });
            let answer = context.client.post(&Path::access("/revoke"), "", &order).await?;
            let user = answer["revoked"]["user"].as_str().unwrap_or_default();
            printer.line(&format!("{} of {} revoked", plain(&id), plain(user)))
        }
    }
}

/// Returns the parser of a number of days.
fn days() -> impl clap::builder::TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=DAYS_MAX.into())
}

/// Prints the kubeconfig of an answer, with the server that this command used.
fn kubeconfig(context: &Context, answer: &Value) -> Result<(), Error> {
    let printer = &context.printer;
    if !matches!(printer.format, Format::Table | Format::Wide | Format::Name) {
        return printer.object(answer);
    }
    let made = answer["kubeconfig"].as_str().unwrap_or_default();
    made.lines().try_for_each(|line| printer.line(&at(line, context)))
}

/// Replaces the `server` of a kubeconfig line by the address that this command used.
fn at(line: &str, context: &Context) -> String {
    let line: String = line.chars().filter(|char| !char.is_control()).collect();
    match line.split_once("server: ") {
        Some((before, _)) => format!("{before}server: {}", context.client.server()),
        None => line,
    }
}
