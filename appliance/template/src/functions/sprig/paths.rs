//! Functions of paths with slashes (Go `path`).

use crate::function::Type::Text;
use crate::function::{Function, exact};
use crate::value::Value;

/// Sprig functions that this file implements. File paths also have slashes, as on Linux.
pub static FUNCTIONS: &[Function] = &[
    exact("base", &[Text], |args| args.made(base(args.text(0)))),
    exact("osBase", &[Text], |args| args.made(base(args.text(0)))),
    exact("dir", &[Text], |args| args.made(dir(args.text(0)))),
    exact("osDir", &[Text], |args| args.made(dir(args.text(0)))),
    exact("clean", &[Text], |args| args.made(clean(args.text(0)))),
    exact("osClean", &[Text], |args| args.made(clean(args.text(0)))),
    exact("ext", &[Text], |args| args.made(ext(args.text(0)))),
    exact("osExt", &[Text], |args| args.made(ext(args.text(0)))),
    exact("isAbs", &[Text], |args| Ok(Value::Bool(args.text(0).starts_with('/')))),
    exact("osIsAbs", &[Text], |args| Ok(Value::Bool(args.text(0).starts_with('/')))),
];

fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    match path.trim_end_matches('/') {
        "" => "/",
        path => path.rsplit('/').next().unwrap_or(path),
    }
}

fn dir(path: &str) -> String {
    clean(&path[..path.rfind('/').map_or(0, |at| at + 1)])
}

fn ext(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rfind('.').map_or("", |at| &name[at..])
}

fn clean(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    match (is_absolute, parts.join("/")) {
        (true, path) => format!("/{path}"),
        (false, path) if path.is_empty() => ".".to_owned(),
        (false, path) => path,
    }
}
