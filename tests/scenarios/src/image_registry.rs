//! Image servers beside the box: a host that machines reach only through the box, and a stock OCI
//! registry on it.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use qemu::{BoxProcess, BoxProgram, Host, Segment, poll};
use stdx::testing::PATIENCE;

use crate::Lab;

/// Address of the host that [`image_server`] adds.
pub const IMAGE_SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
const PORT: u16 = 5000;

/// Paths of a static busybox.
const BUSYBOX: [&str; 2] = ["/usr/bin/busybox", "/bin/busybox"];

/// Adds a host to the rack, in a network of its own. The box has an address in that network, the
/// machines have none.
///
/// # Errors
/// It cannot be added.
pub fn image_server(lab: &Lab) -> anyhow::Result<Host> {
    let mut address = lab.rack.box_command("ip");
    address.args(["address", "add", "10.99.0.2/24", "dev", "eth0"]);
    ensure!(address.status()?.success(), "the box gets no address in the server's network");
    Ok(lab.rack.add_host("images", &[(Segment::Near, IMAGE_SERVER)])?)
}

/// A running registry on [`image_server`]'s host.
pub struct ImageRegistry {
    process: BoxProcess,
    host: Host,
    program: PathBuf,
}

impl ImageRegistry {
    /// Host and port in an image reference, and in `plain_registries` of the box.
    pub const HOST: &str = "10.99.0.1:5000";

    /// Starts a registry and pushes an artifact of the lab, `images/<file>`, as `<HOST>/<name>`.
    ///
    /// # Errors
    /// The part that could not be built, started or pushed.
    pub fn start(lab: &Lab, file: &str, name: &str) -> anyhow::Result<Self> {
        let registry = Self::empty(lab)?;
        let image = lab.artifacts().root().join("images").join(file);
        registry.push("push", &image, name)?;
        Ok(registry)
    }

    /// Starts a registry with a container image of busybox, as `<HOST>/<name>`.
    ///
    /// # Errors
    /// As [`ImageRegistry::start`].
    pub fn with_container(lab: &Lab, name: &str) -> anyhow::Result<Self> {
        let registry = Self::empty(lab)?;
        let busybox = BUSYBOX.iter().map(Path::new).find(|path| path.exists());
        let busybox = busybox.context("busybox is missing\nhint: make setup")?;
        registry.push("image", busybox, name)?;
        Ok(registry)
    }

    fn empty(lab: &Lab) -> anyhow::Result<Self> {
        let program = peers::built("registry", &[])?.remove(0);
        let host = image_server(lab)?;
        let storage = lab.rack.work_dir().join("registry");
        let registry = BoxProgram::new(&program, lab.rack.dir().join("registry.log")).args([
            "serve".as_ref(),
            Self::HOST.as_ref(),
            storage.as_os_str(),
        ]);
        let process = host.spawn(registry)?;
        let connects = || TcpStream::connect((IMAGE_SERVER, PORT)).ok();
        let answers = || host.enter(connects).ok().flatten();
        poll("the registry to answer", PATIENCE, answers)?;
        Ok(Self { process, host, program })
    }

    fn push(&self, how: &str, file: &Path, name: &str) -> anyhow::Result<()> {
        let mut push = self.host.command(&self.program);
        push.arg(how).arg(file).arg(format!("{}/{name}", Self::HOST));
        let output = push.output().context("cannot push")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    /// Requests that the registry received, one per line.
    ///
    /// # Errors
    /// Its log cannot be read.
    pub fn log(&self) -> anyhow::Result<String> {
        fs::read_to_string(self.process.log()).context("cannot read the registry's log")
    }
}
