//! A stock OCI registry with images for machines, beside the box: at an address that is none of the
//! box's, in its namespace, which the machines reach through the box alone.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use qemu::{BoxProcess, BoxProgram, poll};
use stdx::testing::PATIENCE;

use crate::Lab;

/// Where it listens.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
const PORT: u16 = 5000;

/// Where a busybox may be that needs no library.
const BUSYBOX: [&str; 2] = ["/usr/bin/busybox", "/bin/busybox"];

/// A running registry.
pub struct ImageRegistry {
    process: BoxProcess,
    program: PathBuf,
}

impl ImageRegistry {
    /// As an image's reference names it, and `plain_registries` of the box.
    pub const HOST: &str = "10.99.0.1:5000";

    /// Start it and push an artifact of the lab, `images/<file>`, as `<HOST>/<name>`.
    ///
    /// # Errors
    /// What could not be built, started or pushed.
    pub fn start(lab: &Lab, file: &str, name: &str) -> anyhow::Result<Self> {
        let registry = Self::empty(lab)?;
        let image = lab.artifacts().root().join("images").join(file);
        registry.push(lab, "push", &image, name)?;
        Ok(registry)
    }

    /// Start it with a container's image around busybox, as `<HOST>/<name>`.
    ///
    /// # Errors
    /// The same.
    pub fn with_container(lab: &Lab, name: &str) -> anyhow::Result<Self> {
        let registry = Self::empty(lab)?;
        let busybox = BUSYBOX.iter().map(Path::new).find(|path| path.exists());
        let busybox = busybox.context("busybox is missing\nhint: make setup")?;
        registry.push(lab, "image", busybox, name)?;
        Ok(registry)
    }

    fn empty(lab: &Lab) -> anyhow::Result<Self> {
        let program = peers::built("registry", &[])?.remove(0);
        let mut address = lab.rack.box_command("ip");
        address.args(["address", "add", &ADDRESS.to_string(), "dev", "lo"]);
        ensure!(address.status()?.success(), "the registry gets no address");
        let storage = lab.rack.work_dir().join("registry");
        let registry = BoxProgram::new(&program, lab.rack.dir().join("registry.log")).args([
            "serve".as_ref(),
            Self::HOST.as_ref(),
            storage.as_os_str(),
        ]);
        let process = lab.rack.spawn_box(registry)?;
        let connects = || TcpStream::connect((ADDRESS, PORT)).ok();
        let answers = || lab.rack.in_box(connects).ok().flatten();
        poll("the registry to answer", PATIENCE, answers)?;
        Ok(Self { process, program })
    }

    fn push(&self, lab: &Lab, how: &str, file: &Path, name: &str) -> anyhow::Result<()> {
        let mut push = lab.rack.box_command(&self.program);
        push.arg(how).arg(file).arg(format!("{}/{name}", Self::HOST));
        let output = push.output().context("cannot push")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    /// The requests it got, one a line.
    ///
    /// # Errors
    /// Its log cannot be read.
    pub fn log(&self) -> anyhow::Result<String> {
        fs::read_to_string(self.process.log()).context("cannot read the registry's log")
    }
}
