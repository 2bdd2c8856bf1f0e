//! `docs/reference/queues-and-locks.md`: the bounded channels and the locks of the product.

use std::collections::BTreeSet;

use regex::Regex;

use crate::page::{cell, head};
use crate::source::{Source, product};

const ABOUT: &str = "\
All channels between tasks and threads are bounded. Locks are short; those of Tokio may be held \
across an await.";

/// A queue: file and sender of its constructor, its content, and the effect of a full queue.
type Row = (&'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    (
        "appliance/box-client/src/client/watch.rs sender",
        "changes of a watch",
        "the watch waits for its reader",
    ),
    (
        "appliance/cli/src/commands/machine/console/terminal.rs sender",
        "typed keys for a serial console",
        "the keyboard waits for the box",
    ),
    (
        "appliance/capi/src/remote/event_writer.rs sender",
        "events for a management cluster",
        "the event is dropped and counted; the controller does not wait",
    ),
    (
        "appliance/kube/audit-log/src/lib.rs lines",
        "audit records",
        "the record is dropped and counted; the next line has the count",
    ),
    (
        "appliance/lifecycle/src/backups/handlers.rs send",
        "pieces of an uploaded backup",
        "the upload waits",
    ),
    (
        "appliance/lifecycle/src/update/handlers.rs send",
        "pieces of an uploaded update",
        "the upload waits",
    ),
    (
        "appliance/provisioning/src/machines/learned_loaders.rs lessons",
        "learned boot loaders to store",
        "the loader is not stored; the machine may try several loaders again",
    ),
    (
        "appliance/provisioning/src/networks/serve.rs requests",
        "addresses to check by ARP",
        "the address counts as not checked",
    ),
    (
        "appliance/provisioning/src/networks/serve.rs result",
        "results of ARP checks",
        "the checking task waits",
    ),
    (
        "appliance/provisioning/src/objects/recorder.rs sender",
        "events to write",
        "the event is dropped and counted; the boot service does not wait",
    ),
    (
        "appliance/store/src/store.rs sender",
        "writes of objects",
        "a write waits for a place, and with it its request",
    ),
    (
        "appliance/web/src/handlers/box_actions/backup.rs send",
        "pieces of a backup sent by a form",
        "the upload waits",
    ),
    (
        "appliance/web/src/handlers/box_actions/backup.rs ignored",
        "pieces of a refused backup",
        "never full: it has no receiver",
    ),
    (
        "appliance/page-http/src/multipart.rs sender",
        "pieces of an image sent by a form",
        "the upload waits",
    ),
    (
        "appliance/web/src/handlers/box_actions/update.rs send",
        "pieces of an update sent by a form",
        "the upload waits",
    ),
    (
        "boot-services/agent/src/actions/slurp.rs sender",
        "pieces of a disk to upload",
        "the reading thread waits for the server",
    ),
    (
        "boot-services/agent/src/container/sandbox.rs orders",
        "work for a container's thread",
        "never full: each caller waits for the result",
    ),
    (
        "boot-services/agent/src/log_sender.rs messages",
        "log lines for the box",
        "the line is only on the machine's console",
    ),
    (
        "boot-services/dhcp/src/server/pending.rs requests",
        "changes of leases to commit",
        "never full: one commit is under way at a time, later changes are collected",
    ),
    (
        "appliance/serial-console/src/recorder.rs input",
        "typed characters for a machine",
        "the viewer waits 10 s, then drops them and shows that",
    ),
    (
        "boot-services/imaging/src/disks/select/choice.rs sender",
        "choices of a disk to record",
        "the disk is not used, and the action fails",
    ),
    (
        "boot-services/imaging/src/disks/select/choice.rs answer",
        "the response to one choice",
        "never full: one response is sent",
    ),
    (
        "boot-services/imaging/src/stream/piece.rs sender",
        "pieces of an image",
        "never full: it has a place for each piece; the download waits for a free buffer",
    ),
    (
        "boot-services/imaging/src/stream/piece.rs home",
        "free buffers",
        "never full: it has a place for each buffer",
    ),
    (
        "boot-services/imaging/src/stream/checksum/summing.rs tasks",
        "pieces for the checksum",
        "never full: it has a place for each piece and for one request",
    ),
    (
        "boot-services/imaging/src/stream/write/target.rs jobs",
        "pieces for the writing threads",
        "the decoder waits for a free thread",
    ),
    (
        "ui-panel/box-console/src/front_panel.rs pressed",
        "presses of GPIO buttons",
        "the press is lost",
    ),
    (
        "ui-panel/box-console/src/front_panel.rs changed",
        "keys of the panel's input devices",
        "the keys are lost, and all keys count as released",
    ),
    (
        "ui-panel/box-console/src/front_panel/display.rs frames",
        "frames of the small screen",
        "no frame is drawn until the screen has taken the last one",
    ),
    (
        "ui-panel/box-console/src/front_panel/leds.rs patterns",
        "patterns of an LED",
        "the pattern is sent again at the next look",
    ),
    (
        "ui-panel/box-console/src/monitor.rs pressed",
        "keys of the keyboard",
        "the keys are lost, and all keys count as released",
    ),
    (
        "ui-panel/box-console/src/serial.rs lines",
        "lines for the serial console",
        "the box waits, and then writes the newest state",
    ),
];

/// Constructor of a bounded channel.
struct Queue {
    /// File and sender, as in [`ROWS`].
    key: String,
    krate: String,
    /// Name and value of the capacity.
    capacity: String,
}

/// Returns the page as Markdown text.
pub fn page() -> String {
    let mut text = head("Queues and locks", ABOUT);
    text.push_str("\n## Queues\n\nA *watch* channel holds the newest value only, and a *oneshot* ");
    text.push_str("channel one value; they are not listed.\n\n");
    text.push_str("| crate | queue | capacity | when it is full |\n|---|---|---|---|\n");
    let rows = queues().0.into_iter().map(|Queue { key, krate, capacity }| {
        let row = ROWS.iter().find(|(known, ..)| *known == key);
        let (content, full) = row.map_or(("", ""), |(_, content, full)| (content, full));
        format!("| `{krate}` | {content} | {capacity} | {full} |\n")
    });
    text.push_str(&rows.collect::<BTreeSet<_>>().into_iter().collect::<String>());
    text.push_str("\n## Locks\n\n| module | lock | kind | guards |\n|---|---|---|---|\n");
    text.push_str(&locks().into_iter().collect::<String>());
    text
}

/// Returns queues without a row, rows without a queue, and capacities that cannot be found.
pub fn mistakes() -> Vec<String> {
    let (queues, mut mistakes) = queues();
    let keys: BTreeSet<&str> = queues.iter().map(|queue| queue.key.as_str()).collect();
    let is_known = |key: &&&str| ROWS.iter().any(|(known, ..)| known == *key);
    let missing = keys.iter().filter(|key| !is_known(key));
    mistakes.extend(missing.map(|key| format!("{key}: no row in tests/docs/src/queues.rs")));
    let gone = ROWS.iter().filter(|(key, ..)| !keys.contains(key));
    mistakes.extend(gone.map(|(key, ..)| format!("{key}: no such queue in the code")));
    mistakes
}

fn queues() -> (Vec<Queue>, Vec<String>) {
    let made = Regex::new(
        r"(?x) let\ \((?:mut\ )?(\w+),[^=]*\)\ =\s*
            (?:\w+::)*(?:mpsc::channel|sync_channel)(?:::<[^(]*>)?\(([^()]*)\)",
    )
    .expect("a valid pattern");
    let made_at_all = Regex::new(r"(mpsc::channel|sync_channel)(::<[^(]*>)?\(").expect("valid");
    let (mut queues, mut mistakes) = (Vec::new(), Vec::new());
    let sources = product();
    for source in &sources {
        let before = queues.len();
        for found in made.captures_iter(&source.text) {
            let key = format!("{} {}", source.path, &found[1]);
            let krate = source.krate().to_owned();
            match capacity(&found[2], source, &sources) {
                Some(capacity) => queues.push(Queue { key, krate, capacity }),
                None => mistakes.push(format!("{key}: the capacity {} is not one", &found[2])),
            }
        }
        let all = made_at_all.find_iter(&source.text).count();
        if all != queues.len() - before {
            mistakes.push(format!("{}: a channel is made in an unknown form", source.path));
        }
    }
    (queues, mistakes)
}

/// Returns the name and the value of a capacity: a number, a constant, or a constant and a number.
fn capacity(written: &str, source: &Source, sources: &[Source]) -> Option<String> {
    let (name, more) = written.split_once(" + ").unwrap_or((written, "0"));
    if name.parse::<usize>().is_ok() {
        return Some(name.to_owned());
    }
    let name = name.rsplit("::").next()?;
    let value = |source: &Source| {
        let (_, rest) = source.text.split_once(&format!("const {name}: usize = "))?;
        rest.split(';').next()?.parse::<usize>().ok()
    };
    let of_crate = sources.iter().filter(|it| it.krate() == source.krate()).filter_map(value);
    let value = value(source).or_else(|| {
        let values: BTreeSet<usize> = of_crate.collect();
        values.first().copied().filter(|_| values.len() == 1)
    })?;
    let shown = written.rsplit("::").next()?;
    Some(format!("{} (`{shown}`)", value + more.parse::<usize>().ok()?))
}

/// Returns a row for each lock that is a field of a struct, or a static. For a lock without a
/// comment, the row names the type of the locked value.
fn locks() -> BTreeSet<String> {
    let declared = Regex::new(
        r"(?x) ^(?:\ {4}(?:pub(?:\(\w+\))?\ )?(\w+)|(?:pub(?:\(\w+\))?\ )?static\ (\w+)):\ (.*)$",
    )
    .expect("a valid pattern");
    let kind = Regex::new(r"\b(tokio::sync::)?(Std)?(Mutex|RwLock|Semaphore)\b(?:<(.*)>)?")
        .expect("a valid pattern");
    let sources = product();
    let mut rows = BTreeSet::new();
    for source in sources.iter().filter(|source| !source.path.ends_with("/fake.rs")) {
        let is_async = ["use tokio::sync::Mutex", "use tokio::sync::{Mutex"]
            .iter()
            .any(|text| source.text.contains(text));
        let mut owner = String::new();
        for (number, line) in source.text.lines().enumerate() {
            if let Some((_, named)) = line.split_once("struct ").filter(|_| line.ends_with('{')) {
                owner = named.chars().take_while(|char| char.is_alphanumeric()).collect();
            } else if line.starts_with('}') || line.contains("fn ") {
                owner.clear();
            }
            let Some(found) = declared.captures(line) else { continue };
            let name = match (found.get(1), found.get(2)) {
                (Some(field), _) if !owner.is_empty() => format!("{owner}.{}", field.as_str()),
                (_, Some(name)) => name.as_str().to_owned(),
                _ => continue,
            };
            let of_type = found[3].split(" = ").next().unwrap_or_default().trim_end_matches(',');
            let Some(lock) = kind.captures(of_type) else { continue };
            let is_tokio = lock.get(1).is_some() || (is_async && lock.get(2).is_none());
            let of_tokio = if is_tokio && &lock[3] == "Mutex" { " of Tokio" } else { "" };
            let doc = source.doc_before(number);
            let first = doc.split(". ").next().unwrap_or_default().trim_end_matches('.');
            let guarded = balanced(lock.get(4).map_or("", |guarded| guarded.as_str()));
            let purpose = match (first, guarded) {
                ("", "()") => "one at a time".to_owned(),
                ("", "") => "concurrent work".to_owned(),
                ("", guarded) => format!("`{guarded}`"),
                (first, _) => first.to_owned(),
            };
            let (module, kind) = (module(source), &lock[3]);
            let purpose = cell(&purpose);
            rows.insert(format!("| `{module}` | `{name}` | {kind}{of_tokio} | {purpose} |\n"));
        }
    }
    rows
}

/// Cuts off closing brackets of the types around a type: `Tables>` of `Arc<Mutex<Tables>>`.
fn balanced(mut text: &str) -> &str {
    while text.matches('>').count() > text.matches('<').count() {
        text = text.strip_suffix('>').unwrap_or_default();
    }
    text
}

/// Returns the module of a file: `store::hub`.
fn module(source: &Source) -> String {
    let file = source.path.split("/src/").nth(1).unwrap_or_default();
    let file = file.trim_end_matches(".rs").replace('/', "::");
    let module = format!("{}::{file}", source.krate());
    module.trim_end_matches("::lib").trim_end_matches("::main").to_owned()
}
