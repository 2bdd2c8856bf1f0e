//! Names from the box for the completion of a shell. The scripts of `completion` call this.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use api::meta::Resource;
use api::network::NETWORK;
use api::os_image::OS_IMAGE;
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use box_client::{Client, ClientError, Kubeconfig, Path, decode};
use clap::{Arg, Command};
use image_catalog::KNOWN;
use status::view::StatusView;

use crate::duration::duration;

/// First word of the command line that requests names. It is not a command, because the scripts
/// would offer the command.
pub const WORD: &str = "__complete";
/// Environment variable with another maximum time for the names, such as 2s for a slow connection.
const TIME_VARIABLE: &str = "TINBOX_COMPLETION_TIME";
/// Maximum time for the names: a person waits for the key.
const TIME_MAX: Duration = Duration::from_millis(300);
/// Maximum number of names; more are of no help.
const NAMES_MAX: usize = 1000;
/// Default namespace, as of all commands.
const NAMESPACE: &str = "default";

/// Names that fit at a place of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Machines of the status view, also those without Hardware.
    Machines,
    Objects(Resource),
    /// Images of publishers, which this program knows without the box.
    Publishers,
    /// Built-in templates, which this program knows without the box.
    Library,
}

/// Place of the word to complete.
#[derive(Debug, Default, PartialEq, Eq)]
struct Place {
    names: Option<Names>,
    kubeconfig: Option<PathBuf>,
    namespace: Option<String>,
}

/// Prints the names for the word after `words`, one per line. Prints nothing on any failure, since
/// a message would disturb the line that a person types.
pub async fn run(words: &[OsString]) {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let place = place(&words);
    let Some(names) = place.names else { return };
    for name in limited(time_max(), find(names, place)).await.into_iter().take(NAMES_MAX) {
        let name = status::plain(&name);
        // A shell would split the name into words.
        if !name.contains(char::is_whitespace) {
            use std::io::Write as _;
            // The shell may have closed the pipe.
            let _ = writeln!(std::io::stdout(), "{name}");
        }
    }
}

fn time_max() -> Duration {
    let given = std::env::var(TIME_VARIABLE).ok();
    given.and_then(|text| duration(&text).ok()).unwrap_or(TIME_MAX)
}

/// Returns the names, or none after an error or the time `limit`.
async fn limited(
    limit: Duration,
    found: impl Future<Output = Result<Vec<String>, ClientError>>,
) -> Vec<String> {
    tokio::time::timeout(limit, found).await.ok().and_then(Result::ok).unwrap_or_default()
}

async fn find(names: Names, place: Place) -> Result<Vec<String>, ClientError> {
    let resource = match names {
        Names::Publishers => return Ok(KNOWN.iter().map(|it| it.name.to_owned()).collect()),
        Names::Library => {
            return Ok(template_library::entries().map(|it| it.name.to_owned()).collect());
        }
        Names::Machines => None,
        Names::Objects(resource) => Some(resource),
    };
    let given = place.kubeconfig.or_else(|| {
        let named = std::env::var_os("TINBOX_KUBECONFIG").filter(|it| !it.is_empty());
        named.map(PathBuf::from)
    });
    let kubeconfig = Kubeconfig::read(&Kubeconfig::find(given, std::env::home_dir())?)?;
    let client = Client::new(&kubeconfig, |_| ())?;
    let namespace = place.namespace.or(kubeconfig.namespace).unwrap_or(NAMESPACE.to_owned());
    let mut names: Vec<String> = match resource {
        None => {
            let answer = client.get(&Path::status()).await?;
            let view: StatusView = decode("read the machines", answer)?;
            view.machines.into_iter().map(|it| it.name.to_string()).collect()
        }
        Some(resource) => {
            let namespace = if resource == NETWORK { "" } else { &namespace };
            let (items, _) = client.list(&Path::collection(resource, namespace), "").await?;
            items.iter().map(crate::commands::name_of).collect()
        }
    };
    names.sort();
    Ok(names)
}

/// Finds out which names fit after `words`, by the definition of the commands.
fn place(words: &[&str]) -> Place {
    let mut root = crate::command();
    root.build();
    let (mut command, mut path, mut position) = (&root, Vec::new(), 0);
    let (mut place, mut option): (Place, Option<&Arg>) = (Place::default(), None);
    for word in words {
        if let Some(named) = option {
            // Bash makes three words of `--option=value`.
            if *word != "=" {
                take(&mut place, named, word);
                option = None;
            }
        } else if let Some((named, value)) = option_of(command, word) {
            match value {
                Some(value) => take(&mut place, named, value),
                None => option = named.get_action().takes_values().then_some(named),
            }
        } else if let Some(found) = command.find_subcommand(word).filter(|_| position == 0) {
            path.push(found.get_name());
            command = found;
        } else if !word.starts_with('-') {
            position += 1;
        }
    }
    place.names = match option {
        Some(option) => of_option(option),
        None => of_position(command, &path, position),
    };
    place
}

/// Returns the option that a word names, and its value if the word has one.
fn option_of<'a, 'b>(command: &'a Command, word: &'b str) -> Option<(&'a Arg, Option<&'b str>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let named = command.get_arguments().find(|it| it.get_long() == Some(name));
        return named.map(|named| (named, value));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let (Some(letter), None) = (letters.next(), letters.next()) else { return None };
    let named = command.get_arguments().find(|it| it.get_short() == Some(letter));
    named.map(|named| (named, None))
}

fn take(place: &mut Place, option: &Arg, value: &str) {
    match option.get_long() {
        Some("kubeconfig") => place.kubeconfig = Some(value.into()),
        Some("namespace") => place.namespace = Some(value.to_owned()),
        _ => {}
    }
}

fn of_option(option: &Arg) -> Option<Names> {
    match option.get_long()? {
        "hardware" => Some(Names::Objects(HARDWARE)),
        "template" => Some(Names::Objects(TEMPLATE)),
        "library" => Some(Names::Library),
        _ => None,
    }
}

/// Returns the names for an argument without an option: those of the noun, if the argument is a
/// name. The last argument may take several names.
fn of_position(command: &Command, path: &[&str], position: usize) -> Option<Names> {
    let arguments: Vec<&Arg> = command.get_positionals().collect();
    let is_many = |it: &&&Arg| it.get_num_args().is_some_and(|count| count.max_values() > 1);
    let argument = arguments.get(position).or(arguments.last().filter(is_many))?;
    let is_name = |it: &clap::builder::Str| it.as_str().contains("NAME");
    if !argument.get_value_names().is_some_and(|names| names.iter().any(is_name)) {
        return None;
    }
    match *path {
        ["template", "library"] => Some(Names::Library),
        ["os-image", "add"] => Some(Names::Publishers),
        // The name of a new image.
        ["os-image", "push"] => None,
        ["machine", ..] => Some(Names::Machines),
        ["hardware" | "bmc", ..] => Some(Names::Objects(HARDWARE)),
        ["template", ..] => Some(Names::Objects(TEMPLATE)),
        ["workflow", ..] => Some(Names::Objects(WORKFLOW)),
        ["network", ..] => Some(Names::Objects(NETWORK)),
        ["os-image", ..] => Some(Names::Objects(OS_IMAGE)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use box_client::ClientError;
    use tokio::time::Instant;

    use super::{HARDWARE, NETWORK, Names, OS_IMAGE, TEMPLATE, TIME_MAX, WORKFLOW, limited, place};

    fn names(line: &str) -> Option<Names> {
        place(&line.split_whitespace().collect::<Vec<_>>()).names
    }

    #[test]
    fn each_place_of_a_name_has_the_names_of_its_noun() {
        for (line, expected) in [
            ("machine history", Some(Names::Machines)),
            ("machine story --follow", Some(Names::Machines)),
            ("machine history nuc1", None),
            ("machine power", Some(Names::Machines)),
            ("machine power nuc1", None),
            ("machine adopt nuc1", None),
            ("machine list", None),
            ("machine", None),
            ("hw get", Some(Names::Objects(HARDWARE))),
            ("hardware delete nuc1 nuc2 --yes", Some(Names::Objects(HARDWARE))),
            ("bmc sensors", Some(Names::Objects(HARDWARE))),
            ("template update", Some(Names::Objects(TEMPLATE))),
            ("template library", Some(Names::Library)),
            ("template render debian --hardware", Some(Names::Objects(HARDWARE))),
            ("workflow create --template", Some(Names::Objects(TEMPLATE))),
            ("wf events", Some(Names::Objects(WORKFLOW))),
            ("network get", Some(Names::Objects(NETWORK))),
            ("os-image fetch", Some(Names::Objects(OS_IMAGE))),
            ("osimage add", Some(Names::Publishers)),
            ("os-image push", None),
            ("box claim", None),
            ("machine nonsense", None),
        ] {
            assert_eq!(names(line), expected, "{line}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_box_that_does_not_answer_gives_no_names_in_time() {
        let begun = Instant::now();
        assert!(limited(TIME_MAX, pending()).await.is_empty());
        assert_eq!(begun.elapsed(), TIME_MAX);
        let error = ClientError::NoKubeconfig("/root".to_owned());
        assert!(limited(TIME_MAX, ready(Err(error))).await.is_empty());
        assert_eq!(limited(TIME_MAX, ready(Ok(vec!["nuc1".to_owned()]))).await, ["nuc1"]);
    }

    #[test]
    fn options_before_the_word_name_the_box_and_the_namespace() {
        for line in [
            "--kubeconfig a.yaml -n lab machine history",
            "machine --namespace=lab history --kubeconfig=a.yaml",
            "machine history --kubeconfig = a.yaml --timeout 5m -n lab",
        ] {
            let place = place(&line.split_whitespace().collect::<Vec<_>>());
            assert_eq!(place.names, Some(Names::Machines), "{line}");
            assert_eq!(place.kubeconfig, Some("a.yaml".into()), "{line}");
            assert_eq!(place.namespace.as_deref(), Some("lab"), "{line}");
        }
    }
}
