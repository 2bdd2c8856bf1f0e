//! Configuration of an image (OCI image specification, "Image Configuration"), combined with the
//! action's settings. `command` replaces the image's arguments (Cmd), never its entrypoint. The
//! action's environment variables take precedence.

use serde::Deserialize;

use super::manifest::check_platform;

/// Maximum size in bytes of a configuration.
pub const CONFIG_BYTES: u64 = 1 << 20;
/// Default search path for programs, as in Docker.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Program to run, with its environment.
#[derive(PartialEq, Eq)]
pub struct Process {
    /// Program and its arguments.
    pub command: Vec<String>,
    /// Complete environment of the program.
    pub environment: Vec<(String, String)>,
    /// Working directory in the container.
    pub folder: String,
    /// `USER[:GROUP]` by name or number; empty is root.
    pub user: String,
}

#[derive(Default, Deserialize)]
struct Document {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    config: Option<Settings>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Settings {
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    working_dir: Option<String>,
    user: Option<String>,
}

impl Process {
    /// Combines the image's configuration with the settings of the action.
    ///
    /// # Errors
    /// The image cannot run here; the text is the reason.
    pub fn merge(
        config: &[u8],
        command: &[String],
        environment: &[(String, String)],
    ) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(config)
            .map_err(|error| format!("its configuration is not valid: {error}"))?;
        check_platform(&document.os, &document.architecture)?;
        let settings = document.config.unwrap_or_default();
        let mut words = settings.entrypoint.unwrap_or_default();
        if command.is_empty() {
            words.extend(settings.cmd.unwrap_or_default());
        } else {
            words.extend_from_slice(command);
        }
        if words.first().is_none_or(String::is_empty) {
            return Err("neither the image nor the action sets a program to run".to_owned());
        }
        let mut merged: Vec<(String, String)> = Vec::new();
        let of_image = settings.env.unwrap_or_default();
        let of_image = of_image.iter().filter_map(|entry| entry.split_once('='));
        let of_action = environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in [("PATH", PATH)].into_iter().chain(of_image).chain(of_action) {
            if name.is_empty() {
                continue;
            }
            merged.retain(|(known, _)| known != name);
            merged.push((name.to_owned(), value.to_owned()));
        }
        let folder = settings.working_dir.filter(|it| !it.is_empty());
        let folder = folder.unwrap_or_else(|| "/".to_owned());
        if !folder.starts_with('/') {
            return Err(format!("its working directory {folder:?} is not absolute"));
        }
        let pairs = merged.iter().flat_map(|(name, value)| [name, value]);
        if words.iter().chain(pairs).chain([&folder]).any(|word| word.contains('\0')) {
            return Err("its command or environment contains a NUL".to_owned());
        }
        let user = settings.user.unwrap_or_default();
        Ok(Self { command: words, environment: merged, folder, user })
    }
}

#[cfg(test)]
mod tests {
    use super::Process;

    fn merge(
        config: &str,
        command: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Process, String> {
        let command: Vec<String> = command.iter().map(ToString::to_string).collect();
        let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let environment: Vec<_> = environment.iter().map(pair).collect();
        Process::merge(config.as_bytes(), &command, &environment)
    }

    #[test]
    fn a_command_replaces_the_arguments_and_never_the_entrypoint() {
        let both = r#"{"config": {"Entrypoint": ["/run", "-v"], "Cmd": ["help"]}}"#;
        let arguments = r#"{"config": {"Entrypoint": null, "Cmd": ["/bin/sh"]}}"#;
        for (config, command, wanted) in [
            (both, &[][..], &["/run", "-v", "help"][..]),
            (both, &["a", "b"], &["/run", "-v", "a", "b"]),
            (arguments, &[], &["/bin/sh"]),
            (arguments, &["ls", "-l"], &["ls", "-l"]),
            ("{}", &["ls"], &["ls"]),
        ] {
            assert_eq!(
                merge(config, command, &[]).unwrap_or_else(|e| panic!("{e}")).command,
                wanted
            );
        }
        let error = merge(r#"{"config": {"Cmd": []}}"#, &[], &[]).err().unwrap();
        assert!(error.contains("a program to run"), "{error}");
    }

    #[test]
    fn the_actions_environment_wins() {
        let config = r#"{"config": {"Cmd": ["a"], "Env": ["A=1", "B=2", "A=3", "=x", "C"]}}"#;
        let process = merge(config, &[], &[("B", "of=action"), ("D", "")]).ok().unwrap();
        let pairs: Vec<_> =
            process.environment.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(pairs[0].0, "PATH");
        assert_eq!(pairs[1..], [("A", "3"), ("B", "of=action"), ("D", "")]);
        let config = r#"{"config": {"Cmd": ["a"], "Env": ["PATH=/own"]}}"#;
        let process = merge(config, &[], &[]).ok().unwrap();
        assert_eq!(process.environment, [("PATH".to_owned(), "/own".to_owned())]);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let refused = |config: &str| merge(config, &["a"], &[]).err().unwrap_or_default();
        assert!(refused("[").contains("not valid"));
        assert!(refused(r#"{"architecture": "mips"}"#).contains("mips"));
        assert!(refused(r#"{"config": {"WorkingDir": "a/b"}}"#).contains("not absolute"));
        assert!(refused(r#"{"config": {"Entrypoint": ["a\u0000b"]}}"#).contains("NUL"));
        let process = merge(r#"{"config": {"WorkingDir": "/a", "User": "1:2"}}"#, &["x"], &[]);
        let process = process.ok().unwrap();
        assert_eq!((process.folder.as_str(), process.user.as_str()), ("/a", "1:2"));
    }
}
