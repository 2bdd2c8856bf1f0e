//! `grub2disk`: installs GRUB on the disk GRUB_INSTALL_PATH, with its files and its configuration
//! on the partition GRUB_DISK, which has the file system FS_TYPE.
//!
//! The action uses the installed system's own programs if the system has them for this firmware,
//! else the programs of the tools image, which write no grub.cfg. The default is a boot by BIOS, as
//! upstream. GRUB_EFI_PARTITION, which upstream lacks, selects a boot by UEFI. GRUB is then
//! installed at the removable-media path (`--removable`), without an NVRAM boot entry.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use imaging::chroot::ProgramRoot;
use imaging::mount::{Mounted, Purpose};
use imaging::program::{ENVIRONMENT, Program};
use imaging::stream::blocking;
use imaging::sys::confine;
use imaging::tools::{Run, Tools};
use imaging::{Meter, disk, preserve, select};

use super::environment::Environment;
use crate::Error;

/// Names of GRUB's platforms, also of their folders below `usr/lib/grub`.
const BIOS: &str = "i386-pc";
const EFI: &str = "x86_64-efi";
/// Prefixes of GRUB's programs in distributions (`grub-install`, `grub2-install`), also names of
/// the folder in `/boot`.
const NAMES: [&str; 2] = ["grub", "grub2"];

/// Boot loader to install, and its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grub2Disk {
    disk: PathBuf,
    partition: PathBuf,
    fs_type: String,
    efi: Option<PathBuf>,
}

impl Grub2Disk {
    pub(super) fn parse(environment: &Environment<'_>) -> Result<Self, Error> {
        let efi = environment.optional("GRUB_EFI_PARTITION");
        Ok(Self {
            disk: environment.device("GRUB_INSTALL_PATH")?,
            partition: environment.device("GRUB_DISK")?,
            fs_type: environment.required("FS_TYPE")?.to_owned(),
            efi: efi.map(|_| environment.device("GRUB_EFI_PARTITION")).transpose()?,
        })
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, Error> {
        let this = self.clone();
        let opened = blocking("mounting", move || {
            let there = |named: &Path| -> Result<PathBuf, imaging::Error> {
                let path = select::resolve(named)?;
                disk::wait_for(&path)?;
                preserve::check(&path)?;
                Ok(path)
            };
            let (disk, efi) = (there(&this.disk)?, this.efi.as_deref().map(there).transpose()?);
            Ok((disk, efi, Mounted::mount(&this.partition, &this.fs_type, Purpose::Run)?))
        });
        let (disk, efi, mounted) = opened.await?;
        meter.say(format!("installing GRUB on {}", disk.display()));
        let (disk, efi) = (disk.display().to_string(), efi.map(|it| it.display().to_string()));
        let done = self.install(&mounted, &disk, efi.as_deref(), meter).await;
        let unmounted = blocking("unmounting", move || mounted.unmount()).await;
        let summary = done?;
        unmounted?;
        Ok(summary)
    }

    async fn install(
        &self,
        mounted: &Mounted,
        disk: &str,
        efi: Option<&str>,
        meter: &Meter,
    ) -> Result<String, Error> {
        let platform = if efi.is_some() { EFI } else { BIOS };
        let partition = self.partition.display();
        let Some(name) = own(mounted, platform) else {
            if efi.is_some() {
                return Err(Error::BadSetting {
                    action: "grub2disk",
                    name: "GRUB_EFI_PARTITION",
                    reason: format!(
                        "{partition} has no grub-install with {EFI}; install its package \
                         (grub-efi-amd64-bin) by cexec, or write the loader by archive2disk"
                    ),
                });
            }
            let tools = Tools::get(meter).await?;
            let words = ["--target=i386-pc", "--boot-directory=/mnt/boot"];
            tools.run_on(&Run::on("grub-install", &words, disk), mounted, meter).await?;
            let config = ["boot/grub/grub.cfg"].iter().any(|path| mounted.open(path).is_ok());
            let config =
                if config { "its grub.cfg was not changed" } else { "it has no grub.cfg yet" };
            return Ok(format!(
                "installed GRUB ({BIOS}) on {disk} with its files on {partition}; {config}"
            ));
        };
        let script = script(name, efi.is_some());
        let arguments = [efi.unwrap_or(disk), name].map(str::to_owned);
        self.run_script(&script, &arguments, meter).await?;
        Ok(format!(
            "installed GRUB ({platform}) on {} by {name}-install of {partition}, and made its \
             configuration",
            efi.unwrap_or(disk)
        ))
    }

    async fn run_script(
        &self,
        script: &str,
        arguments: &[String],
        meter: &Meter,
    ) -> Result<(), imaging::Error> {
        let mut command = Command::new("/bin/sh");
        command.args(["-e", "-c", script, "grub2disk"]).args(arguments);
        command.env_clear().envs(ENVIRONMENT);
        confine(&mut command, ProgramRoot::partition(Mounted::PLACE));
        let place = self.partition.display().to_string();
        let run =
            Program { name: "grub-install", place: &place, input: None, returns_output: false };
        run.run(command, meter).await.map(drop)
    }
}

/// Returns the prefix of GRUB's programs on the partition; `None` without grub-install or without
/// GRUB's files for `platform`.
fn own(mounted: &Mounted, platform: &str) -> Option<&'static str> {
    let there = |path: String| mounted.open(&path).is_ok();
    let files = there(format!("/usr/lib/grub/{platform}/moddep.lst"));
    NAMES.into_iter().find(|name| files && there(format!("/usr/sbin/{name}-install")))
}

/// Returns the shell script that installs GRUB. `$1` is the disk, or the EFI system partition.
fn script(name: &str, efi: bool) -> String {
    let install = if efi {
        // The mount is visible only in this mount namespace, and is gone when the shell ends.
        format!(
            "mkdir -p /boot/efi; mount -t vfat \"$1\" /boot/efi; \
             {name}-install --target={EFI} --efi-directory=/boot/efi --removable --no-nvram"
        )
    } else {
        format!("{name}-install --target={BIOS} \"$1\"")
    };
    // Without udev, no other program creates the links by UUID that configurations use.
    let names = "mkdir -p /dev/disk/by-uuid; blkid -s UUID -o export | while IFS='=' read -r k v; \
        do case $k in DEVNAME) d=$v ;; UUID) ln -sf \"$d\" \"/dev/disk/by-uuid/$v\" ;; esac; done";
    // os-prober mounts the file systems of all disks, also of preserved ones, and replays their
    // journals. A system's /etc/default/grub may enable it, so its programs are covered as well.
    let alone = "export GRUB_DISABLE_OS_PROBER=true; for p in /usr/bin/os-prober \
        /usr/bin/linux-boot-prober; do if [ -e $p ]; then mount --bind /dev/null $p; fi; done";
    format!("{alone}; {names}; {install}; {name}-mkconfig -o /boot/{name}/grub.cfg; sync")
}

#[cfg(test)]
mod tests {
    use super::script;

    /// The part of the script before `grub-mkconfig` must disable os-prober and cover its programs.
    #[test]
    fn no_other_disk_is_probed_for_systems() {
        for script in [script("grub", false), script("grub2", true)] {
            let (before, _) = script.split_once("-mkconfig").unwrap();
            assert!(before.contains("export GRUB_DISABLE_OS_PROBER=true;"));
            for program in ["/usr/bin/os-prober", "/usr/bin/linux-boot-prober"] {
                assert!(before.contains(program), "{program}");
            }
            assert!(before.contains("mount --bind /dev/null $p"));
        }
    }

    #[test]
    fn the_script_is_of_the_systems_own_names() {
        let bios = script("grub", false);
        assert!(
            bios.contains("; grub-install --target=i386-pc \"$1\"; grub-mkconfig -o /boot/grub/")
        );
        let efi = script("grub2", true);
        assert!(efi.contains("mount -t vfat \"$1\" /boot/efi; grub2-install --target=x86_64-efi"));
        assert!(efi.contains("grub2-mkconfig -o /boot/grub2/grub.cfg"));
        for script in [bios, efi] {
            let checked = std::process::Command::new("sh").args(["-n", "-c", &script]).status();
            assert!(checked.unwrap().success(), "{script}");
        }
    }
}
