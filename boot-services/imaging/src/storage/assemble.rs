//! Activates only the array or volume group that an action names. Another array may have preserved
//! disks, or disks that have not appeared yet. An array never starts without members of its last
//! run.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::disks::preserve;
use crate::disks::wait::{APPEAR, LOOK};
use crate::programs::tools::{Run, Tools};
use crate::task::blocking;
use crate::{Error, Meter};

/// Interval between two searches for members.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Array or volume group that a device path belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompositeDevice {
    /// Software RAID array: `0` of `/dev/md0`, `root` of `/dev/md/root`.
    Array(String),
    /// LVM volume group: `vg0` of `/dev/vg0/root` and of `/dev/mapper/vg0-root`.
    Group(String),
}

impl CompositeDevice {
    /// Parses a device path. Returns `None` for other devices.
    pub fn of(path: &str) -> Option<Self> {
        let name = path.strip_prefix("/dev/")?;
        match name.split_once('/') {
            Some(("disk", _)) => None,
            Some(("md", name)) => Some(Self::Array(name.to_owned())),
            Some(("mapper", name)) => Some(Self::Group(mapped_group(name)?)),
            Some((group, _)) => Some(Self::Group(group.to_owned())),
            None => Some(Self::Array(name.strip_prefix("md")?.to_owned())),
        }
    }
}

/// Returns the volume group in a device-mapper name such as `vg0-root`, in which a doubled dash is
/// a dash of a name.
fn mapped_group(name: &str) -> Option<String> {
    let single = |at: &usize| {
        let dash = |at: Option<usize>| at.and_then(|at| name.as_bytes().get(at)) == Some(&b'-');
        !dash(at.checked_sub(1)) && !dash(Some(at + 1))
    };
    let at = name.match_indices('-').map(|(at, _)| at).find(single)?;
    Some(name[..at].replace("--", "-"))
}

/// Array, from the metadata of its members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Array {
    device: String,
    uuid: String,
    name: String,
    /// Number of members of the complete array, without spares.
    disks: usize,
    /// Device paths of the members that this machine has.
    members: Vec<String>,
}

/// Parses the output of `mdadm --examine --scan --verbose`. Omits containers of firmware RAID.
fn arrays(answer: &str) -> Vec<Array> {
    let mut arrays: Vec<Array> = Vec::new();
    for line in answer.lines() {
        let mut words = line.split_whitespace();
        if line.starts_with("ARRAY ") {
            let device = words.nth(1).filter(|word| word.starts_with("/dev/"));
            arrays
                .push(Array { device: device.unwrap_or_default().to_owned(), ..Array::default() });
            words = line.split_whitespace();
        }
        let Some(array) = arrays.last_mut() else { continue };
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            match key {
                "UUID" => value.clone_into(&mut array.uuid),
                "name" => value.rsplit(':').next().unwrap_or(value).clone_into(&mut array.name),
                "num-devices" => array.disks = value.parse().unwrap_or(0),
                "devices" => array.members = value.split(',').map(str::to_owned).collect(),
                _ => {}
            }
        }
    }
    arrays.retain(|array| !array.device.is_empty() && !array.members.is_empty());
    arrays
}

impl Array {
    fn is_called(&self, name: &str) -> bool {
        let own = self.device.strip_prefix("/dev/md/").or(self.device.strip_prefix("/dev/md"));
        own == Some(name) || self.name == name
    }

    /// Builds the mdadm command that starts the array from exactly the known members.
    fn assemble(&self, device: &str, readonly: bool) -> Run {
        let mut words = vec!["--assemble".to_owned(), device.to_owned()];
        words.extend(readonly.then(|| "--readonly".to_owned()));
        words.push(format!("--uuid={}", self.uuid));
        words.extend(self.members.iter().cloned());
        Run::new("mdadm", words)
    }
}

fn mdadm(words: &[&str], device: &str) -> Run {
    Run::on("mdadm", words, device)
}

/// Activates arrays and volume groups with programs of the tools image.
pub struct Assembler<'a> {
    /// Tools image with mdadm and lvm.
    pub tools: &'a Tools,
    /// Meter of the running action.
    pub meter: &'a Meter,
}

impl Assembler<'_> {
    /// Activates the array or volume group of the device path `path`. Waits for missing members.
    ///
    /// # Errors
    /// [`Error::Storage`]: not found, ambiguous, or members are missing.
    pub async fn bring_up(&self, path: &str) -> Result<(), Error> {
        match CompositeDevice::of(path) {
            Some(CompositeDevice::Array(name)) => self.array(path, &name).await,
            Some(CompositeDevice::Group(group)) => self.group(&group).await,
            None => Ok(()),
        }
    }

    async fn arrays(&self) -> Vec<Array> {
        let run = mdadm(&["--examine", "--scan"], "--verbose");
        // The program fails if there is no array.
        arrays(&self.tools.ask(&run, self.meter).await.unwrap_or_default())
    }

    async fn array(&self, path: &str, name: &str) -> Result<(), Error> {
        let deadline = Instant::now() + APPEAR;
        loop {
            let arrays = self.arrays().await;
            let named: Vec<&Array> = arrays.iter().filter(|it| it.is_called(name)).collect();
            match named.as_slice() {
                [array] if array.members.len() >= array.disks || Instant::now() >= deadline => {
                    return self.assemble(array, path).await;
                }
                [_, _, ..] => {
                    let what = format!("{} arrays of this machine are called {path}", named.len());
                    return Err(Error::Storage { reason: what });
                }
                _ if Instant::now() >= deadline => {
                    let reason = format!("no disk of this machine is a member of {path}");
                    return Err(Error::Storage { reason });
                }
                _ => sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// Starts an array from its known members; read-only if a member is on a preserved disk.
    async fn assemble(&self, array: &Array, device: &str) -> Result<(), Error> {
        let members = array.members.clone();
        let is_preserved = blocking("looking for preserved disks", move || {
            let mut members = members.iter();
            Ok(members.any(|member| preserve::check(Path::new(member)).is_err()))
        });
        let run = array.assemble(device, is_preserved.await?);
        let Err(error) = self.tools.run(&run, self.meter).await else { return Ok(()) };
        // A partly assembled array would hold its members.
        if let Err(error) = self.tools.run(&mdadm(&["--stop"], device), self.meter).await {
            tracing::debug!(device, reason = %stdx::chain(&error), "nothing to stop");
        }
        let (here, disks) = (array.members.len(), array.disks);
        let why = stdx::chain(&error);
        let reason = format!(
            "array {device} was not started, with {here} of its {disks} members here ({}): {why}",
            array.members.join(", ")
        );
        Err(Error::Storage { reason })
    }

    /// Activates a volume group if all of its physical volumes are present. To find physical
    /// volumes on arrays, starts complete arrays read-only, and stops those without a volume of the
    /// group again.
    async fn group(&self, group: &str) -> Result<(), Error> {
        let deadline = Instant::now() + APPEAR;
        let mut looked: Vec<String> = Vec::new();
        loop {
            let missing = self.missing(group).await;
            if missing == Some(0) || Instant::now() >= deadline {
                self.keep_only(group, &looked).await;
                let words = ["vgchange", "--activate=y", "--activationmode=complete"];
                return match missing {
                    Some(_) => self.tools.run(&Run::on("lvm", &words, group), self.meter).await,
                    None => {
                        let reason = format!("no disk of this machine has volume group {group}");
                        Err(Error::Storage { reason })
                    }
                };
            }
            for array in self.arrays().await {
                let is_whole = array.members.len() >= array.disks;
                if is_whole && !looked.contains(&array.device) && !Path::new(&array.device).exists()
                {
                    let run = array.assemble(&array.device, true);
                    if self.tools.run(&run, self.meter).await.is_ok() {
                        looked.push(array.device.clone());
                    }
                }
            }
            sleep(LOOK_AGAIN.max(LOOK)).await;
        }
    }

    /// Returns the number of a group's missing physical volumes; `None` if the group is not found.
    async fn missing(&self, group: &str) -> Option<u32> {
        let words = ["vgs", "--noheadings", "--options=vg_missing_pv_count"];
        let answer = self.tools.ask(&Run::on("lvm", &words, group), self.meter).await.ok()?;
        answer.trim().parse().ok()
    }

    /// Makes the arrays in `looked` with volumes of the group writable, unless preserved. Stops the
    /// other arrays.
    async fn keep_only(&self, group: &str, looked: &[String]) {
        let words = ["pvs", "--noheadings", "--options=pv_name", "--select"];
        let select = format!("vg_name={group}");
        let answer = self.tools.ask(&Run::on("lvm", &words, &select), self.meter).await;
        let answer = answer.unwrap_or_default();
        let real = |path: &str| Path::new(path).canonicalize().unwrap_or_else(|_| path.into());
        let volumes: Vec<_> = answer.lines().map(|line| real(line.trim())).collect();
        for device in looked {
            let run = match volumes.contains(&real(device)) {
                true if self.is_preserved(device).await => continue,
                true => mdadm(&["--readwrite"], device),
                false => mdadm(&["--stop"], device),
            };
            if let Err(error) = self.tools.run(&run, self.meter).await {
                tracing::info!(device, reason = %stdx::chain(&error), "the array stays as it is");
            }
        }
    }

    async fn is_preserved(&self, device: &str) -> bool {
        let device = device.to_owned();
        let checked = blocking("looking for preserved disks", move || {
            Ok(preserve::check(Path::new(&device)).is_err())
        });
        checked.await.unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::{Array, CompositeDevice, arrays};

    #[test]
    fn a_path_says_what_it_lies_on() {
        let array = |name: &str| Some(CompositeDevice::Array(name.to_owned()));
        let group = |name: &str| Some(CompositeDevice::Group(name.to_owned()));
        for (path, expected) in [
            ("/dev/md0", array("0")),
            ("/dev/md127", array("127")),
            ("/dev/md/root", array("root")),
            ("/dev/vg0/root", group("vg0")),
            ("/dev/mapper/vg0-root", group("vg0")),
            ("/dev/mapper/vg--0-my--root", group("vg-0")),
            ("/dev/mapper/crypt", None),
            ("/dev/sda", None),
            ("/dev/mmcblk0p1", None),
            ("/dev/disk/by-id/x", None),
            ("serialNumber=1", None),
            ("", None),
        ] {
            assert_eq!(CompositeDevice::of(path), expected, "{path}");
        }
    }

    /// Output of mdadm 4.2.
    const ANSWER: &str = "\
ARRAY /dev/md/0  level=raid1 metadata=1.2 num-devices=2 UUID=aa:bb:cc:dd name=box:0
   devices=/dev/sdb1,/dev/sda1
ARRAY /dev/md/data  level=raid5 metadata=1.2 num-devices=3 UUID=11:22:33:44 name=data
   devices=/dev/sdc
ARRAY /dev/md7 level=raid1 num-devices=2 UUID=55:66:77:88
   devices=/dev/sde,/dev/sdd
ARRAY metadata=imsm UUID=99:99:99:99
   devices=/dev/sdf
";

    #[test]
    fn arrays_are_read_from_their_members() {
        let arrays = arrays(ANSWER);
        let called = |name: &str| {
            let found = arrays.iter().filter(|array| array.is_called(name));
            found.map(|array| array.device.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(arrays.len(), 3);
        assert_eq!(called("0"), ["/dev/md/0"]);
        assert_eq!(called("data"), ["/dev/md/data"]);
        assert_eq!(called("7"), ["/dev/md7"]);
        assert_eq!(called("1"), [""; 0]);
        let expected = Array {
            device: "/dev/md/data".to_owned(),
            uuid: "11:22:33:44".to_owned(),
            name: "data".to_owned(),
            disks: 3,
            members: vec!["/dev/sdc".to_owned()],
        };
        assert_eq!(arrays[1], expected);
        for (readonly, words) in [
            (false, "--assemble /dev/md0 --uuid=aa:bb:cc:dd /dev/sdb1 /dev/sda1"),
            (true, "--assemble /dev/md0 --readonly --uuid=aa:bb:cc:dd /dev/sdb1 /dev/sda1"),
        ] {
            assert_eq!(arrays[0].assemble("/dev/md0", readonly).arguments.join(" "), words);
        }
        assert_eq!(super::arrays(""), []);
    }
}
