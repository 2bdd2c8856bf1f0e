//! Compares the documents with the product.
//!
//! Compared: each generated page with what the code prints (`UPDATE=1` rewrites the pages), and the
//! map of crates with the floors of `tests/tidy`.
//!
//! Parsed, not run: commands of `tinbox` and `tink` (by the real definition: wrong verbs, options
//! and values fail), kinds that `kubectl` names, files of the tree that are started, the names of
//! all other programs.
//!
//! Run: `make --dry-run` of each target with its variables; the creation of each Kubernetes object
//! in a box's own engine and store; `lint` of each workflow document; the reader of box.toml for
//! each TOML block; the search for each link's file and heading.
//!
//! Not shown here: that a command does on a real box what the page says. `tests/doc-commands` runs
//! the commands; here the list of its tests and the list of its exceptions are compared with the
//! pages.

#![allow(clippy::unwrap_used, reason = "tests: their helpers fail the test they help")]

use std::process::Command;
use std::sync::Arc;

use api::infrastructure;
use config::{Config, SystemKind};
use docs::markdown::{Block, anchors, blocks, links, spans};
use docs::page::{self, Page, root};
use docs::shell::{self, is_name};
use docs::{
    actions, command_line, crates, events, functions, kinds, ports, queues, settings, states,
    tasks, typed_lines,
};
use resources::{Engine, FieldValidation, Strictness, WriteOptions, builtin};
use serde_json::Value;
use store::{Options, Store};

#[track_caller]
fn none(mistakes: &[String]) {
    assert!(mistakes.is_empty(), "{} mistakes:\n  {}", mistakes.len(), mistakes.join("\n  "));
}

#[test]
fn generated_pages_are_what_the_code_prints() {
    let pages = [
        ("docs/reference/actions.md", actions::page()),
        ("docs/reference/box-toml.md", settings::page()),
        ("docs/reference/cli.md", command_line::page()),
        ("docs/reference/events.md", events::page()),
        ("docs/reference/kinds.md", kinds::page()),
        ("docs/reference/ports.md", ports::page()),
        ("docs/reference/queues-and-locks.md", queues::page()),
        ("docs/reference/tasks.md", tasks::page()),
        ("docs/reference/template-functions.md", functions::page()),
        ("docs/explanation/workflow-states.md", states::page()),
    ];
    let compare = |(path, text): &(_, String)| golden::compare_file(&root().join(path), text).err();
    let compared = pages.iter().filter_map(compare);
    none(&compared.collect::<Vec<_>>());
}

#[test]
fn tables_of_meanings_have_what_the_code_has() {
    let found = [actions::mistakes(), events::mistakes(), ports::mistakes(), queues::mistakes()];
    none(&found.concat());
}

#[test]
fn the_map_shows_each_crate_on_its_floor() {
    none(&crates::mistakes());
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages = page::all();
    let mut mistakes = Vec::new();
    for page in &pages {
        for (line, target) in links(&page.text) {
            if target.starts_with("https://") || target.starts_with("http://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let folder = root().join(&page.path).parent().unwrap().to_path_buf();
            let path = if file.is_empty() { root().join(&page.path) } else { folder.join(file) };
            let text = || std::fs::read_to_string(&path).unwrap_or_default();
            let is_there = heading.is_empty() || anchors(&text()).iter().any(|it| it == heading);
            if !path.exists() || !is_there {
                mistakes.push(format!("{}:{line}: {target} is not there", page.path));
            }
        }
    }
    none(&mistakes);
}

#[test]
fn each_page_is_in_the_map() {
    let map = std::fs::read_to_string(root().join("docs/README.md")).unwrap();
    let linked: Vec<String> = links(&map).into_iter().map(|(_, target)| target).collect();
    let missing = page::all().into_iter().filter_map(|page| {
        let path = page.path.strip_prefix("docs/")?.to_owned();
        let is_there = path == "README.md" || linked.contains(&path);
        (!is_there).then(|| format!("{} is not in docs/README.md", page.path))
    });
    none(&missing.collect::<Vec<_>>());
}

/// Returns the blocks of a language on all pages, generated ones too, with their places.
fn blocks_of(language: &str) -> Vec<(String, Block)> {
    let in_page =
        |page: Page| blocks(&page.text).into_iter().map(move |block| (page.path.clone(), block));
    page::all().into_iter().flat_map(in_page).filter(|(_, it)| it.language == language).collect()
}

#[test]
fn blocks_have_a_language_that_is_checked() {
    let known = ["sh", "toml", "yaml", "text", "mermaid"];
    let others = page::all().into_iter().flat_map(|page| {
        let others = blocks(&page.text).into_iter().filter(|it| !known.contains(&&*it.language));
        others.map(move |it| format!("{}:{}: {:?}", page.path, it.line, it.language))
    });
    none(&others.collect::<Vec<_>>());
}

/// Programs on the pages that do not belong to the box; their arguments are not checked.
const FOREIGN: [&str; 13] = [
    "age",
    "age-keygen",
    "bmaptool",
    "cargo",
    "clusterctl",
    "curl",
    "export",
    "ip",
    "sh",
    "snmpwalk",
    "ssh",
    "tail",
    "tar",
];
/// Programs of the tree whose arguments are defined elsewhere than those of `tinbox`.
const OWN: [&str; 2] = ["tinboxd", "tinbox-sim"];

#[test]
fn commands_can_be_typed() {
    let mut mistakes = Vec::new();
    for (path, block) in blocks_of("sh") {
        for command in shell::commands(&block.text).unwrap() {
            if let Err(why) = check(&command) {
                let line = block.line + command.line;
                mistakes.push(format!("{path}:{line}: {}: {why}", command.words.join(" ")));
            }
        }
    }
    none(&mistakes);
}

/// Commands in sentences may lack their last arguments, so only verbs and options are compared.
#[test]
fn commands_in_sentences_have_verbs_and_options_of_the_command_line() {
    let mut mistakes = Vec::new();
    for page in page::all() {
        for (line, code) in spans(&page.text) {
            let words: Vec<&str> = code.split_whitespace().collect();
            if let ["tinbox", words @ ..] = words.as_slice()
                && let Err(why) = verbs_and_options(words)
            {
                mistakes.push(format!("{}:{line}: {code}: {why}", page.path));
            }
        }
    }
    none(&mistakes);
}

fn verbs_and_options(words: &[&str]) -> Result<(), String> {
    let mut command = cli::command();
    command.build();
    let mut command = &command;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some(name) = word.strip_prefix("--") {
            let option = command.get_arguments().find(|it| it.get_long() == Some(name));
            let option = option.ok_or_else(|| format!("{word} is not an option"))?;
            if option.get_action().takes_values() {
                words.next();
            }
        } else if *word == word.to_uppercase() {
            // A word in place of a command or of a value.
            return Ok(());
        } else if command.has_subcommands() {
            let mut found = command;
            for name in word.split('|') {
                let named = command.find_subcommand(name);
                found = named.ok_or_else(|| format!("{name} is not a command"))?;
            }
            command = found;
        }
    }
    Ok(())
}

#[test]
fn each_command_is_run_by_a_test_or_on_the_list() {
    none(&typed_lines::mistakes());
}

#[test]
fn commands_that_cannot_be_typed_are_found() {
    for text in [
        "tinbox machine storey nuc1",
        "tinbox backup create --nowhere",
        "make nothing",
        "kubectl get hardwares",
        "tests/none.sh",
        "unknown",
    ] {
        let commands = shell::commands(text).unwrap();
        assert!(check(&commands[0]).is_err(), "{text}");
    }
}

fn check(command: &shell::Command) -> Result<(), String> {
    let words = &command.words;
    match words[0].as_str() {
        "tinbox" | "tink" => {
            let parsed = cli::command().try_get_matches_from(words);
            parsed.map(drop).map_err(|error| error.to_string())
        }
        "make" => dry_run(command),
        "kubectl" => kubectl(words),
        name if FOREIGN.contains(&name) || OWN.contains(&name) => Ok(()),
        path if path.contains('/') && root().join(path).is_file() => Ok(()),
        _ => Err("the program is not known".to_owned()),
    }
}

/// Checks that the Makefile has the targets, without running them; the error is the message of
/// make.
fn dry_run(command: &shell::Command) -> Result<(), String> {
    let mut make = Command::new("make");
    make.current_dir(root()).arg("--dry-run").args(&command.variables).args(&command.words[1..]);
    let output = make.output().map_err(|error| error.to_string())?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(error) }
}

/// Checks the verb, and that the box has the kinds.
fn kubectl(words: &[String]) -> Result<(), String> {
    let mut words = words[1..].iter();
    let mut verb = words.next().ok_or("there is no verb")?;
    if verb == "--kubeconfig" {
        verb = words.nth(1).ok_or("there is no verb")?;
    }
    // The files of `kubectl apply` have kinds of a management cluster too.
    if verb == "apply" {
        return Ok(());
    }
    if !["annotate", "delete", "edit", "explain", "get", "label"].contains(&verb.as_str()) {
        return Err(format!("{verb} is not a verb that is known here"));
    }
    let registry = builtin::registry().unwrap();
    let kinds = words.next().ok_or("there is no kind")?;
    let unknown = kinds.split(',').find(|name| {
        let short = |kind: &str| kind == *name;
        !registry.all().iter().any(|kind| {
            *name == kind.plural
                || *name == kind.singular
                || kind.short_names.iter().any(|it| short(it))
        })
    });
    unknown.map_or(Ok(()), |name| Err(format!("{name} is not a kind of the box")))
}

#[test]
fn variables_of_make_are_read_by_something() {
    let files = ["Makefile", "tests", "image", "fuzz"];
    let texts: String = files.iter().map(|name| texts_below(&root().join(name))).collect();
    let mut mistakes = Vec::new();
    for (path, block) in blocks_of("sh") {
        for command in shell::commands(&block.text).unwrap() {
            let set = command.variables.iter().chain(&command.words);
            let names = set.filter_map(|word| word.split_once('=')).map(|(name, _)| name);
            for name in names.filter(|name| is_name(name) && *name != "UPDATE") {
                if !texts.contains(name) {
                    mistakes.push(format!("{path}: nothing reads {name}"));
                }
            }
        }
    }
    none(&mistakes);
}

/// Returns the texts of a file or of the files in a folder, joined.
fn texts_below(path: &std::path::Path) -> String {
    if path.is_file() {
        return std::fs::read_to_string(path).unwrap_or_default();
    }
    let entries = std::fs::read_dir(path).unwrap().flatten();
    entries.filter(|it| it.file_name() != "target").map(|it| texts_below(&it.path())).collect()
}

#[test]
fn settings_are_read_by_the_reader_of_the_box() {
    let mut mistakes = Vec::new();
    for (path, block) in blocks_of("toml") {
        let read = |home| Config::read(&block.text, home).map(drop).or_else(elsewhere);
        let Err(on_linux) = read(SystemKind::Guest) else { continue };
        if let Err(flashed) = read(SystemKind::Firmware) {
            let line = block.line;
            mistakes.push(format!("{path}:{line}: {flashed:?}, and on Linux {on_linux:?}"));
        }
    }
    none(&mistakes);
}

/// Leaves out mistakes about folders that only the box has.
fn elsewhere(mut mistakes: Vec<String>) -> Result<(), Vec<String>> {
    mistakes.retain(|mistake| !mistake.starts_with("boot.artifacts: "));
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

#[tokio::test]
async fn objects_are_admitted_and_workflow_documents_have_no_mistake() {
    let mut mistakes = Vec::new();
    let mut count = 0;
    for (path, block) in blocks_of("yaml") {
        for (number, text) in block.text.split("---\n").enumerate() {
            count += 1;
            if let Err(why) = admit(text).await {
                mistakes.push(format!("{path}:{}: document {number}: {why}", block.line));
            }
        }
    }
    none(&mistakes);
    assert!(count > 0, "no YAML was found");
}

/// Kinds that only a management cluster has. The tests `an_unhealthy_machine…` of tests/scenarios
/// and `cluster_class` of tests/peers apply them to a real one.
const OF_MANAGEMENT_CLUSTER: [&str; 3] =
    ["MachineHealthCheck", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

/// Checks an object whose kind the provider or Cluster API defines for management clusters only;
/// `None` for a kind of the box.
fn of_management_cluster(object: &Value) -> Option<Result<(), String>> {
    let kind = object["kind"].as_str()?;
    if OF_MANAGEMENT_CLUSTER.contains(&kind) {
        return Some(Ok(()));
    }
    let only = ["TinkerbellRemediation", "TinkerbellRemediationTemplate"];
    let json = [infrastructure::REMEDIATIONS, infrastructure::REMEDIATION_TEMPLATES];
    let json = only.iter().zip(json).find(|(name, _)| **name == kind).map(|(_, json)| json)?;
    let definition: Value = serde_json::from_str(json).unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let schema = schema::Schema::parse(schema).unwrap();
    let errors = schema.validate(object, None);
    let mut found = schema.prune(&mut object.clone());
    found.extend(errors.iter().map(|error| format!("{error:?}")));
    Some(if found.is_empty() { Ok(()) } else { Err(found.join("; ")) })
}

/// Creates an object in an empty box, or looks for mistakes in a workflow document.
async fn admit(text: &str) -> Result<(), String> {
    let object: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    if object["apiVersion"].is_null() {
        template::check(text).map_err(|error| error.to_string())?;
        let lint = api::document::lint(text);
        let found: Vec<String> =
            lint.mistakes.into_iter().chain(lint.unknown).chain(lint.unread).collect();
        return if found.is_empty() { Ok(()) } else { Err(found.join("; ")) };
    }
    if let Some(admitted) = of_management_cluster(&object) {
        return admitted;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("objects"), Options::default()).unwrap();
    let registry = builtin::registry().unwrap();
    let kind = registry.all().iter().find(|kind| {
        let version = match kind.group.as_str() {
            "" => kind.version.clone(),
            group => format!("{group}/{}", kind.version),
        };
        object["kind"] == kind.kind && object["apiVersion"] == version
    });
    let kind = kind.ok_or("the box does not have this kind")?;
    let (id, namespace) = (kind.id(), if kind.namespaced { "default" } else { "" });
    let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(stdx::SystemClock));
    engine.ensure_permanent().await.unwrap();
    let fields = FieldValidation { strictness: Strictness::Strict, ..FieldValidation::default() };
    let options = WriteOptions { fields, ..WriteOptions::default() };
    engine.create(&id, namespace, object, options).await.map(drop).map_err(|it| it.to_string())
}
