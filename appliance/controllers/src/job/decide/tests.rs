use api::bmc::{Action, Job, Machine, PowerAction, RunStatus, Task};
use api::meta::OwnerReference;
use jiff::Timestamp;

use super::{Observed, Step, decide};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn job(actions: usize) -> Job {
    let mut job = Job::default();
    job.metadata.name = "j".into();
    job.metadata.uid = "u1".into();
    let action = Action { power_action: Some(PowerAction::Off), ..Default::default() };
    job.spec.tasks = vec![action; actions];
    job
}

fn task(uid: &str, condition: Option<&str>) -> Option<Task> {
    let mut task = Task::default();
    task.metadata.name = "j-task-0".into();
    let owner = OwnerReference { uid: uid.into(), ..Default::default() };
    task.metadata.owner_references = vec![owner];
    if let Some(kind) = condition {
        task.status.set(kind, "because");
    }
    Some(task)
}

fn check(machine: bool, tasks: Vec<Option<Task>>) -> String {
    let machine = machine.then(Machine::default);
    let observed = Observed { job: job(tasks.len()), machine, tasks, wanted: true };
    let status = |status: &RunStatus| {
        let mut names: Vec<_> = status.conditions.iter().map(|it| it.kind.as_str()).collect();
        names.sort_unstable();
        names.join("+")
    };
    let steps = decide(&observed, NOW).steps;
    let words: Vec<String> = steps
        .iter()
        .map(|step| match step {
            Step::Status(it) => status(it),
            Step::CreateTask { at, .. } => format!("create {at}"),
            Step::DeleteTask(name) => format!("delete {name}"),
        })
        .collect();
    words.join(", ")
}

#[test]
fn one_after_another() {
    let done = || task("u1", Some("Completed"));
    assert_eq!(check(true, vec![None, None]), "create 0, Running");
    assert_eq!(check(true, vec![task("u1", None), None]), "");
    assert_eq!(check(true, vec![done(), None]), "create 1, Running");
    assert_eq!(check(true, vec![done(), done()]), "Completed");
    assert_eq!(check(true, vec![task("u1", Some("Failed")), None]), "Failed");
    assert_eq!(check(false, vec![None]), "Running");
    assert_eq!(check(true, vec![task("old", Some("Completed"))]), "delete j-task-0");
    assert_eq!(check(true, vec![]), "Completed");
    assert_eq!(check(true, vec![None, done()]), "Failed");
    assert_eq!(check(true, vec![None, task("old", None)]), "delete j-task-0");
}

#[test]
fn a_job_nobody_wants_any_more_does_nothing() {
    let observed = Observed { job: job(1), machine: None, tasks: vec![None], wanted: false };
    let steps = decide(&observed, NOW).steps;
    assert!(matches!(&steps[..], [Step::Status(status)] if status.is("Failed")), "{steps:?}");
}

#[test]
fn an_ended_job_rests() {
    for kind in ["Completed", "Failed"] {
        let mut job = job(1);
        job.status.set(kind, "x");
        let observed = Observed { job, machine: None, tasks: vec![None], wanted: true };
        assert!(decide(&observed, NOW).steps.is_empty());
    }
}
