//! A machine: it has power or not, boots from the network when the box has something for it, and
//! then runs the real agent's loop, whose actions only pretend.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use agent::actions::{Leave, Limits, Outcome};
use agent::runner::{Acting, Host, Runner};
use agent::{Error, Meter};
use api::tinkerbell::HARDWARE;
use tokio::task::AbortHandle;
use workflow_rpc::Assignment;
use workflow_rpc::client::Client;

use super::appliance::token;
use super::link;
use super::plan;
use super::world::World;

/// Firmware, and a kernel: seconds.
const BOOT: (u64, u64) = (5, 40);
/// How often firmware asks a box that does not answer, and how often before it boots the disk.
const ASKS: (Duration, usize) = (Duration::from_secs(10), 6);
/// The longest that a machine is without power by accident.
const DARK: Duration = Duration::from_secs(60);
/// A workflow that ended so lately may have a job that was sent before.
const LATELY: i64 = 120;

/// A machine.
pub struct Nuc {
    /// Which.
    pub index: usize,
    world: Weak<World>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_on: bool,
    pxe_next: bool,
    /// What it does, as long as it has power.
    doing: Option<AbortHandle>,
    story: &'static str,
    had_mishap: bool,
}

impl Nuc {
    /// One that is off.
    pub fn new(index: usize, world: Weak<World>) -> Self {
        Self { index, world, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, story: &'static str) {
        self.state().story = story;
    }

    /// What it does, for people.
    pub fn story(&self) -> &'static str {
        self.state().story
    }

    /// Whether it has power.
    pub fn is_on(&self) -> bool {
        self.state().is_on
    }

    /// Where it boots from next, once.
    pub fn boot_next(&self, pxe: bool) {
        self.state().pxe_next = pxe;
    }

    /// Whether it boots from the network next.
    pub fn boots_pxe_next(&self) -> bool {
        self.state().pxe_next
    }

    /// Whether a workflow is to be done to it, or was so lately that its job may have been sent.
    pub fn is_wanted(&self) -> bool {
        let Some(world) = self.world.upgrade() else { return false };
        world.workflow(self.index).is_some_and(|workflow| {
            let ended = workflow.status.ended.as_ref();
            let since = |at| world.clock().now().duration_since(at).as_secs();
            ended.is_none_or(|ended| since(ended.time) < LATELY)
        })
    }

    /// Power comes.
    pub fn switch_on(self: &Arc<Self>) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_on, true) {
            state.doing = Some(tokio::spawn(Arc::clone(self).boots()).abort_handle());
        }
    }

    /// Power goes, and with it whatever the machine did.
    pub fn switch_off(&self) {
        let mut state = self.state();
        state.is_on = false;
        state.story = "is off";
        if let Some(doing) = state.doing.take() {
            doing.abort();
        }
    }

    /// It begins anew.
    pub fn reset(self: &Arc<Self>) {
        self.switch_off();
        self.switch_on();
    }

    /// Has its accidents, if it is to have any.
    pub fn suffer(self: &Arc<Self>) {
        let Some(world) = self.world.upgrade() else { return };
        let faults = world.settings.faults;
        let loses_power = world.chance.of_hundred(faults.power);
        let falls_silent = world.chance.of_hundred(faults.silence);
        let at = |world: &World| world.chance.upto(faults.until);
        if loses_power {
            let (at, nuc) = (at(&world), Arc::clone(self));
            let (dark, comes_back) = (world.chance.upto(DARK), world.chance.coin());
            tokio::spawn(async move {
                tokio::time::sleep(at).await;
                if nuc.is_on() {
                    nuc.mishap();
                    nuc.switch_off();
                    tokio::time::sleep(dark).await;
                    if comes_back {
                        nuc.switch_on();
                    }
                }
            });
        }
        if falls_silent {
            let (at, nuc) = (at(&world), Arc::clone(self));
            tokio::spawn(async move {
                tokio::time::sleep(at).await;
                let doing = nuc.state().doing.take();
                if let Some(doing) = doing {
                    nuc.mishap();
                    nuc.tell("hangs");
                    doing.abort();
                }
            });
        }
    }

    /// Whether it lost power by accident, or fell silent.
    pub fn had_mishap(&self) -> bool {
        self.state().had_mishap
    }

    fn mishap(&self) {
        self.state().had_mishap = true;
        if let Some(world) = self.world.upgrade() {
            world.count(|summary| summary.mishaps += 1);
        }
    }

    async fn boots(self: Arc<Self>) {
        self.tell("boots");
        let Some(world) = self.world.upgrade() else { return };
        tokio::time::sleep(world.chance.between(BOOT.0, BOOT.1)).await;
        self.boot_next(false);
        for _ in 0..ASKS.1 {
            if let Some(runs) = world.runs() {
                let run = runs.to_boot(&plan::key(self.index), &[]);
                return match run.filter(|_| self.may_netboot(&world)) {
                    Some(run) => self.runs_agent(&world, &run.uid).await,
                    None => self.tell("boots its disk"),
                };
            }
            tokio::time::sleep(ASKS.0).await;
        }
        self.tell("boots its disk, for nobody answered");
    }

    fn may_netboot(&self, world: &World) -> bool {
        let hardware = world.objects.peek(HARDWARE, &plan::key(self.index));
        hardware.is_some_and(|it| it["spec"]["interfaces"][0]["netboot"]["allowPXE"] == true)
    }

    async fn runs_agent(self: &Arc<Self>, world: &Arc<World>, workflow_uid: &str) {
        self.tell("runs its agent");
        let agent_id = plan::mac(self.index).to_string();
        let (wire, token) = (Arc::clone(world), token(&agent_id, workflow_uid).into());
        let client = Client::connect_with(
            move || link::connect(&wire),
            "box:42113",
            &agent_id,
            Some(&token),
        );
        let runner = Runner {
            client: client.expect("the address is one, and the token a header's"),
            host: Pretending(Arc::clone(self)),
            limits: Limits::MACHINE,
            attributes: workflow_rpc::Attributes::default(),
            inventory: workflow_rpc::Inventory::default(),
            boot_id: format!("{:?}", world.chance.upto(Duration::MAX / 2)),
        };
        runner.run().await;
    }
}

/// The machine, for the agent's loop.
struct Pretending(Arc<Nuc>);

impl Host for Pretending {
    fn may_leave(&self) -> bool {
        true
    }

    fn leave(&self, how: Leave) -> Result<(), Error> {
        match how {
            Leave::Reboot => self.0.reset(),
            // The installed system runs on, and has no agent.
            Leave::Kexec => {
                self.0.tell("runs what was installed");
                if let Some(doing) = self.0.state().doing.take() {
                    doing.abort();
                }
            }
        }
        Err(Error::Stopped)
    }

    fn act(
        &self,
        assignment: &Assignment,
        _: &Limits,
        meter: &Arc<Meter>,
    ) -> Result<Acting, Error> {
        let (nuc, meter) = (Arc::clone(&self.0), Arc::clone(meter));
        let (id, name) = (assignment.action_id.clone(), assignment.name.clone());
        let (image, workflow_id) = (assignment.image.clone(), assignment.workflow_id.clone());
        Ok(Box::pin(async move {
            let world = nuc.world.upgrade().ok_or(Error::Stopped)?;
            let machine = plan::name(nuc.index);
            assert!(plan::is_of(&workflow_id, nuc.index), "{machine} was given {workflow_id}");
            world.ledger().begins(&machine, &id, &name);
            let (least, most) = plan::takes(&image);
            meter.say(&name);
            tokio::time::sleep(world.chance.between(least, most)).await;
            if image == plan::DOOMED {
                let source = std::io::Error::other(plan::DOOM);
                return Err(Error::Io { doing: name, source });
            }
            if world.chance.of_hundred(world.chance.faults().actions) {
                let source = std::io::Error::other("a cosmic ray");
                return Err(Error::Io { doing: name, source });
            }
            world.ledger().ends(&id);
            Ok(match image.as_str() {
                "reboot" => Outcome::Leave(Leave::Reboot),
                "kexec" => Outcome::Leave(Leave::Kexec),
                _ => Outcome::Done(format!("{name} is done")),
            })
        }))
    }
}
