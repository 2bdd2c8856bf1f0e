//! Machines and notices that a person has put aside, in the status view.

use dismissals::{Dismissals, entry_of};
use status::source::{Filling, StatusSource};
use status::view::problem::all_problems;
use status::view::{MachineState, Problem, StatusView};

/// Status source of dismissals. The source must be the last one, because it hides what others show.
pub struct DismissedSource(pub Dismissals);

impl StatusSource for DismissedSource {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        Box::pin(async {
            let read = self.0.read().await;
            let dismissed = read.unwrap_or_else(|error| {
                // A store that stopped is a fault of its own, and views are built often.
                tracing::debug!(%error, "cannot read what a person dismissed");
                Default::default()
            });
            let is_ignored = |mac| dismissed.machines.contains(&mac);
            view.machines
                .retain(|it| it.state != MachineState::New || !it.mac.is_some_and(is_ignored));
            let is_known = |mac| view.machines.iter().any(|it| it.mac == Some(mac));
            view.ignored =
                dismissed.machines.iter().copied().filter(|mac| !is_known(*mac)).collect();
            let is_hidden = |problem: &Problem| {
                let at = dismissed.notices.get(&entry_of(&problem.key));
                at.is_some_and(|at| problem.is_hidden(*at, view.now))
            };
            let hidden = all_problems(view).into_iter().filter(is_hidden);
            view.dismissed = hidden.map(|problem| problem.key.into()).collect();
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dismissals::Dismissals;
    use objects::fake::Memory;
    use status::source::StatusSource as _;
    use status::view::{Machine, MachineState, StatusView, problems};
    use stdx::MacAddr;

    use super::DismissedSource;

    #[tokio::test]
    async fn ignored_machines_and_dismissed_notices_are_hidden() {
        let macs = [1, 2, 3].map(|last| MacAddr([0x54, 0xb2, 0x03, 0xa1, 0x4c, last]));
        let machine = |(mac, state): (MacAddr, MachineState)| Machine {
            name: mac.to_string().into(),
            mac: Some(mac),
            state,
            ..Machine::default()
        };
        let states = [MachineState::New, MachineState::New, MachineState::Ready];
        let mut view = StatusView {
            machines: macs.into_iter().zip(states).map(machine).collect(),
            ..StatusView::default()
        };
        view.system.flash_life_percent = Some(90);
        let dismissals = Dismissals::new(Arc::new(Memory::default()));
        dismissals.ignore(&[macs[1], macs[2]]).await.unwrap();
        dismissals.dismiss("flash", view.now).await.unwrap();
        assert_eq!(problems(&view).len(), 1);

        DismissedSource(dismissals.clone()).fill(&mut view).await;
        let shown: Vec<_> = view.machines.iter().filter_map(|it| it.mac).collect();
        assert_eq!(shown, [macs[0], macs[2]], "a machine with Hardware stays");
        assert_eq!(view.ignored, [macs[1]]);
        assert_eq!(problems(&view).len(), 0);

        // Another notice is shown.
        view.images.capacity = 100;
        view.images.used = 90;
        DismissedSource(dismissals).fill(&mut view).await;
        assert_eq!(problems(&view).len(), 1);
    }
}
