//! Manifests and the lock file, limited to the parts that the laws need.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::Violation;
use crate::tree::Tree;

/// One member of the workspace.
#[derive(Debug)]
pub struct Member {
    /// Path of the member's folder, from the root of the tree.
    pub folder: String,
    /// Parsed `Cargo.toml` of the member.
    pub manifest: Table,
}

/// Kind of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Dependency of the crate or of its build script.
    Product,
    /// Dependency of the crate's tests only.
    Dev,
}

impl Member {
    /// Path of the member's manifest.
    pub fn path(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    /// Package name in the manifest.
    pub fn name(&self) -> &str {
        let package = self.manifest.get("package").and_then(|package| package.get("name"));
        package.and_then(Value::as_str).unwrap_or_default()
    }

    /// Dependencies with kind, name and value in the manifest.
    pub fn dependencies(&self) -> Vec<(Kind, &str, &Value)> {
        let targets = self.manifest.get("target").and_then(Value::as_table).into_iter().flatten();
        let tables = targets.filter_map(|(_, target)| target.as_table());
        let mut found = Vec::new();
        for table in std::iter::once(&self.manifest).chain(tables) {
            for (section, kind) in [
                ("dependencies", Kind::Product),
                ("build-dependencies", Kind::Product),
                ("dev-dependencies", Kind::Dev),
            ] {
                let section = table.get(section).and_then(Value::as_table).into_iter().flatten();
                found.extend(section.map(|(name, how)| (kind, name.as_str(), how)));
            }
        }
        found
    }
}

/// The members that the root manifest names, and violations for manifests that cannot be read.
pub fn members(tree: &Tree) -> (Vec<Member>, Vec<Violation>) {
    let root = tree.file("Cargo.toml").map(|file| file.text.as_str()).unwrap_or_default();
    let root: Table = toml::from_str(root).unwrap_or_default();
    let globs: Vec<&str> = root
        .get("workspace")
        .and_then(|workspace| workspace.get("members"))
        .and_then(Value::as_array)
        .map(|globs| globs.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let (mut members, mut violations) = (Vec::new(), Vec::new());
    for file in &tree.files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else { continue };
        let is_member = globs.iter().any(|glob| match glob.strip_suffix("/*") {
            Some(parent) => folder.rsplit_once('/').is_some_and(|(above, _)| above == parent),
            None => folder == *glob,
        });
        match toml::from_str(&file.text) {
            Ok(manifest) if is_member => {
                members.push(Member { folder: folder.to_owned(), manifest });
            }
            Ok(_) => {}
            Err(error) => violations.push(Violation::of(&file.path, error.to_string())),
        }
    }
    if members.is_empty() {
        violations.push(Violation::of("Cargo.toml", "the workspace has no member"));
    }
    (members, violations)
}

/// One package of a lock file.
#[derive(Debug, PartialEq, Eq)]
pub struct Locked {
    /// Package name in the lock file.
    pub name: String,
    /// Source URL; members of the workspace have none.
    pub source: Option<String>,
    /// Names of the package's dependencies of any kind.
    pub dependencies: Vec<String>,
}

/// The packages of a lock file.
///
/// # Errors
/// The reason why the text is not a valid lock file.
pub fn locked(text: &str) -> Result<Vec<Locked>, String> {
    let lock: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let packages = lock.get("package").and_then(Value::as_array).ok_or("it has no package")?;
    let text = |package: &Value, field: &str| {
        package.get(field).and_then(Value::as_str).map(str::to_owned)
    };
    let one = |package: &Value| {
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        Locked {
            name: text(package, "name").unwrap_or_default(),
            source: text(package, "source"),
            // An entry is a name, a version when the name has several, and a source.
            dependencies: dependencies
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.as_str()?.split(' ').next().map(str::to_owned))
                .collect(),
        }
    };
    Ok(packages.iter().map(one).collect())
}

/// Names of all direct and indirect dependencies of a package, with those of tests.
pub fn closure(packages: &[Locked], root: &str) -> BTreeSet<String> {
    let mut by_name: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for package in packages {
        by_name.entry(&package.name).or_default().extend(&package.dependencies);
    }
    let mut found = BTreeSet::new();
    let mut open = vec![root];
    while let Some(name) = open.pop() {
        for dependency in by_name.get(name).into_iter().flatten() {
            if found.insert((*dependency).clone()) {
                open.push(dependency.as_str());
            }
        }
    }
    found
}
