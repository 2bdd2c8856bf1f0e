use std::time::Duration;

use api::bmc::{Action, Job, Machine, PowerAction, RunStatus, Task};
use api::meta::OwnerReference;
use jiff::Timestamp;

use super::{KEPT, Observed, POWER_ON, Step, decide};
use crate::runtime::Requeue;

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
    let observed =
        Observed { job: job(tasks.len()), machine, tasks, wanted: true, ended_for: Duration::ZERO };
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
            Step::Hold(hold) => format!("hold {hold}"),
            Step::DeleteJob => "delete".to_owned(),
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
fn a_job_shows_the_error_of_its_running_task() {
    let failing = || task("u1", Some("BmcError"));
    assert_eq!(check(true, vec![failing()]), "BmcError");
    let tasks = |tasks: Vec<Option<Task>>| {
        let mut job = job(tasks.len());
        job.status.set("BmcError", "because");
        let ended_for = Duration::ZERO;
        let machine = Some(Machine::default());
        decide(&Observed { job, machine, tasks, wanted: true, ended_for }, NOW).steps
    };
    assert_eq!(tasks(vec![failing()]), [], "the error is not new");
    for steps in [tasks(vec![task("u1", None)]), tasks(vec![task("u1", Some("Completed"))])] {
        let [Step::Status(status)] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!(status.bmc_error(), None);
    }
}

#[test]
fn a_job_nobody_wants_any_more_does_nothing() {
    let observed = Observed {
        job: job(1),
        machine: None,
        tasks: vec![None],
        wanted: false,
        ended_for: Duration::ZERO,
    };
    let steps = decide(&observed, NOW).steps;
    assert!(matches!(&steps[..], [Step::Status(status)] if status.is("Failed")), "{steps:?}");
}

#[test]
fn an_ended_job_rests() {
    for kind in ["Completed", "Failed"] {
        let mut job = job(1);
        job.status.set(kind, "x");
        let observed = Observed {
            job,
            machine: None,
            tasks: vec![None],
            wanted: true,
            ended_for: Duration::ZERO,
        };
        assert!(decide(&observed, NOW).steps.is_empty());
    }
}

/// Runs a Job with the actions power off, network boot and power on. `states` has the conditions of
/// the existing Tasks.
fn reboot(states: &[&str], change: impl FnOnce(&mut Observed)) -> Vec<Step> {
    let mut job = job(3);
    job.spec.tasks[1] = Action::default();
    job.spec.tasks[2].power_action = Some(PowerAction::On);
    job.metadata.finalizers = vec![POWER_ON.to_owned()];
    let tasks = (0..3).map(|at| {
        let condition = states.get(at)?;
        let mut task = task("u1", Some(condition))?;
        task.spec.task = job.spec.tasks[at].clone();
        if at == 0 && ["Sent", "Completed"].contains(condition) {
            crate::task::set_off_sent(&mut task.status);
        }
        Some(task)
    });
    let tasks = tasks.collect();
    let machine = Some(Machine::default());
    let mut observed = Observed { job, machine, tasks, wanted: true, ended_for: Duration::ZERO };
    change(&mut observed);
    decide(&observed, NOW).steps
}

fn ends(steps: &[Step]) -> bool {
    matches!(steps, [Step::Status(status)] if status.is("Failed"))
}

#[test]
fn a_job_that_switches_off_and_on_is_held_before_it_begins() {
    let steps = reboot(&[], |observed| observed.job.metadata.finalizers.clear());
    assert_eq!(steps, [Step::Hold(true)]);
    let done = |observed: &mut Observed| observed.job.status.set("Completed", "x");
    assert_eq!(reboot(&["Completed"; 3], done), [Step::Hold(false)]);
}

#[test]
fn a_job_that_is_not_wanted_any_more_leaves_its_machine_on() {
    let unwanted: [fn(&mut Observed); 2] =
        [|it| it.job.metadata.deletion_timestamp = Some(NOW), |it| it.wanted = false];
    for change in unwanted {
        // The Task did not change the power.
        assert!(ends(&reboot(&[], change)));
        assert!(ends(&reboot(&["Running"], change)));
        // The machine may be off.
        assert_eq!(reboot(&["Sent"], change), []);
        for (states, next) in [(&["Completed"][..], 1), (&["Completed"; 2], 2)] {
            let steps = reboot(states, change);
            assert!(matches!(steps[0], Step::CreateTask { at, .. } if at == next), "{steps:?}");
        }
        assert!(matches!(&reboot(&["Completed"; 3], change)[..],
            [Step::Status(status)] if !status.is("Running")));
    }
    // The machine was off before the Job.
    let was_off = |it: &mut Observed| {
        it.wanted = false;
        let status = &mut it.tasks[0].as_mut().unwrap().status;
        status.conditions.retain(|condition| condition.kind == "Completed");
    };
    assert!(ends(&reboot(&["Completed"], was_off)));
    let gone = |it: &mut Observed| {
        it.job.metadata.deletion_timestamp = Some(NOW);
        it.machine = None;
    };
    assert!(ends(&reboot(&["Completed"], gone)));
}

#[test]
fn a_job_without_an_owner_is_removed_after_a_day() {
    let ended = |ended_for, is_owned: bool| {
        let mut job = job(1);
        job.status.set("Completed", "x");
        let owner = OwnerReference { uid: "workflow".into(), ..Default::default() };
        job.metadata.owner_references.extend(is_owned.then_some(owner));
        let observed = Observed { job, machine: None, tasks: vec![None], wanted: true, ended_for };
        decide(&observed, NOW)
    };
    let hour = Duration::from_secs(3600);
    assert_eq!(ended(hour, false).requeue, Requeue::After(KEPT - hour));
    assert_eq!(ended(KEPT, false).steps, [Step::DeleteJob]);
    assert_eq!(ended(KEPT * 2, true).steps, [], "it goes with its owner");
}
