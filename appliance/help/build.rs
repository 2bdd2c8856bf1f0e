//! Renders the pages of `docs/` that the box serves.

#[path = "src/anchor.rs"]
mod anchor;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// Folders of `docs/` with pages for people who run a box.
const FOLDERS: [&str; 4] = ["tutorial", "how-to", "reference", "explanation"];
/// Page of `docs/` that links to all other pages, and its path below `/help/`.
const MAP: (&str, &str) = ("README", "map");

fn main() -> io::Result<()> {
    let docs = Path::new("../../docs");
    println!("cargo::rerun-if-changed={}", docs.display());
    println!("cargo::rerun-if-changed=src/anchor.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let mut paths = BTreeSet::from([MAP.0.to_owned()]);
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={}", docs.join(folder).display());
        for entry in fs::read_dir(docs.join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            paths.extend(name.strip_suffix(".md").map(|name| format!("{folder}/{name}")));
        }
    }
    let mut table = String::from("/// Every page.\npub static PAGES: &[Page] = &[\n");
    for path in &paths {
        let text = fs::read_to_string(docs.join(format!("{path}.md")))?;
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        let file = out.join(format!("{}.html", path.replace('/', "-")));
        fs::write(&file, render(&text, path, &paths))?;
        let path = served(path);
        table.push_str(&format!(
            "    Page {{ path: {path:?}, title: {title:?}, html: include_str!({file:?}) }},\n"
        ));
    }
    table.push_str("];\n");
    fs::write(out.join("pages.rs"), table)
}

/// Converts the path of a page in `docs/` to its path below `/help/`.
fn served(path: &str) -> &str {
    if path == MAP.0 { MAP.1 } else { path }
}

/// Renders a page as HTML. A link to a file that the box does not serve becomes plain text.
fn render(text: &str, path: &str, paths: &BTreeSet<String>) -> String {
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let mut dropped = Vec::new();
    for at in 0..events.len() {
        let id = anchor::anchor(&title(&events[at + 1..]));
        match &mut events[at] {
            Event::Start(Tag::Heading { id: heading, .. }) => *heading = Some(CowStr::from(id)),
            Event::Start(Tag::Link { dest_url, .. }) => {
                let target = target(dest_url, path, paths);
                dropped.push(target.is_none());
                *dest_url = CowStr::from(target.unwrap_or_default());
            }
            _ => {}
        }
    }
    let mut open = dropped.into_iter();
    let mut inside = Vec::new();
    let kept = events.into_iter().filter(|event| match event {
        Event::Start(Tag::Link { .. }) => {
            inside.push(open.next().unwrap_or_default());
            inside.last() == Some(&false)
        }
        Event::End(TagEnd::Link) => inside.pop() == Some(false),
        _ => true,
    });
    let mut page = String::new();
    html::push_html(&mut page, kept);
    page
}

/// Returns the URL of a link; `None` if the box does not serve the linked file.
fn target(link: &str, from: &str, paths: &BTreeSet<String>) -> Option<String> {
    if link.starts_with("https://") || link.starts_with('#') {
        return Some(link.to_owned());
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.strip_suffix(".md")?.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    let heading = if heading.is_empty() { String::new() } else { format!("#{heading}") };
    paths.contains(&path).then(|| format!("/help/{}{heading}", served(&path)))
}

/// Returns the text of the heading at the begin of `events`.
fn title(events: &[Event<'_>]) -> String {
    let mut title = String::new();
    for event in events {
        match event {
            Event::End(TagEnd::Heading(_)) => break,
            Event::Text(text) | Event::Code(text) => title.push_str(text),
            _ => {}
        }
    }
    title
}
