//! Actions that a machine has in its state.

use status::view::work::NOT_RENDERED;
use status::view::{Machine, MachineState, Power};

use crate::action::{Action, Confirmation};

/// Returns the actions for a machine, most useful first.
pub fn offered(machine: &Machine) -> Vec<Action> {
    use Action::{Add, Cancel, Dismiss, Ignore, Install, Pause, Resume, Retry, StartOver};
    let mut actions = match machine.state {
        MachineState::New => vec![Install, Add, Ignore],
        MachineState::Removing => vec![],
        MachineState::Ready | MachineState::InService | MachineState::Off => vec![Install],
        MachineState::Waiting | MachineState::Booting | MachineState::Installing => {
            vec![Pause, Cancel]
        }
        MachineState::Silent if machine.workflow.is_empty() => vec![Install],
        MachineState::Silent => vec![Cancel],
        MachineState::Held => vec![Resume, Cancel],
        MachineState::Failed if is_not_rendered(machine) => vec![Cancel],
        MachineState::Failed | MachineState::TimedOut if machine.dismissed => {
            vec![Retry, StartOver, Install]
        }
        MachineState::Failed | MachineState::TimedOut => vec![Retry, StartOver, Install, Dismiss],
        MachineState::Canceled => vec![Retry, StartOver, Install],
    };
    let erases = actions.contains(&Install) && machine.state != MachineState::New;
    if machine.has_bmc && machine.state != MachineState::Removing {
        actions.extend(power(machine.power));
    }
    actions.extend(erases.then_some(Action::Erase));
    actions
}

/// Returns true if the template of the workflow cannot be rendered, so that the workflow has not
/// begun.
fn is_not_rendered(machine: &Machine) -> bool {
    machine.trouble.as_ref().is_some_and(|trouble| trouble.code.as_str() == NOT_RENDERED)
}

/// Returns the power actions in a power state. An unknown state permits both directions: the
/// controller reads the state before it switches.
fn power(power: Power) -> &'static [Action] {
    use Action::{PowerCycle, PowerOff, PowerOn, ShutDown};
    match power {
        Power::On => &[ShutDown, PowerOff, PowerCycle],
        Power::Off => &[PowerOn],
        Power::Unknown => &[PowerOn, PowerOff],
    }
}

/// Returns the confirmation of an action on a machine. An action that stops a machine in service
/// requires the name of the machine.
pub fn confirmation(action: Action, machine: &Machine) -> Confirmation {
    use Action::{Install, PowerCycle, PowerOff, ShutDown, StartOver};
    let stops = matches!(action, Install | StartOver | PowerOff | PowerCycle | ShutDown);
    if stops && machine.state == MachineState::InService {
        return Confirmation::Name;
    }
    action.description().confirmation
}

#[cfg(test)]
mod tests {
    use status::view::machine::STATES;
    use status::view::{Machine, MachineState, Power, Trouble};

    use super::{NOT_RENDERED, confirmation, offered};
    use crate::action::{ACTIONS, Action, Confirmation};

    fn machine(state: MachineState) -> Machine {
        let (workflow, has_bmc) = ("install".into(), true);
        Machine { state, workflow, has_bmc, power: Power::On, ..Machine::default() }
    }

    #[test]
    fn a_machine_without_power_control_has_no_power_actions() {
        for state in STATES {
            let bare = Machine { has_bmc: false, ..machine(state) };
            assert!(offered(&bare).iter().all(|it| it.power().is_none()), "{state:?}");
            assert_eq!(
                offered(&machine(state)).contains(&Action::PowerOff),
                state != MachineState::Removing
            );
        }
    }

    #[test]
    fn a_switch_is_offered_only_to_the_other_state() {
        let off = Machine { power: Power::Off, ..machine(MachineState::Ready) };
        assert_eq!(offered(&off), [Action::Install, Action::PowerOn, Action::Erase]);
        let unknown = Machine { power: Power::Unknown, ..off };
        let both = [Action::Install, Action::PowerOn, Action::PowerOff, Action::Erase];
        assert_eq!(offered(&unknown), both);
    }

    #[test]
    fn a_running_workflow_is_never_replaced() {
        for state in [MachineState::Waiting, MachineState::Booting, MachineState::Installing] {
            for action in [Action::Install, Action::Erase] {
                assert!(!offered(&machine(state)).contains(&action), "{state:?}");
            }
        }
        let trouble = Trouble { code: NOT_RENDERED.into(), ..Trouble::default() };
        let unrendered = Machine { trouble: Some(trouble), ..machine(MachineState::Failed) };
        assert!(!offered(&unrendered).contains(&Action::Retry));
    }

    #[test]
    fn a_machine_in_service_is_stopped_only_by_its_name() {
        let (serving, failed) = (machine(MachineState::InService), machine(MachineState::Failed));
        for action in [Action::Install, Action::PowerOff, Action::PowerCycle, Action::ShutDown] {
            assert_eq!(confirmation(action, &serving), Confirmation::Name);
            assert_ne!(confirmation(action, &failed), Confirmation::Name);
        }
        assert_eq!(confirmation(Action::Erase, &failed), Confirmation::Name, "always");
        for action in ACTIONS.into_iter().filter(|it| it.description().loss.is_empty()) {
            assert_ne!(confirmation(action, &serving), Confirmation::Name, "{action:?}");
        }
    }
}
