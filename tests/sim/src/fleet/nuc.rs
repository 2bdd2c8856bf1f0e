//! A simulated machine. When it has power, it boots from the network if the box has a workflow for
//! it. Then it runs the loop of the real agent with simulated actions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use agent::Error;
use agent::actions::{Leave, Limits, Outcome};
use agent::runner::{Host, Runner, RunningAction};
use agent_rpc::Assignment;
use agent_rpc::client::Client;
use imaging::Meter;
use netboot::{AgentBoot, Boot, Plans};
use tokio::task::AbortHandle;

use super::disk::{BLOCKS, Disk, Opened};
use super::incident::Actor;
use super::ledger::By;
use super::link;
use super::plan;
use super::world::World;

/// Range of the boot time of firmware and kernel, in seconds.
const BOOT: (u64, u64) = (5, 40);
/// Interval of firmware's requests to a silent box, and their number before the firmware boots the
/// disk.
const ASKS: (Duration, usize) = (Duration::from_secs(10), 6);
/// Maximum duration of an accidental power cut.
const DARK: Duration = Duration::from_secs(60);
/// Parts of an action, one for each block of the image.
const PARTS: u32 = BLOCKS as u32;
/// Time after the end of a workflow in which a power command may still arrive: the box may have
/// sent the command before the end.
const LATELY: Duration = Duration::from_secs(120);

/// A simulated machine with its disk, its power state and its agent.
pub struct Nuc {
    /// Number of the machine in the plan.
    pub index: usize,
    /// Disk, whose contents survive power cuts.
    pub disk: Arc<Disk>,
    world: Weak<World>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_on: bool,
    pxe_next: bool,
    /// Task of the running machine, aborted when it loses power.
    doing: Option<AbortHandle>,
    story: &'static str,
    had_mishap: bool,
    /// Number of power-ons, power cycles and resets that the BMC of this machine carried out. A
    /// power-on of a running machine does not count.
    switched_on: usize,
    /// Number of agent starts on this machine.
    agents: usize,
    /// ID of the last action that succeeded and leaves the agent's system: `reboot` or `kexec`.
    leaving: String,
}

impl Nuc {
    /// Returns a machine that is off.
    pub fn new(index: usize, world: Weak<World>) -> Self {
        Self { index, disk: Arc::default(), world, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, story: &'static str) {
        self.state().story = story;
    }

    /// Current activity as text, for messages of failed tests.
    pub fn story(&self) -> &'static str {
        self.state().story
    }

    /// True while the machine has power.
    pub fn is_on(&self) -> bool {
        self.state().is_on
    }

    /// Sets the override of the next boot: network (`pxe` is true), or no override.
    pub fn boot_next(&self, pxe: bool) {
        self.state().pxe_next = pxe;
    }

    /// True when the next boot is a network boot by override.
    pub fn boots_pxe_next(&self) -> bool {
        self.state().pxe_next
    }

    /// True if the workflow of this machine is open, or ended so recently that the box may have
    /// sent a power command before the end.
    pub fn is_wanted(&self) -> bool {
        let Some(world) = self.world.upgrade() else { return false };
        world.workflow(self.index).is_some_and(|workflow| {
            let ended = world.ledger().ended(&workflow.metadata.name);
            workflow.status.ended.is_none() || ended.is_some_and(|at| at.elapsed() < LATELY)
        })
    }

    /// Number of power-ons, power cycles and resets that the BMC of this machine carried out. A
    /// power-on of a running machine does not count.
    pub fn switched_on(&self) -> usize {
        self.state().switched_on
    }

    /// Executes a command of the BMC: power on, or with `anew` a power cycle.
    pub fn is_switched(self: &Arc<Self>, anew: bool) {
        if anew || !self.is_on() {
            self.state().switched_on += 1;
        }
        if anew {
            self.reset();
        } else {
            self.switch_on();
        }
    }

    /// Switches the power on; the machine boots.
    pub fn switch_on(self: &Arc<Self>) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_on, true) {
            state.doing = Some(tokio::spawn(Arc::clone(self).boots()).abort_handle());
        }
    }

    /// Switches the power off; the machine's task stops.
    pub fn switch_off(&self) {
        let mut state = self.state();
        state.is_on = false;
        state.story = "is off";
        if let Some(doing) = state.doing.take() {
            doing.abort();
        }
    }

    /// Switches the power off and on.
    pub fn reset(self: &Arc<Self>) {
        self.switch_off();
        self.switch_on();
    }

    /// Schedules an accidental power cut and a hang of this machine, each with the probability in
    /// the run's faults.
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
                nuc.has_power_cut(dark, comes_back);
            });
        }
        if falls_silent {
            let (at, nuc) = (at(&world), Arc::clone(self));
            tokio::spawn(async move {
                tokio::time::sleep(at).await;
                nuc.hang();
            });
        }
    }

    /// Cuts the power of a running machine. With `comes_back`, the power returns after `dark`;
    /// otherwise the machine stays off until its BMC switches it on.
    pub fn has_power_cut(self: &Arc<Self>, dark: Duration, comes_back: bool) {
        if !self.is_on() {
            return;
        }
        if comes_back {
            return self.lose_power(dark);
        }
        self.mishap();
        self.switch_off();
    }

    /// Cuts the power of a running machine for `dark`.
    pub fn lose_power(self: &Arc<Self>, dark: Duration) {
        if self.is_on() {
            self.mishap();
            self.switch_off();
            let nuc = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(dark).await;
                nuc.switch_on();
            });
        }
    }

    /// Stops the current task; the power stays on.
    pub fn hang(&self) {
        let doing = self.state().doing.take();
        if let Some(doing) = doing {
            self.mishap();
            self.tell("hangs");
            doing.abort();
        }
    }

    /// True while the machine boots or runs its agent.
    pub fn is_at_work(&self) -> bool {
        matches!(self.story(), "boots" | "runs its agent")
    }

    /// True after an accidental power cut or hang.
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
            world.step(Actor::Machine(self.index), "a machine asks").await;
            if let Some(views) = world.views() {
                let plan = Plans::by_mac(views.as_ref(), plan::mac(self.index));
                return match plan.map(|plan| plan.boot) {
                    Some(Boot::Agent(boot)) => self.runs_agent(&world, &boot).await,
                    _ => self.boots_disk(&world, "boots its disk"),
                };
            }
            tokio::time::sleep(ASKS.0).await;
        }
        self.boots_disk(&world, "boots its disk, for nobody answered");
    }

    fn boots_disk(&self, world: &World, story: &'static str) {
        if self.disk.is_bootable() && !self.disk.is_whole() {
            let machine = plan::name(self.index);
            world.ledger().never(format!("{machine} boots half an image"));
        }
        self.tell(story);
    }

    async fn runs_agent(self: &Arc<Self>, world: &Arc<World>, boot: &AgentBoot) {
        self.tell("runs its agent");
        self.state().agents += 1;
        world.step(Actor::Machine(self.index), "an agent starts").await;
        let boot_id = format!("{:?}", world.chance.upto(Duration::MAX / 2));
        let token = boot.args.iter().find_map(|it| it.strip_prefix("tinbox.token="));
        let token = token.unwrap_or_default().to_owned().into();
        let wire = Arc::clone(world);
        let client = Client::connect_with(
            move || link::connect(&wire),
            "box:42113",
            &boot.worker_id,
            Some(&token),
        );
        let runner = Runner {
            client: client.expect("the address is one, and the token a header's").in_boot(&boot_id),
            host: Pretending(Arc::clone(self)),
            limits: Limits::MACHINE,
            attributes: agent_rpc::Attributes::default(),
            inventory: agent_rpc::Inventory::default(),
            boot_id,
        };
        runner.run().await;
    }
}

/// Simulated host, for the agent's loop.
struct Pretending(Arc<Nuc>);

impl Host for Pretending {
    fn may_leave(&self) -> bool {
        true
    }

    fn leave(&self, how: Leave) -> Result<(), Error> {
        let Some(world) = self.0.world.upgrade() else { return Err(Error::Stopped) };
        if !world.survives(Actor::Machine(self.0.index), "an agent leaves") {
            return Err(Error::Stopped);
        }
        let action = self.0.state().leaving.clone();
        world.ledger().leaves(&plan::name(self.0.index), &action);
        match how {
            // No simulated agent waits for requests to power off.
            Leave::PowerOff => return Err(Error::Stopped),
            Leave::Reboot => self.0.reset(),
            // The installed system continues without an agent.
            Leave::Kexec => {
                self.0.boots_disk(&world, "runs what was installed");
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
    ) -> Result<RunningAction, Error> {
        let (nuc, meter) = (Arc::clone(&self.0), Arc::clone(meter));
        let assignment = assignment.clone();
        Ok(Box::pin(async move { nuc.acts(&assignment, &meter).await }))
    }
}

impl Nuc {
    async fn acts<'a>(&self, assignment: &'a Assignment, meter: &Meter) -> Result<Outcome, Error> {
        let world = self.world.upgrade().ok_or(Error::Stopped)?;
        let (id, name, image) = (&assignment.action_id, &assignment.name, &assignment.image);
        let by = By {
            machine: plan::name(self.index),
            agent: plan::mac(self.index).to_string(),
            life: self.state().agents,
        };
        world.ledger().begins(&by, id, name);
        let me = Actor::Machine(self.index);
        world.step(me, "an action begins").await;
        meter.say(name);
        let leaves = matches!(image.as_str(), "reboot" | "kexec");
        let disk = (!leaves).then(|| self.disk.open(id)).transpose().map_err(|writer| {
            world.ledger().never(format!("{writer} and {id} both write {}", by.machine));
            Error::Stopped
        })?;
        let (least, most) = plan::takes(image);
        let whole = world.chance.between(least, most);
        for block in (0..BLOCKS).rev() {
            self.touch(disk.as_ref(), image, block);
            if block == BLOCKS / 2 {
                world.step(me, "an action is half done").await;
            }
            tokio::time::sleep(whole / PARTS).await;
        }
        let failed = |why: &str| {
            let source = std::io::Error::other(why.to_owned());
            Err(Error::Io { doing: name.clone(), source })
        };
        if image == plan::DOOMED {
            let says = |it: &'a String| it.strip_prefix(plan::SAYS)?.strip_prefix('=');
            let says = assignment.environment.iter().find_map(says);
            return failed(says.unwrap_or(plan::DOOM));
        }
        if world.chance.of_hundred(world.chance.faults().actions) {
            return failed("a cosmic ray");
        }
        world.ledger().ends(id);
        if leaves {
            self.state().leaving.clone_from(id);
        }
        world.step(me, "an action ends").await;
        Ok(match image.as_str() {
            "reboot" => Outcome::Leave(Leave::Reboot),
            "kexec" => Outcome::Leave(Leave::Kexec),
            _ => Outcome::Done(format!("{name} is done")),
        })
    }

    /// Changes a block of the disk as the action `image` does. An action `writefile` on an
    /// incomplete image breaks a rule.
    fn touch(&self, disk: Option<&Opened>, image: &str, block: usize) {
        let (Some(disk), Some(world)) = (disk, self.world.upgrade()) else { return };
        match image {
            "image2disk" => {
                if block == BLOCKS - 1 {
                    disk.clear_head();
                }
                disk.write(block);
            }
            "disk-wipe" => disk.erase(),
            "writefile" if !self.disk.is_whole() => {
                let machine = plan::name(self.index);
                world.ledger().never(format!("{machine} has a file written to half an image"));
            }
            _ => {}
        }
    }
}
