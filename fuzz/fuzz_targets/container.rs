//! Parts of a container image besides its files, and the settings of an action for a container:
//! documents, names, users, volumes.

#![no_main]

use agent::container::{Account, Manifest, Process, Reference, Volume};
use libfuzzer_sys::fuzz_target;
use artifact_cache::registry;

fuzz_target!(|bytes: &[u8]| {
    let _ = Manifest::read(bytes);
    let environment = [("A".to_owned(), "b".to_owned())];
    if let Ok(process) = Process::merge(bytes, &[], &environment) {
        assert!(process.command.first().is_some_and(|program| !program.is_empty()));
        assert!(process.environment.iter().any(|(name, value)| name == "A" && value == "b"));
        assert!(process.folder.starts_with('/'));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(volume) = Volume::parse(text) {
        assert!(volume.target.starts_with('/') && !volume.target.split('/').any(|it| it == ".."));
    }
    let (user, files) = text.split_once('\n').unwrap_or((text, ""));
    let _ = Account::find(user, files, files);
    if let Ok(reference) = Reference::parse(text) {
        // The box must parse the agent's request path to the same reference as the agent.
        let path = reference.manifest_path();
        assert!(path[1..].split('/').all(|it| !["", ".", ".."].contains(&it)), "{path}");
        let theirs = registry::Reference::of_image(text).expect("the box reads it too");
        let what = path.rsplit('/').next().unwrap_or_default();
        let name = &path["/v2/".len()..path.len() - "/manifests/".len() - what.len()];
        assert_eq!(registry::Reference::asked(name, None, what), Ok(theirs));
    }
});
