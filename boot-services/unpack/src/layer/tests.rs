use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;

use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::{DEPTH, Mark, mark};
use crate::unpack_layer;

/// Builds a layer: names that end with `/` are folders, `a -> b` is a symbolic link, all others are
/// files.
fn layer(names: &[&str]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for name in names {
        let mut header = Header::new_gnu();
        header.set_mode(0o755);
        // Owner is the test's user, so that the test needs no rights.
        header.set_uid(rustix::process::getuid().as_raw().into());
        header.set_gid(rustix::process::getgid().as_raw().into());
        header.set_mtime(1);
        header.set_size(0);
        if let Some((name, target)) = name.split_once(" -> ") {
            header.set_entry_type(EntryType::Symlink);
            tar.append_link(&mut header, name, target).unwrap();
            continue;
        }
        let kind = if name.ends_with('/') { EntryType::Directory } else { EntryType::Regular };
        header.set_entry_type(kind);
        // Written directly, because the crate would refuse such names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        tar.append(&header, &[][..]).unwrap();
    }
    tar.into_inner().unwrap()
}

struct Root(TempDir);

impl Root {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("root")
    }

    fn add(&self, names: &[&str]) -> Result<(), String> {
        fs::create_dir_all(self.path()).unwrap();
        let root = File::open(self.path()).unwrap();
        let unpacked = unpack_layer(&mut layer(names).as_slice(), &root);
        unpacked.map(|_| ()).map_err(|refused| format!("{}: {}", refused.name, refused.source))
    }

    /// Lists all paths below the root, sorted.
    fn tree(&self) -> Vec<String> {
        fn walk(folder: &Path, above: &str, into: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let name = format!("{above}{}", entry.file_name().to_string_lossy());
                into.push(name.clone());
                if entry.file_type().unwrap().is_dir() {
                    walk(&entry.path(), &format!("{name}/"), into);
                }
            }
        }
        let mut names = Vec::new();
        walk(&self.path(), "", &mut names);
        names.sort();
        names
    }
}

#[test]
fn marks_are_told_from_names() {
    let read = |name| mark(OsStr::new(name));
    assert_eq!(read("a.wh.b").unwrap(), Mark::None);
    assert_eq!(read(".wh.a").unwrap(), Mark::Gone(OsStr::new("a")));
    assert_eq!(read(".wh..hidden").unwrap(), Mark::Gone(OsStr::new(".hidden")));
    assert_eq!(read(".wh..wh..opq").unwrap(), Mark::Opaque);
    assert_eq!(read(".wh..wh.plnk").unwrap(), Mark::Foreign);
    for name in [".wh.", ".wh..", ".wh..."] {
        assert!(read(name).is_err(), "{name}");
    }
}

#[test]
fn a_layer_takes_away_what_is_below_and_never_what_it_brings() {
    let root = Root::new();
    root.add(&["a/", "a/old", "a/deep/", "a/deep/old", "b", "c/", "c/x", "d"]).unwrap();
    // Whiteouts before, between and after the entries of the layer itself.
    root.add(&["a/deep/new", "a/.wh..wh..opq", "a/new", ".wh.b", "c/y", ".wh.c", "d", ".wh.d"])
        .unwrap();
    assert_eq!(root.tree(), ["a", "a/deep", "a/deep/new", "a/new", "c", "c/y", "d"]);
    root.add(&[".wh.a", "nowhere/.wh.x", "nowhere/.wh..wh..opq", ".wh..wh.aufs"]).unwrap();
    assert_eq!(root.tree(), ["c", "c/y", "d"]);
}

#[test]
fn an_entry_replaces_what_is_of_another_kind() {
    let root = Root::new();
    root.add(&["folder/", "folder/x", "link -> folder", "file"]).unwrap();
    root.add(&["folder", "link/", "link/y", "file/"]).unwrap();
    assert_eq!(root.tree(), ["file", "folder", "link", "link/y"]);
    assert!(root.path().join("folder").is_file() && root.path().join("file").is_dir());
}

#[test]
fn no_mark_and_no_link_leads_out_of_the_root() {
    let root = Root::new();
    let outside = root.0.path().join("outside");
    fs::create_dir_all(outside.join("folder")).unwrap();
    fs::write(outside.join("secret"), "kept").unwrap();
    let absolute = format!("absolute -> {}", outside.display());
    root.add(&["up -> ../outside", &absolute]).unwrap();
    for names in [
        &["up/.wh.secret"][..],
        &["up/.wh..wh..opq"],
        &["absolute/.wh.folder"],
        &["up/secret"],
        &["absolute/secret"],
        &["../outside/.wh.secret"],
        &[".wh..."],
    ] {
        // A refusal and an effect within the root are both right.
        let _ = root.add(names);
    }
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "kept");
    assert!(outside.join("folder").is_dir());
    assert_eq!(fs::read_dir(root.0.path()).unwrap().count(), 2);
}

#[test]
fn folders_in_folders_are_taken_away_to_a_limit() {
    let root = Root::new();
    let nested = |depth: usize| "d/".repeat(depth);
    let deep = Path::new(root.0.path()).join("root").join(nested(DEPTH - 1));
    fs::create_dir_all(deep).unwrap();
    root.add(&[".wh.d"]).unwrap();
    assert_eq!(root.tree(), Vec::<String>::new());
    fs::create_dir_all(root.path().join(nested(DEPTH + 1))).unwrap();
    let error = root.add(&[".wh.d"]).unwrap_err();
    assert!(error.contains("too deep"), "{error}");
}
