//! `image`: the cache of downloaded images and files.

use box_client::Path;
pub mod os_image;

use jiff::Timestamp;
use serde_json::Value;
use status::image::{Image, ImageOperation, ImageRequest, ImageState, Images};
use status::plain;
use status::words::Tone;

use super::Context;
use crate::error::Error;
use crate::output::{Cell, Table, since};

/// Manage the cache of downloaded images and files
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List cached images: downloads in progress, missing images, then complete ones in the order
    /// of their eviction
    ///
    /// Example: `tinbox image list`
    #[command(alias = "ls")]
    List,
    /// Pin an image so that it is never evicted; downloads it if it is missing
    ///
    /// Example: `tinbox image pin https://images.example/debian.raw.zst`
    Pin(ImageArgument),
    /// Unpin an image so that it can be evicted
    ///
    /// Example: `tinbox image unpin https://images.example/debian.raw.zst`
    Unpin(ImageArgument),
    /// Remove an image from the cache; refused if the image is pinned, being read or needed by a
    /// workflow
    ///
    /// Example: `tinbox image rm 5891b5b522d5`
    Rm(ImageArgument),
}

#[derive(Debug, clap::Args)]
pub struct ImageArgument {
    /// URL or SHA-256 of the image, or the first digits of the SHA-256 as the list shows them
    #[arg(value_name = "URL|DIGEST")]
    image: String,
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::List => list(context).await,
        Command::Pin(named) => act(context, named, ImageOperation::Pin).await,
        Command::Unpin(named) => act(context, named, ImageOperation::Unpin).await,
        Command::Rm(named) => act(context, named, ImageOperation::Remove).await,
    }
}

async fn list(context: &Context) -> Result<(), Error> {
    let answer = context.client.get(&Path::images()).await?;
    let images: Images = serde_json::from_value(answer).unwrap_or_default();
    if let Some(printed) = context.printer.values(&images.items) {
        return printed;
    }
    context.printer.table(table(&images.items, Timestamp::now()))?;
    notes(&images.items).iter().for_each(|note| context.printer.note(note));
    let (used, capacity) = (stdx::bytes(images.used), stdx::bytes(images.capacity));
    context.printer.note(&format!("{used} of the cache's {capacity} are used"));
    if !images.warning.is_empty() {
        context.printer.note(&format!("warning: {}", plain(&images.warning)));
    }
    Ok(())
}

async fn act(context: &Context, named: ImageArgument, act: ImageOperation) -> Result<(), Error> {
    let ImageArgument { image } = named;
    let order =
        serde_json::to_value(ImageRequest { image: image.clone(), act }).unwrap_or_default();
    let answer = context.client.create(&Path::images(), &order).await?;
    let message = answer.get("message").and_then(Value::as_str).unwrap_or_default();
    context.printer.line(&format!("{image}: {}", plain(message)))
}

fn table(items: &[Image], now: Timestamp) -> Table {
    let columns = ["FILE", "STATE", "SIZE", "USED", "STAYS", "DIGEST", "WORKFLOWS", "ORIGIN"];
    let mut table = Table::new(&columns).with_details(&["DIGEST", "WORKFLOWS", "ORIGIN"]);
    for item in items {
        let size = if item.size > 0 { stdx::bytes(item.size) } else { String::new() };
        let used = item.last_used.map(|at| since(at, now)).unwrap_or_default();
        table.row([
            plain(file_name(&item.origin)).into(),
            Cell::toned(state(item), tone(item.state)),
            size.into(),
            used.into(),
            item.stays().into(),
            plain(item.short_name()).into(),
            plain(&item.workflows.join(",")).into(),
            plain(&item.origin).into(),
        ]);
    }
    table
}

/// Returns the last part of a URL; the whole text if it has none.
fn file_name(origin: &str) -> &str {
    origin.rsplit('/').find(|part| !part.is_empty()).unwrap_or(origin)
}

/// Returns the state in a few words. The reason of a failure is printed below the table.
pub fn state(item: &Image) -> String {
    if item.state == ImageState::Failed { "failed".to_owned() } else { item.line() }
}

/// Returns the reasons of failed downloads, one per line.
pub fn notes(items: &[Image]) -> Vec<String> {
    let failed = items.iter().filter(|item| item.state == ImageState::Failed);
    failed.map(|item| format!("{} {}", plain(&item.origin), item.line())).collect()
}

/// Returns the tone of a state.
pub fn tone(state: ImageState) -> Tone {
    match state {
        ImageState::Ready => Tone::Good,
        ImageState::Fetching => Tone::Busy,
        ImageState::Failed => Tone::Bad,
        ImageState::Waiting | ImageState::Missing => Tone::Quiet,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use status::image::Images;

    #[test]
    fn a_list_of_images_has_a_note_for_each_failure() {
        let digest = |digit: char| format!("sha256:{}", String::from(digit).repeat(64));
        let images: Images = serde_json::from_value(json!({ "items": [
            {
                "origin": "https://images.example/debian.raw.zst", "state": "fetching",
                "size": 400_u64 << 20, "received": 100_u64 << 20, "bytesPerSecond": 50_u64 << 20,
                "needed": true, "workflows": ["default/debian-nuc1", "default/debian-nuc2"],
            },
            {
                "origin": "http://files.example/missing.raw", "state": "failed", "needed": true,
                "message": "could not fetch http://files.example/missing.raw: the server \
                            responded with 404",
                "workflows": ["default/old"],
            },
            {
                "origin": "http://files.example/old.raw.gz", "state": "ready",
                "digest": digest('5'),
                "size": 300_u64 << 20, "lastUsed": "2026-01-01T00:00:00Z", "goes": 1,
            },
            {
                "origin": "http://files.example/kept.raw.gz", "state": "ready",
                "digest": digest('a'), "size": 1_u64 << 30, "lastUsed": "2026-01-03T00:00:00Z",
                "pinned": true, "inUse": true,
            },
        ]}))
        .unwrap();
        let now = "2026-01-03T00:05:00Z".parse().unwrap();
        golden::check("image-list.txt", &super::table(&images.items, now).render(false));
        let missing = "http://files.example/missing.raw";
        let why =
            format!("{missing} failed: could not fetch {missing}: the server responded with 404");
        assert_eq!(super::notes(&images.items), [why]);
    }
}
