//! `kexec`: starts a kernel of the partition BLOCK_DEVICE (FS_TYPE): KERNEL_PATH with INITRD_PATH
//! and CMD_LINE, or else the first menu entry of GRUBCFG_PATH, as upstream.

use std::ffi::CString;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use imaging::Meter;
use imaging::mount::{Mounted, Purpose};
use imaging::stream::blocking;

use super::environment::Environment;
use super::grub;
use crate::{Error, sys};

/// Maximum size of a grub.cfg in bytes; the rest is ignored.
const GRUB_BYTES: u64 = 1 << 20;

/// Partition, and the kernel of the partition to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kexec {
    device: PathBuf,
    fs_type: String,
    source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Named(Kernel),
    Grub(String),
}

/// Paths of a kernel and its initramfs within the file system, and the kernel command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Kernel {
    pub(super) kernel: String,
    pub(super) initrd: Option<String>,
    pub(super) command_line: String,
}

impl Kexec {
    pub(super) fn parse(environment: &Environment<'_>) -> Result<Self, Error> {
        let source = match environment.optional("KERNEL_PATH") {
            Some(kernel) => Source::Named(Kernel {
                kernel: kernel.to_owned(),
                initrd: environment.optional("INITRD_PATH").map(str::to_owned),
                command_line: environment.optional("CMD_LINE").unwrap_or_default().to_owned(),
            }),
            None => {
                let path = environment.optional("GRUBCFG_PATH").unwrap_or("boot/grub/grub.cfg");
                Source::Grub(path.to_owned())
            }
        };
        Ok(Self {
            device: environment.device("BLOCK_DEVICE")?,
            fs_type: environment.required("FS_TYPE")?.to_owned(),
            source,
        })
    }

    pub(super) async fn load(self, meter: &Arc<Meter>) -> Result<(), Error> {
        meter.say(format!("loading a kernel from {}", self.device.display()));
        blocking("loading the kernel", move || Ok(self.load_now())).await?
    }

    fn load_now(&self) -> Result<(), Error> {
        let mounted = Mounted::mount(&self.device, &self.fs_type, Purpose::Read)?;
        let found = match &self.source {
            Source::Named(kernel) => kernel.clone(),
            Source::Grub(path) => read_grub(&mounted, path)?,
        };
        let kernel = mounted.open(&found.kernel)?;
        let initrd = found.initrd.as_deref().map(|path| mounted.open(path)).transpose()?;
        let command_line = CString::new(found.command_line).map_err(|_| Error::BadSetting {
            action: "kexec",
            name: "CMD_LINE",
            reason: "it contains a NUL character".to_owned(),
        })?;
        sys::kexec_load(&kernel, initrd.as_ref(), &command_line)
            .map_err(Error::io(format!("load the kernel {}", found.kernel)))?;
        drop((kernel, initrd));
        Ok(mounted.unmount()?)
    }
}

fn read_grub(mounted: &Mounted, path: &str) -> Result<Kernel, Error> {
    let mut text = String::new();
    mounted
        .open(path)?
        .take(GRUB_BYTES)
        .read_to_string(&mut text)
        .map_err(Error::io(format!("read {path}")))?;
    grub::first_entry(&text).ok_or_else(|| Error::BadSetting {
        action: "kexec",
        name: "GRUBCFG_PATH",
        reason: format!("{path} has no menu entry with a linux line"),
    })
}
