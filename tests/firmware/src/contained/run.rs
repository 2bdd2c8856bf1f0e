//! The machine around a contained box: firmware, boot loader and kernel in one program, as
//! `contained-box` runs them.
//!
//! A start attaches the disk, chooses the slot, mounts its root, and runs process 1 in namespaces
//! of its own. When process 1 ends, all of this is undone. `reboot(2)` in a process namespace ends
//! the namespace, and its first process then seems to have died of SIGHUP (restart) or SIGINT
//! (power off), see pid_namespaces(7). Any other end is a kernel panic.

use std::fs;
use std::io::{self, BufRead as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use image::disk::Part;
use rustix::process::{Pid, Signal, kill_process};

use super::loader::{self, Variables};
use super::root::Staging;
use super::{DEVICES, Order, STAGING, boot_volume, devices, disk};

/// Interval between two checks of process 1.
const LOOK: Duration = Duration::from_millis(20);
/// Capabilities that the box does not get, because they act beyond the namespaces: to set the
/// host's clock, and to load modules into its kernel.
const NOT_GIVEN: &str = "-sys_time,-sys_module";

/// Command line arguments of `contained-box`.
#[derive(Debug)]
pub struct Options {
    /// The disk image, which the box writes to.
    pub disk: PathBuf,
    /// A folder for the machine's working files.
    pub folder: PathBuf,
    /// Choice in the boot menu at the first start: `safe` or `factory`.
    pub chosen: Option<String>,
}

/// Reason of the end of process 1.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The box requested a restart.
    Restart,
    /// The box requested power off.
    PowerOff,
    /// The power was cut.
    Cut,
    /// Any other end, with its cause.
    Panic(String),
}

impl End {
    /// Returns the reason of the end, from the status of `unshare`, which is that of process 1.
    pub fn of(status: ExitStatus) -> Self {
        match status.signal().and_then(Signal::from_named_raw) {
            Some(Signal::HUP) => Self::Restart,
            Some(Signal::INT) => Self::PowerOff,
            _ => Self::Panic(status.to_string()),
        }
    }
}

/// Length of the queue of orders; a harness sends one order at a time.
const ORDERS: usize = 4;

/// Runs a box until it switches itself off or its power is cut. Orders come on standard input;
/// standard output is the serial console.
///
/// # Errors
/// A part of the machine fails, or the harness has ended.
pub fn run_box(mut options: Options) -> Result<()> {
    rustix::stdio::dup2_stderr(io::stdout()).context("join standard error to standard output")?;
    let staging = Staging::new(&options.folder.join(STAGING)).context("make the staging folder")?;
    let (say, orders) = sync_channel(ORDERS);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(io::Result::ok) {
            // Orders to a machine that is off are ignored.
            let _ = Order::of(&line).map(|order| say.send(order));
        }
    });
    loop {
        let chosen = options.chosen.take();
        match start(&staging, &options, chosen.as_deref(), &orders)? {
            End::Restart => {}
            End::PowerOff | End::Cut => return Ok(()),
            End::Panic(status) => {
                // Message of the kernel. A real kernel then restarts the machine, as `panic=` on
                // its command line requests; so does this loop.
                println!("Kernel panic - not syncing: Attempted to kill init! {status}");
            }
        }
    }
}

/// Runs one start, up to its end.
fn start(
    staging: &Staging,
    options: &Options,
    chosen: Option<&str>,
    orders: &Receiver<Order>,
) -> Result<End> {
    reset_network().context("reset the network interfaces")?;
    let (image, cut) = (&options.disk, options.folder.join("cut"));
    staging.mount_boot().context("mount the boot volume")?;
    boot_volume::take_out(image, &staging.boot()).context("read the boot volume")?;
    let (slot, command_line) = load(&staging.boot(), chosen).context("load a slot")?;
    let attached = disk::Attached::new(image).context("attach the disk")?;
    let part = if slot == 'b' { Part::RootB } else { Part::RootA };
    let devices = options.folder.join(DEVICES);
    let mounted = staging
        .mount_root(&attached, part, &command_line)
        .and_then(|()| devices::lay_out(&devices, &staging.root()));
    // From now on the disk is detached when its last user ends, even if this process dies.
    attached.release();
    mounted.context("mount the root")?;
    let mut child = process_1(staging)?;
    let end = watch(&mut child, orders, || {
        disk::copy_at_one_moment(image, &cut).context("copy the disk")?;
        write_back(staging, options, &cut)
    });
    if end.is_err() {
        kill(&mut child);
    }
    // A machine that is off must not answer packets.
    reset_network().context("switch the network interfaces off")?;
    staging.unmount_root().context("unmount the root")?;
    attached.wait_released()?;
    let end = end?;
    match end {
        End::Cut => {
            fs::rename(&cut, image).context("take the disk as it was when power was cut")?
        }
        _ => write_back(staging, options, image)?,
    }
    staging.unmount_boot().context("unmount the boot volume")?;
    Ok(end)
}

fn write_back(staging: &Staging, options: &Options, disk: &Path) -> Result<()> {
    let work = tempfile::tempdir_in(&options.folder)?;
    boot_volume::put_back(&staging.boot(), disk, work.path()).context("write the boot volume")
}

/// Acts as the boot loader: returns the slot and the kernel's command line.
fn load(boot: &Path, chosen: Option<&str>) -> io::Result<(char, String)> {
    let path = boot.join("tinbox/grubenv");
    let mut variables = Variables::parse(&fs::read(&path)?)?;
    if let Some(chosen) = chosen {
        variables.set("RESET", chosen);
    }
    let choice = variables.choose();
    if choice.is_anew {
        println!("tinbox: no slot works; beginning anew");
    }
    fs::write(&path, variables.block())?;
    println!("tinbox: starting slot {}", choice.slot);
    let script = fs::read_to_string(boot.join(format!("tinbox/{}/boot.cfg", choice.slot)))?;
    loader::command_line(&script).map(|line| (choice.slot, line.to_owned()))
}

/// Starts process 1 in its namespaces; it is killed when this process ends.
fn process_1(staging: &Staging) -> Result<Child> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--bounding-set", NOT_GIVEN, "unshare"]);
    command.args(["--uts", "--ipc", "--pid", "--mount", "--propagation", "private"]);
    command.args(["--fork", "--kill-child"]);
    command.arg(std::env::current_exe()?).arg("inside").arg(staging.folder());
    command.stdin(Stdio::null()).spawn().context("start unshare")
}

/// Waits for the end of process 1. `copy` copies the disk before the power is cut.
fn watch(
    child: &mut Child,
    orders: &Receiver<Order>,
    copy: impl Fn() -> Result<()>,
) -> Result<End> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::of(status));
        }
        match orders.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("the harness is gone"),
            Ok(Order::Cut) => {
                copy()?;
                kill(child);
                return Ok(End::Cut);
            }
        }
    }
}

/// Host process ID of a box's process 1: the only child of `unshare`.
fn process_1_of(unshare: u32) -> Option<Pid> {
    let children = format!("/proc/{unshare}/task/{unshare}/children");
    let children = fs::read_to_string(children).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}

/// Kills all processes of the box: its namespace ends with process 1.
fn kill(child: &mut Child) {
    match process_1_of(child.id()) {
        // `unshare` then ends by itself, after all processes of the namespace.
        Some(init) => drop(kill_process(init, Signal::KILL)),
        None => drop(child.kill()),
    }
    let _ = child.wait();
}

/// Removes the network configuration of an earlier start: a starting machine has only its NICs, and
/// these are down.
fn reset_network() -> io::Result<()> {
    let ip = |line: &[&str]| crate::run(Command::new("ip").args(line));
    for line in ip(&["-oneline", "link"])?.lines() {
        let name = line.split(": ").nth(1).and_then(|name| name.split('@').next());
        let name = name.ok_or(io::ErrorKind::InvalidData)?;
        if name.starts_with("eth") || name == "lo" {
            ip(&["link", "set", name, "down"])?;
            ip(&["address", "flush", "dev", name])?;
        } else {
            // The peer of a veth pair is removed together with it.
            let _ = ip(&["link", "delete", name]);
        }
    }
    Ok(())
}
