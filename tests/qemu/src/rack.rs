//! The rack: network, BMCs and NUCs, built together and removed together.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use stdx::MacAddr;

use crate::bmc::{self, Bmc};
use crate::board::Cable;
use crate::host::complete_checksums;
use crate::wake::WakeListener;
use crate::{
    BmcAccess, BmcKind, Board, BoxProcess, BoxProgram, Capture, Direction, Drive, Error, Host, Nic,
    Nuc, NucConfig, RackConfig, Segment, chassis, children, impairment, leftovers, machine, nuc,
    preflight,
};

/// The box's address on the rack's network, a /24.
pub const BOX_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Name of a file that marks an output folder as a rack's, so that the next run may empty it.
const MARKER: &str = ".rack";

/// A running rack. Dropping it removes everything; if the harness is killed, its `rack-warden`
/// process removes the rack.
#[derive(Debug)]
pub struct Rack {
    name: String,
    dir: PathBuf,
    keep: bool,
    succeeded: bool,
    warden: Option<Child>,
    nucs: Vec<Arc<Nuc>>,
    bmcs: Vec<Bmc>,
    wake: Option<WakeListener>,
    capture: Option<Capture>,
}

impl Rack {
    /// Builds the rack: all NUCs off, their BMCs listening, the box's namespace empty.
    ///
    /// Racks of harnesses that died are removed first.
    ///
    /// # Errors
    /// [`Error::Preflight`] when the machine lacks a requirement; otherwise the part that could not
    /// be built. All parts built before are removed again.
    pub fn build(config: RackConfig) -> Result<Self, Error> {
        preflight()?;
        config.check()?;
        leftovers::sweep()?;
        let dir = fresh_dir(&config.dir)?;
        let mut rack = Self {
            name: leftovers::claim()?,
            dir,
            keep: config.keep,
            succeeded: false,
            warden: None,
            nucs: Vec::new(),
            bmcs: Vec::new(),
            wake: None,
            capture: None,
        };
        rack.start_warden()?;
        rack.wire(&config.nucs)?;
        if let Some(filter) = &config.capture {
            rack.capture = Some(rack.start_capture(filter, "rack.pcap")?);
        }
        rack.mount(config.nucs, config.bmc)?;
        Ok(rack)
    }

    /// The rack's unique name, which is the prefix of its namespaces.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The output folder: consoles, BMC logs, the power log, captures, screenshots.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder of disks and sockets, removed with the rack.
    pub fn work_dir(&self) -> PathBuf {
        leftovers::work_dir(&self.name)
    }

    /// NUC `number`, from 1.
    ///
    /// # Panics
    /// The rack has no such NUC: the test is wrong.
    pub fn nuc(&self, number: usize) -> &Nuc {
        let found = number.checked_sub(1).and_then(|index| self.nucs.get(index));
        found.unwrap_or_else(|| panic!("this rack has no NUC {number}"))
    }

    /// All NUCs; shared, so that a scenario can watch several from threads of its own.
    pub fn nucs(&self) -> &[Arc<Nuc>] {
        &self.nucs
    }

    /// Capture of the bridge; `None` when the configuration has no capture filter.
    pub fn capture(&self) -> Option<&Capture> {
        self.capture.as_ref()
    }

    /// Starts another capture of the box's segment, into the file `file` of the output folder.
    ///
    /// # Errors
    /// tcpdump rejects `filter`.
    pub fn start_capture(&self, filter: &str, file: &str) -> Result<Capture, Error> {
        self.start_capture_on(Segment::Near, filter, file)
    }

    /// Starts another capture of `segment`, into the file `file` of the output folder.
    ///
    /// # Errors
    /// As [`Rack::start_capture`].
    pub fn start_capture_on(
        &self,
        segment: Segment,
        filter: &str,
        file: &str,
    ) -> Result<Capture, Error> {
        let rack = leftovers::rack_namespace(&self.name);
        Capture::start(&rack, segment.bridge(), filter, self.dir.join(file))
    }

    /// A command that runs `program` inside the box's namespace.
    pub fn box_command(&self, program: impl AsRef<OsStr>) -> Command {
        leftovers::box_namespace(&self.name).command(program)
    }

    /// Starts a program inside the box's namespace. The program is killed when the harness ends.
    ///
    /// # Errors
    /// The program does not start.
    pub fn spawn_box(&self, program: BoxProgram) -> Result<BoxProcess, Error> {
        BoxProcess::start(program, leftovers::box_namespace(&self.name))
    }

    /// Runs `work` on a thread inside the box's namespace: network connections that `work` opens
    /// start from the box.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn in_box<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        leftovers::box_namespace(&self.name).enter(work)
    }

    /// Runs ipmitool in the box's namespace against the BMC of NUC `number` (lanplus, cipher suite
    /// 3); returns the output of ipmitool.
    ///
    /// # Errors
    /// [`Error::Command`] with ipmitool's error output.
    pub fn ipmitool(&self, number: usize, arguments: &[&str]) -> Result<String, Error> {
        let BmcAccess { address, user, password, .. } = self.nuc(number).bmc();
        let mut command = self.box_command("ipmitool");
        // -C 3: without a given suite, ipmitool requests the list of cipher suites, which ipmi_sim
        // never answers, and waits ten seconds.
        command.args(["-I", "lanplus", "-C", "3", "-E", "-U", user, "-H", &address.to_string()]);
        // By default ipmitool sends a request again after one second, and the BMC would execute the
        // request twice.
        command.args(["-N", "30"]);
        command.args(arguments).env("IPMI_PASSWORD", password.expose());
        children::run(command, "")
    }

    /// Adds a machine to the network, with a cable for each of `legs`: a segment, and the machine's
    /// address there with prefix length 24. `name` has at most ten lowercase letters and digits.
    ///
    /// # Errors
    /// The name is invalid or in use.
    pub fn add_host(&self, name: &str, legs: &[(Segment, Ipv4Addr)]) -> Result<Host, Error> {
        Host::build(&self.name, name, legs)
    }

    /// Adds a board to the network, which boots from `drive`, with a NIC on `segment` that has the
    /// hardware address `mac`. Its files go to the output folder.
    ///
    /// # Errors
    /// The rack has a board already, or QEMU does not start.
    pub fn add_board(
        &self,
        drive: &Drive<'_>,
        card: (Segment, Nic, MacAddr),
    ) -> Result<Board, Error> {
        self.add_board_with(drive, &[card])
    }

    /// Adds a board with several NICs.
    ///
    /// # Errors
    /// As [`Rack::add_board`].
    pub fn add_board_with(
        &self,
        drive: &Drive<'_>,
        cards: &[(Segment, Nic, MacAddr)],
    ) -> Result<Board, Error> {
        let cables = cards.iter().enumerate();
        let cables = cables.map(|(at, card)| self.cable(&format!("tapboard{at}"), *card));
        Board::start_with(&self.dir, drive, cables.collect::<Result<_, _>>()?)
    }

    /// Adds a USB NIC to a running board, and its cable to the rack.
    ///
    /// # Errors
    /// The error of `ip` or QEMU; a board whose disk is not on USB accepts no USB NIC.
    pub fn put_in(
        &self,
        board: &mut Board,
        (segment, mac): (Segment, MacAddr),
    ) -> Result<(), Error> {
        // QEMU has only one USB NIC model.
        board.put_in(self.cable("taplate", (segment, Nic::E1000, mac))?)
    }

    fn cable(&self, tap: &str, card: (Segment, Nic, MacAddr)) -> Result<Cable, Error> {
        Cable::laid(leftovers::rack_namespace(&self.name), tap, card)
    }

    /// Unplugs the box's network cable.
    ///
    /// # Errors
    /// The error of `ip`.
    pub fn unplug_box(&self) -> Result<(), Error> {
        leftovers::rack_namespace(&self.name).ip("link set vbox down\n")
    }

    /// Plugs the box's network cable in again.
    ///
    /// # Errors
    /// The error of `ip`.
    pub fn plug_box(&self) -> Result<(), Error> {
        leftovers::rack_namespace(&self.name).ip("link set vbox up\n")
    }

    /// Drops, at random, `per_mille` of 1000 packets on a NUC's cable; 0 ends the loss.
    ///
    /// # Errors
    /// `per_mille` is more than 1000, or nftables refuses the rule.
    pub fn drop_packets(
        &self,
        number: usize,
        direction: Direction,
        per_mille: u16,
    ) -> Result<(), Error> {
        let rack = leftovers::rack_namespace(&self.name);
        impairment::drop_packets(&rack, self.nuc(number).number(), direction, per_mille)
    }

    /// Removes the rack and, unless `keep` was configured, the output folder. Dropping a rack
    /// without this call counts as a failure: all files are kept, with a screenshot of every
    /// running NUC.
    pub fn succeed(mut self) {
        self.succeeded = true;
    }

    fn start_warden(&mut self) -> Result<(), Error> {
        let program =
            programs::find("rack-warden").map_err(|missing| Error::Config(missing.to_string()))?;
        let mut command = Command::new(program);
        // Own process group: an interrupt from the terminal must not reach the warden.
        command.arg(&self.name).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        self.warden = Some(command.spawn().map_err(Error::io("start rack-warden"))?);
        Ok(())
    }

    /// Creates the network: the box's eth0, the rack's bridge, a port per NUC, the BMCs' addresses.
    fn wire(&self, nucs: &[NucConfig]) -> Result<(), Error> {
        let rack = leftovers::rack_namespace(&self.name);
        let the_box = leftovers::box_namespace(&self.name);
        rack.create()?;
        the_box.create()?;
        let mut batch = format!(
            "link set lo up\n\
             link add {near} type bridge stp_state 0 forward_delay 0\n\
             link set {near} up\n\
             link add {far} type bridge stp_state 0 forward_delay 0\n\
             link set {far} up\n\
             link add vbox type veth peer name eth0 netns {}\n\
             link set vbox master {near} up\n",
            the_box.name(),
            near = Segment::Near.bridge(),
            far = Segment::Far.bridge(),
        );
        for (number, nuc) in (1u8..).zip(nucs) {
            let tap = machine::tap(number);
            let address = bmc::address(number);
            batch += &format!(
                "tuntap add dev {tap} mode tap\n\
                 link set {tap} master {} up\n\
                 address add {address}/24 dev {}\n",
                nuc.segment.bridge(),
                Segment::Near.bridge(),
            );
        }
        rack.ip(&batch)?;
        the_box.ip(&format!(
            "link set lo up\n\
             address add {BOX_ADDRESS}/24 dev eth0\n\
             address add fd77::1/64 dev eth0 nodad\n\
             link set eth0 up\n"
        ))?;
        complete_checksums(&the_box, "eth0")
    }

    /// Creates the NUCs and starts their BMCs.
    fn mount(&mut self, configs: Vec<NucConfig>, kind: BmcKind) -> Result<(), Error> {
        let work = self.work_dir();
        let program =
            programs::find("rack-chassis").map_err(|missing| Error::Config(missing.to_string()))?;
        let link = bmc::chassis_program(&work);
        std::os::unix::fs::symlink(program, &link).map_err(Error::path("link", &link))?;
        let socket = bmc::chassis_socket(&work);
        let listener = UnixListener::bind(&socket).map_err(Error::path("listen on", &socket))?;
        let path = self.dir.join("power.log");
        let log = File::create(&path).map_err(Error::path("create", &path))?;
        let password = bmc::password();
        let rack = leftovers::rack_namespace(&self.name);
        for (number, config) in (1u8..).zip(configs) {
            let access = BmcAccess::new(kind, number, &password);
            let log = log.try_clone().map_err(Error::path("clone", &path))?;
            let nuc =
                Nuc::create(number, config, &work, &self.dir, rack.clone(), access.clone(), log)?;
            self.bmcs.push(Bmc::start(&nuc, &rack, &work, &self.dir)?);
            self.nucs.push(nuc);
        }
        self.wake = WakeListener::start(kind, &rack, &self.nucs)?;
        chassis::serve(listener, self.nucs.clone());
        Ok(())
    }

    fn take_screenshots(&self) {
        for nuc in self.nucs.iter().filter(|nuc| nuc.is_on()) {
            let path = nuc::screenshot_path(&self.dir, nuc.number());
            if let Err(error) = nuc.screenshot(&path) {
                eprintln!("rack {}: {}", self.name, stdx::chain(&error));
            }
        }
    }

    fn dismiss_warden(&mut self) {
        let Some(mut warden) = self.warden.take() else { return };
        if let Some(mut stdin) = warden.stdin.take() {
            // A warden that has ended needs no message.
            let _ = stdin.write_all(b"done");
        }
        let _ = warden.wait();
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        if !self.succeeded {
            self.take_screenshots();
        }
        // BMCs end first: a NUC must not be powered on while the rack is removed.
        self.bmcs.clear();
        self.wake = None;
        for nuc in &self.nucs {
            nuc.retire();
        }
        // This connection wakes the chassis thread, which finds the NUCs retired and ends.
        drop(UnixStream::connect(bmc::chassis_socket(&self.work_dir())));
        self.capture = None;
        match leftovers::remove(&self.name) {
            Ok(()) => self.dismiss_warden(),
            // The warden tries again after this process has ended.
            Err(error) => eprintln!("rack {}: {}", self.name, stdx::chain(&error)),
        }
        if self.succeeded && !self.keep {
            let _ = fs::remove_dir_all(&self.dir);
        } else if !self.succeeded {
            eprintln!("rack {}: logs are in {}", self.name, self.dir.display());
        }
    }
}

/// Returns the output folder, empty except for [`MARKER`]. A folder that contains files but no
/// marker of an earlier rack is refused.
fn fresh_dir(dir: &Path) -> Result<PathBuf, Error> {
    let marker = dir.join(MARKER);
    if marker.exists() {
        fs::remove_dir_all(dir).map_err(Error::path("empty", dir))?;
    }
    fs::create_dir_all(dir).map_err(Error::path("create", dir))?;
    let mut entries = fs::read_dir(dir).map_err(Error::path("read", dir))?;
    if entries.next().is_some() {
        let what = format!("{} holds files that no rack wrote", dir.display());
        return Err(Error::Config(what));
    }
    File::create(&marker).map_err(Error::path("create", &marker))?;
    fs::canonicalize(dir).map_err(Error::path("find", dir))
}
