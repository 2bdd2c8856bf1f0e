//! Backups on the box's own disk.

use box_client::{Path, decode};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use status::backup::{BackupSummary, StoredBackup};
use status::plain;

use crate::commands::Context;
use crate::error::Error;
use crate::output::{Table, since};

/// Makes a backup on the box's own disk now.
pub async fn keep(context: &Context) -> Result<(), Error> {
    let made: StoredBackup =
        read(context.client.post(&Path::backup("/kept"), "", &json!({})).await?)?;
    if let Some(printed) = context.printer.values(std::slice::from_ref(&made)) {
        return printed;
    }
    context.printer.line(&format!("{} is kept: {}", plain(&made.name), made.contents()))
}

/// Lists the backups on the box's own disk.
pub async fn list(context: &Context) -> Result<(), Error> {
    let kept: Vec<StoredBackup> = read(context.client.get(&Path::backup("/kept")).await?)?;
    if let Some(printed) = context.printer.values(&kept) {
        return printed;
    }
    if kept.is_empty() {
        let other = "`tinbox backup create -o FILE` makes one on your computer";
        context.printer.note(&format!("no backup is kept on the box: {other}"));
        return Ok(());
    }
    context.printer.table(table(&kept, Timestamp::now()))
}

/// Starts the operation `what`, `verify` or `restore`, for the stored backup with this name.
pub async fn ask(context: &Context, name: &str, what: &str) -> Result<BackupSummary, Error> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        let why = format!("{name:?} is not a valid name of a backup on a box: see `backup list`");
        return Err(Error::Usage(why));
    }
    let path = Path::backup(&format!("/kept/{name}/{what}"));
    read(context.client.post(&path, "", &json!({})).await?)
}

fn table(kept: &[StoredBackup], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME", "AGE", "SIZE", "MACHINES", "OBJECTS"]);
    for one in kept {
        table.row([
            plain(&one.name).into(),
            since(one.made, now).into(),
            stdx::bytes(one.bytes).into(),
            one.hardware.to_string().into(),
            one.objects.to_string().into(),
        ]);
    }
    table
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, Error> {
    Ok(decode("read the answer", answer)?)
}
