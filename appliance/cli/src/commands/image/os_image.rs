//! `os-image`: OS images that machines install, and the upload of their files.

mod push;

use std::sync::Arc;

use api::os_image::{OS_IMAGE, OsImage};
use box_client::{ApiObjects, ClientError, Path};
use image_catalog::{CatalogError, ImageCatalog, ImageForm, KNOWN, UPLOADED};
use jiff::Timestamp;
use serde_json::{Value, json};
use status::image::{Image, ImageOperation, ImageRequest, ImageState, Images};
use status::plain;
use status::words::Tone;

use crate::commands::{Context, image, name_of};
use crate::error::Error;
use crate::output::{Cell, Format, Table, age, text};
use crate::question::confirm::{Confirm, Reply};

/// Manage the OS images that machines install
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List OS images with the state and the size of their files
    ///
    /// Example: `tinbox os-image list`
    #[command(alias = "ls")]
    List,
    /// List the images of publishers that `add` knows by name
    ///
    /// Example: `tinbox os-image publishers`
    Publishers,
    /// Add an image of a publisher by its name, or the image at a URL
    ///
    /// The box fetches the file when the first machine needs it. Examples:
    /// `tinbox os-image add debian-13`;
    /// `tinbox os-image add mine --distro debian --version 13 --url https://images.example/a.qcow2`
    #[command(verbatim_doc_comment)]
    Add(Add),
    /// Upload an image file to the box; replaces an earlier upload of this name
    ///
    /// The box refuses a file that is not the image of an installed system. Example:
    /// `tinbox os-image push debian-13 debian.qcow2 --distro debian --version 13`
    #[command(verbatim_doc_comment, alias = "upload")]
    Push(push::Push),
    /// Fetch the file of an OS image into the cache now, and pin it
    ///
    /// Example: `tinbox os-image fetch debian-13`
    Fetch {
        /// Name of the OS image
        #[arg(value_name = "NAME")]
        image: String,
    },
    /// Delete OS images; machines that are installed from them do not change
    ///
    /// Example: `tinbox os-image delete debian-13`
    #[command(alias = "rm")]
    Delete {
        /// Names of the OS images
        #[arg(required = true, value_name = "NAME")]
        images: Vec<String>,
        #[command(flatten)]
        confirm: Confirm,
    },
}

#[derive(Debug, clap::Args)]
pub struct Add {
    /// Name of a publisher's image, or a new name for the image at --url
    #[arg(value_name = "NAME")]
    image: String,

    /// URL of the image: raw or qcow2, perhaps compressed
    #[arg(long, value_name = "URL", requires_all = ["distro", "version"])]
    url: Option<String>,

    /// Distribution in the image, such as debian; decides how the system is configured
    #[arg(long, value_name = "NAME", requires = "url")]
    distro: Option<String>,

    /// Version of the distribution, such as 13
    #[arg(long, value_name = "VERSION", requires = "url")]
    version: Option<String>,

    /// SHA-256 or SHA-512 of the file, or the URL of a file of checksums
    #[arg(long, value_name = "CHECKSUM", requires = "url")]
    checksum: Option<String>,
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::List => list(context).await,
        Command::Publishers => publishers(context).await,
        Command::Add(arguments) => add(context, arguments).await,
        Command::Push(arguments) => push::run(context, arguments).await,
        Command::Fetch { image } => fetch(context, &image).await,
        Command::Delete { images, confirm } => delete(context, &images, confirm).await,
    }
}

async fn list(context: &Context) -> Result<(), Error> {
    let items = context.list(OS_IMAGE).await?;
    let cache = match context.printer.format.is_table() {
        true => Some(cache(context).await?),
        false => None,
    };
    let notes = match &cache {
        Some(_) if items.is_empty() => vec![NONE.to_owned()],
        Some(CacheView::Files(files)) => failures(&items, files),
        _ => Vec::new(),
    };
    context.printer.objects(items, |items, now| table(items, cache.as_ref(), now))?;
    notes.iter().for_each(|note| context.printer.note(note));
    Ok(())
}

/// Note below an empty list.
const NONE: &str = "no OS images; `tinbox os-image publishers` shows which to add";

/// Returns the reasons of failed downloads of OS images, one per line.
fn failures(items: &[Value], files: &[Image]) -> Vec<String> {
    let is_named = |file: &&Image| items.iter().any(|it| text(it, "/spec/url") == file.origin);
    image::notes(&files.iter().filter(is_named).cloned().collect::<Vec<_>>())
}

/// Image cache of the box, as far as the user may see it.
enum CacheView {
    Files(Vec<Image>),
    /// The box has no image cache: machines download the files themselves.
    Absent,
    /// The user has no right to see the cache.
    Hidden,
}

async fn cache(context: &Context) -> Result<CacheView, Error> {
    match context.client.get(&Path::images()).await {
        Ok(answer) => {
            let images: Images = box_client::decode("read the images", answer)?;
            Ok(CacheView::Files(images.items))
        }
        Err(ClientError::Refused { code: 404, .. }) => Ok(CacheView::Absent),
        Err(ClientError::Refused { code: 403, .. }) => Ok(CacheView::Hidden),
        Err(error) => Err(error.into()),
    }
}

async fn publishers(context: &Context) -> Result<(), Error> {
    let present: Vec<String> = context.list(OS_IMAGE).await?.iter().map(name_of).collect();
    let known: Vec<Value> = KNOWN
        .iter()
        .map(|known| {
            json!({
                "name": known.name, "title": known.title, "url": known.url,
                "added": present.iter().any(|it| it == known.name),
            })
        })
        .collect();
    if let Some(printed) = context.printer.values(&known) {
        return printed;
    }
    if context.printer.format == Format::Name {
        return KNOWN.iter().try_for_each(|known| context.printer.line(known.name));
    }
    context.printer.table(offers(&known))
}

fn offers(known: &[Value]) -> Table {
    let mut table = Table::new(&["NAME", "SYSTEM", "ADDED", "URL"]).with_details(&["URL"]);
    for it in known {
        let added = if it["added"] == true { "yes" } else { "no" };
        table.row([
            Cell::from(text(it, "/name")),
            text(it, "/title").into(),
            added.into(),
            text(it, "/url").into(),
        ]);
    }
    table
}

async fn add(context: &Context, arguments: Add) -> Result<(), Error> {
    let Add { image: name, url, distro, version, checksum } = arguments;
    let catalog = Catalog::new(context);
    let Some(url) = url else {
        if !KNOWN.iter().any(|it| it.name == name) {
            let names: Vec<&str> = KNOWN.iter().map(|it| it.name).collect();
            return Err(Error::Argument {
                why: format!("no publisher's image is called {name:?}"),
                hint: format!(
                    "the publishers have {}; another image needs --url, --distro and --version",
                    names.join(", ")
                ),
            });
        }
        let made = catalog.images.add_known(&name).await;
        return added(context, &catalog.done("add", &name, made)?);
    };
    let form = ImageForm {
        name: name.clone(),
        distro: distro.unwrap_or_default(),
        version: version.unwrap_or_default(),
        url,
        checksum: checksum.unwrap_or_default(),
    };
    let made = async {
        let image = form.check(false)?;
        let url = image.url.clone().unwrap_or_default();
        catalog.images.save(&image, &url, image.format()).await
    };
    let made = made.await;
    added(context, &catalog.done("add", &name, made)?)
}

fn added(context: &Context, object: &Value) -> Result<(), Error> {
    context.printer.done(object, "added")?;
    if context.printer.format.is_table() {
        let name = name_of(object);
        context.printer.note(&format!(
            "the box fetches the file when a machine needs it; now: tinbox os-image fetch {name}"
        ));
    }
    Ok(())
}

async fn fetch(context: &Context, text: &str) -> Result<(), Error> {
    let object = context.find(OS_IMAGE, text).await?;
    let (name, url) = (name_of(&object), self::text(&object, "/spec/url"));
    if url.starts_with(UPLOADED) {
        return Err(Error::State {
            what: format!("fetch {name}"),
            why: "its file was uploaded: no server has it".to_owned(),
            hint: format!("`tinbox os-image push {name} FILE` sends the file again"),
        });
    }
    let answer = change(context, url, ImageOperation::Pin).await?;
    context.printer.line(&format!("{name}: {}", plain(&self::text(&answer, "/message"))))
}

async fn change(context: &Context, url: String, act: ImageOperation) -> Result<Value, ClientError> {
    let order = serde_json::to_value(ImageRequest { image: url, act }).unwrap_or_default();
    context.client.create(&Path::images(), &order).await
}

async fn delete(context: &Context, texts: &[String], confirm: Confirm) -> Result<(), Error> {
    let mut objects = Vec::new();
    for text in texts {
        objects.push(context.find(OS_IMAGE, text).await?);
    }
    let effects: Vec<String> = objects.iter().map(effect).collect();
    if !confirm.agreed(&context.printer, &effects.join("\n"), Reply::Yes)? {
        return Ok(());
    }
    let catalog = Catalog::new(context);
    for object in objects {
        let name = name_of(&object);
        let removed = catalog.images.remove(&name).await;
        let unused = catalog.done("delete", &name, removed)?;
        context.printer.done(&object, "deleted")?;
        let Some(url) = unused else { continue };
        match change(context, url, ImageOperation::Unpin).await {
            // The box refuses to unpin a file that is not pinned.
            Ok(_) | Err(ClientError::Refused { code: 404, .. }) => {}
            Err(error) => {
                context.printer.note(&format!("its file may stay pinned: {}", stdx::chain(&error)));
            }
        }
    }
    Ok(())
}

/// Describes the deletion of an OS image.
fn effect(object: &Value) -> String {
    let name = name_of(object);
    let file = match text(object, "/spec/url").starts_with(UPLOADED) {
        true => "its uploaded file loses its pin and is removed when space is needed",
        false => "machines can no longer be installed with it",
    };
    format!("{name}: {file}; installed machines do not change")
}

/// Catalog of OS images under the rights of the user.
struct Catalog {
    images: ImageCatalog,
    objects: Arc<ApiObjects>,
}

impl Catalog {
    fn new(context: &Context) -> Self {
        let objects = Arc::new(ApiObjects::new(context.client.clone()));
        let images = ImageCatalog::in_namespace(Arc::clone(&objects) as _, &context.namespace);
        Self { images, objects }
    }

    /// Returns the result of an operation on the image `name`, with the error that says most.
    fn done<T>(&self, what: &str, name: &str, result: Result<T, CatalogError>) -> Result<T, Error> {
        result.map_err(|error| {
            self.objects.failure().map_or_else(|| refused(what, name, error), Error::Client)
        })
    }
}

/// Converts the error of the catalog for the command `what`.
fn refused(what: &str, name: &str, error: CatalogError) -> Error {
    match error {
        CatalogError::Fields(_) => Error::Argument {
            why: error.to_string().trim_end_matches('.').to_owned(),
            hint: format!("`tinbox os-image {what} --help` describes the values"),
        },
        CatalogError::Taken(_) => Error::State {
            what: format!("{what} {name}"),
            why: error.to_string(),
            hint: format!("choose another name, or `tinbox os-image delete {name}` first"),
        },
        error => Error::Catalog(error),
    }
}

fn table(items: &[Value], cache: Option<&CacheView>, now: Timestamp) -> Table {
    let mut table =
        Table::new(&["NAME", "DISTRO", "VERSION", "FILE", "SIZE", "AGE", "CHECKSUM", "URL"])
            .with_details(&["CHECKSUM", "URL"]);
    for item in items {
        let spec = serde_json::from_value::<OsImage>(item.clone()).unwrap_or_default().spec;
        let cached = match cache {
            Some(CacheView::Files(files)) => files.iter().find(|it| it.origin == spec.url),
            _ => None,
        };
        let size = cached.filter(|it| it.size > 0).map(|it| stdx::bytes(it.size));
        table.row([
            Cell::from(name_of(item)),
            plain(&spec.os.distro).into(),
            plain(&spec.os.version).into(),
            file(cache, cached, spec.url.starts_with(UPLOADED)),
            size.unwrap_or_default().into(),
            age(item, now).into(),
            sum(item).into(),
            plain(&spec.url).into(),
        ]);
    }
    table
}

/// Describes the file of an OS image.
fn file(cache: Option<&CacheView>, cached: Option<&Image>, is_uploaded: bool) -> Cell {
    let is_gone = |file: &Image| matches!(file.state, ImageState::Missing | ImageState::Failed);
    match (cache, cached) {
        (Some(CacheView::Absent), None) if is_uploaded => Cell::toned("lost".to_owned(), Tone::Bad),
        (_, Some(file)) if is_uploaded && is_gone(file) => lost(),
        (_, Some(file)) if file.state == ImageState::Ready => {
            Cell::toned("on the box".to_owned(), Tone::Good)
        }
        (_, Some(file)) => Cell::toned(image::state(file), image::tone(file.state)),
        (Some(CacheView::Files(_)), None) if is_uploaded => lost(),
        (Some(CacheView::Files(_)), None) => Cell::toned("not fetched".to_owned(), Tone::Quiet),
        (Some(CacheView::Absent), None) => {
            Cell::toned("fetched by machines".to_owned(), Tone::Quiet)
        }
        (Some(CacheView::Hidden) | None, None) => "-".into(),
    }
}

/// State of an uploaded file that the cache does not have, as after a restored backup.
fn lost() -> Cell {
    Cell::toned("lost: push it again".to_owned(), Tone::Bad)
}

/// Returns the algorithm and the checksum of an OS image, or the URL of its checksums.
fn sum(item: &Value) -> String {
    let sums = item.pointer("/spec/checksum").and_then(Value::as_object);
    let named = sums.into_iter().flatten().find_map(|(name, sum)| Some((name, sum.as_str()?)));
    match named {
        Some((name, sum)) if name == "url" => plain(sum),
        Some((name, sum)) => format!("{name}:{}", plain(sum)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
