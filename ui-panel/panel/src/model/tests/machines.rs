//! Machines on the panel: their pages, their actions, and the confirmations.

use machine_actions::Action as Table;

use super::*;

fn machine_order(action: Table, machine: &str, workflow: &str) -> PanelOrder {
    PanelOrder::Machine(MachineOrder {
        action: MachineAction::Table(action),
        machine: machine.to_owned(),
        workflow: workflow.to_owned(),
    })
}

#[test]
fn a_machine_is_opened_from_the_rack_and_switched_only_after_a_hold() {
    let view = example::working();
    let mut rig = Rig::of(Kind::Tft, Buttons::Three, &view);
    rig.panel.go(Page::Rack(0), rig.now);
    rig.tap(&[Down, Down, Select], &view);
    assert_eq!(rig.page(&view), Page::Machine("nuc-03".to_owned()));
    rig.tap(&[Up], &view);
    assert_eq!(rig.orders, [], "it did not fail, so there is nothing to retry");
    let action = |action| MachineAction::Table(action);
    let cursor = |action| Page::Actions("nuc-03".to_owned(), action);
    rig.tap(&[Select], &view);
    assert_eq!(rig.page(&view), cursor(Some(action(Table::ShutDown))));
    rig.tap(&[Down, Select], &view);
    let order = machine_order(Table::PowerOff, "nuc-03", "");
    assert_eq!(rig.page(&view), Page::Confirm(order.clone()));
    rig.hold(Select, &view, s(4));
    assert_eq!((rig.page(&view), rig.orders.len()), (Page::Home, 0), "it is in service");
    rig.panel.go(Page::Confirm(order.clone()), rig.now);
    rig.hold(Select, &view, s(6));
    assert_eq!(rig.orders, [order]);
}

#[test]
fn a_failed_machine_is_acted_on_from_its_problem() {
    let view = example::working();
    for (buttons, kind) in [(Buttons::Three, Kind::Oled), (Buttons::One, Kind::Tft)] {
        let mut rig = Rig::of(kind, buttons, &view);
        rig.hold(Select, &view, s(2));
        let first = MachineAction::Table(Table::Retry);
        assert_eq!(rig.page(&view), Page::Actions("nuc-07".to_owned(), Some(first)));
        let next = if buttons == Buttons::Three { Down } else { Select };
        rig.tap(&[next], &view);
        match buttons {
            Buttons::Three => rig.tap(&[Select], &view),
            _ => rig.hold(Select, &view, s(2)),
        };
        let order = machine_order(Table::StartOver, "nuc-07", "wf-14");
        assert_eq!((rig.page(&view), rig.orders.len()), (Page::Confirm(order.clone()), 0));
        rig.hold(Select, &view, s(2));
        assert_eq!(rig.orders, [order], "it is not in service, so a second is enough");
    }
}

#[test]
fn an_action_that_the_machine_no_longer_permits_is_not_replaced_by_its_neighbor() {
    let view = example::working();
    let mut rig = Rig::oled(&view);
    let page = |action| Page::Actions("nuc-07".to_owned(), Some(MachineAction::Table(action)));
    rig.panel.go(page(Table::Dismiss), rig.now);
    let mut changed = view.clone();
    changed.machines[6].dismissed = true;
    rig.tap(&[Select], &changed);
    assert_eq!((rig.page(&changed), rig.orders.len()), (page(Table::Retry), 0));
    let order = machine_order(Table::StartOver, "nuc-07", "wf-14");
    rig.panel.go(Page::Confirm(order), rig.now);
    changed.machines[6].workflow = "wf-20".into();
    assert_eq!(rig.pass(&changed, s(1)).page(&changed), Page::Home, "the question is void");
}

#[test]
fn every_machine_is_reached_from_an_oled() {
    let view = example::calm();
    let mut rig = Rig::oled(&view);
    rig.tap(&[Down, Select], &view);
    assert_eq!(rig.page(&view), Page::Rack(0));
    rig.tap(&[Down; 11], &view).tap(&[Select], &view);
    assert_eq!(rig.page(&view), Page::Machine("nuc-12".to_owned()));
    rig.tap(&[Down, Down], &view);
    assert_eq!(rig.page(&view), Page::Home, "after the last machine");
}

#[test]
fn a_page_whose_machine_is_gone_goes_too() {
    let view = example::working();
    let mut rig = Rig::of(Kind::Tft, Buttons::Three, &view);
    rig.panel.go(Page::Machine("nuc-03".to_owned()), rig.now);
    let mut without = view.clone();
    without.machines.remove(2);
    assert_eq!(rig.pass(&without, s(1)).page(&without), Page::Home);
}

#[test]
fn select_retries_the_machine_that_was_shown() {
    let view = example::working();
    let mut rig = Rig::oled(&view);
    let mut changed = view.clone();
    changed.machines[0].state = status::view::MachineState::Failed;
    changed.machines[0].since = Some(jiff::Timestamp::MIN);
    rig.panel.known.insert("machine/nuc-01/Failed".to_owned());
    rig.tap(&[Select], &changed);
    assert_eq!(rig.orders, [machine_order(Table::Retry, "nuc-07", "wf-14")]);
}
