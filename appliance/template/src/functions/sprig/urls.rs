//! Functions that split and join URLs.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::function::Type::{Map as Dict, Text};
use crate::function::{Answer, Args, Function, exact};
use crate::url::Url;
use crate::value::{Element, Map, Value, may_make};

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] =
    &[exact("urlParse", &[Text], parse), exact("urlJoin", &[Dict], join)];

fn parse(args: &Args) -> Answer {
    let text = args.text(0);
    args.heap.step(text.len() / crate::limits::STEP_BYTES)?;
    let url = Url::parse(text).map_err(|why| format!("unable to parse url: {why}"))?;
    let user = url.user.as_ref().map(ToString::to_string).unwrap_or_default();
    let hostname = url.hostname().to_owned();
    let parts = [
        ("scheme", url.scheme),
        ("host", url.host),
        ("hostname", hostname),
        ("path", url.path),
        ("query", url.query),
        ("opaque", url.opaque),
        ("fragment", url.fragment),
        ("userinfo", user),
    ];
    let mut entries: BTreeMap<Rc<str>, Value> = BTreeMap::new();
    for (name, part) in parts {
        entries.insert(name.into(), args.heap.text(part)?);
    }
    args.heap.map(Element::Any, entries).map(Value::Map)
}

fn join(args: &Args) -> Answer {
    let map = args.map(0)?;
    let mut url = Url {
        scheme: part(&map, "scheme")?,
        host: part(&map, "host")?,
        path: part(&map, "path")?,
        query: part(&map, "query")?,
        opaque: part(&map, "opaque")?,
        fragment: part(&map, "fragment")?,
        user: None,
    };
    let user = part(&map, "userinfo")?;
    if !user.is_empty() {
        let whole = Url::parse(&format!("proto://{user}@host"));
        url.user = whole.map_err(|why| format!("unable to parse userinfo in dict: {why}"))?.user;
    }
    // Each byte is three at worst.
    let parts = [&url.scheme, &url.host, &url.path, &url.query, &url.opaque, &url.fragment, &user];
    may_make(parts.iter().map(|part| 3 * part.len()).sum())?;
    args.made(url.to_string())
}

/// Returns the text of a key; empty if the key is missing.
fn part(map: &Map, key: &str) -> Result<String, String> {
    match map.get(key) {
        None => Ok(String::new()),
        Some(Value::Text(text)) => Ok(text.to_string()),
        Some(other) => Err(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            other.kind_name()
        )),
    }
}
