//! Tests that a disk choice is stored before it is acknowledged.

use agent_rpc::{DiskChoice, Refusal, Workflows as _};
use api::tinkerbell::{ActionState, State, Workflow};

use crate::fixture::{AGENT, Fixture, fixture};

fn choice(serial: &str) -> DiskChoice {
    DiskChoice {
        agent_id: AGENT.to_owned(),
        workflow_id: "default/wf".to_owned(),
        task_id: "t".to_owned(),
        action_id: "a".to_owned(),
        hint: "model=Samsung".to_owned(),
        wwn: String::new(),
        serial: serial.to_owned(),
        model: "Samsung".to_owned(),
        bytes: 1 << 40,
    }
}

fn stored(fixture: &Fixture) -> Workflow {
    serde_json::from_value(fixture.objects.0.lock().unwrap().clone().unwrap()).unwrap()
}

fn running() -> Fixture {
    let fixture = fixture();
    fixture.put(State::Running);
    let mut workflow = stored(&fixture);
    workflow.status.tasks[0].actions[0].state = ActionState::Running;
    *fixture.objects.0.lock().unwrap() = Some(serde_json::to_value(&workflow).unwrap());
    fixture
}

#[tokio::test]
async fn the_disk_that_a_hint_chose_is_in_the_workflow_and_stays() {
    let fixture = running();
    fixture.service.choose_disk(choice("ONE")).await.unwrap();
    let chosen = stored(&fixture).status.chosen_disks;
    assert_eq!((chosen.len(), chosen[0].serial.as_str()), (1, "ONE"));
    assert_eq!((chosen[0].agent_id.as_str(), chosen[0].size), (AGENT, 1 << 40));
    // A restarted box reads the choice from the workflow; the agent's boot is unknown then.
    let again = running();
    *again.objects.0.lock().unwrap() = fixture.objects.0.lock().unwrap().take();
    again.service.choose_disk(choice("ONE")).await.unwrap();
    let refused = again.service.choose_disk(choice("TWO")).await.unwrap_err();
    let Refusal::Precondition(why) = refused else { panic!("{refused:?}") };
    assert!(why.contains("serial number ONE") && why.contains("create a new Workflow"), "{why}");
    assert_eq!(stored(&again).status.chosen_disks, chosen);
}

#[tokio::test]
async fn an_action_that_does_not_run_chooses_nothing() {
    let fixture = fixture();
    fixture.put(State::Running);
    let refused = fixture.service.choose_disk(choice("ONE")).await.unwrap_err();
    assert!(matches!(refused, Refusal::NotFound(_)), "{refused:?}");
    assert!(stored(&fixture).status.chosen_disks.is_empty());
}
