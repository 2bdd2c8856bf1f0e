//! Grows the last partition of a disk and its filesystem to the end of the disk, because images are
//! made for small disks.

use std::path::{Path, PathBuf};

use super::plan::{DiskState, Slice, grown_end, partition_path};
use super::see;
use crate::disks::disk::{Accept, Disk, wait_for};
use crate::disks::select;
use crate::mount::{Mounted, Purpose};
use crate::programs::tools::{Run, Tools};
use crate::task::blocking;
use crate::{Error, Meter};

/// Exit status of `e2fsck` after a successful repair (e2fsck(8)).
const MENDED: i32 = 1;

/// Request to grow the last partition of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grow {
    /// Path or selector of the disk.
    pub disk: PathBuf,
    /// Number of the partition, which must be the last on the disk; 0 selects the last.
    pub partition: u32,
}

impl Grow {
    /// Grows the partition and its filesystem. Returns a summary with the old and the new size.
    ///
    /// # Errors
    /// The partition is not the last, the disk is in use or preserved, or a program fails.
    pub async fn run(&self, meter: &Meter) -> Result<String, Error> {
        let tools = Tools::get(meter).await?;
        let disk = self.disk.clone();
        let seen = blocking("opening the disk", move || {
            let path = select::resolve(&disk)?;
            Disk::open(&path, Accept::BlockDevices)?;
            see(&path.canonicalize().unwrap_or(path).to_string_lossy())
        });
        let seen = seen.await?;
        let last = last(&seen, self.partition).map_err(|reason| Error::Storage { reason })?;
        let disk = seen.path.as_str();
        let kind = tools.ask(&probe("PTTYPE", disk), meter).await?;
        let gpt = kind.trim() == "gpt";
        if gpt {
            // The backup GPT is still at the end of the image.
            tools.run(&Run::on("sfdisk", &["--relocate", "gpt-bak-std"], disk), meter).await?;
        }
        let part = partition_path(disk, last.number);
        let size = (grown_end(&seen, gpt)).saturating_sub(last.start);
        let what = if size > last.size {
            let number = format!("--partno={}", last.number);
            let mut run = Run::on("sfdisk", &["--quiet", &number], disk);
            run.input = Some(format!("size={}\n", size / (seen.block / 512).max(1)));
            meter.say(format!("growing {part}"));
            tools.run(&run, meter).await?;
            let bytes = |sectors: u64| stdx::bytes(sectors.saturating_mul(512));
            format!("grew {part} from {} to {}", bytes(last.size), bytes(size))
        } else {
            format!("{part} ends where {disk} does")
        };
        // partx registers the partitions with a kernel that does not support this kind of table.
        tools.run(&Run::on("partx", &["--update"], disk), meter).await?;
        let wanted = PathBuf::from(&part);
        blocking("waiting for a device", move || wait_for(&wanted)).await?;
        let system = file_system(&tools, &part, meter).await?;
        Ok(format!("{what}, {system}"))
    }
}

/// Returns the last partition on the disk. Any other `number` than 0 or its own is an error.
fn last(seen: &DiskState, number: u32) -> Result<Slice, String> {
    let path = &seen.path;
    let last = seen.partitions.iter().max_by_key(|slice| slice.start);
    let last = last.ok_or_else(|| format!("{path} has no partition that could grow"))?;
    if number != 0 && number != last.number {
        let other = last.number;
        return Err(format!("partition {number} of {path} cannot grow: {other} follows it"));
    }
    Ok(*last)
}

/// Builds the blkid command that prints the value of a tag, such as TYPE; empty without the tag.
fn probe(tag: &str, device: &str) -> Run {
    Run::on("blkid", &["--probe", "--match-tag", tag, "--output", "value"], device)
}

/// Grows the filesystem on the partition. Returns a phrase about the filesystem for the summary.
async fn file_system(tools: &Tools, part: &str, meter: &Meter) -> Result<String, Error> {
    let kind = match tools.ask(&probe("TYPE", part), meter).await {
        Ok(kind) => kind.trim().to_owned(),
        // blkid exits with 2 if it finds nothing.
        Err(Error::Program { .. }) => String::new(),
        Err(error) => return Err(error),
    };
    let inside = match kind.as_str() {
        "ext2" | "ext3" | "ext4" => {
            match tools.run(&Run::on("e2fsck", &["-f", "-y"], part), meter).await {
                Err(Error::Program { status, .. }) if status.code() == Some(MENDED) => {}
                result => result?,
            }
            tools.run(&Run::on("resize2fs", &[], part), meter).await?;
            return Ok(format!("with its {kind}"));
        }
        "xfs" => Run::on("xfs_growfs", &[], "/mnt"),
        "btrfs" => Run::on("btrfs", &["filesystem", "resize", "max"], "/mnt"),
        "" => return Ok("which holds no file system".to_owned()),
        other => return Ok(format!("whose {other} was not changed")),
    };
    let (part, fs_type) = (part.to_owned(), kind.clone());
    let mounted =
        blocking("mounting", move || Mounted::mount(Path::new(&part), &fs_type, Purpose::Write));
    let mounted = mounted.await?;
    let result = tools.run_on(&inside, &mounted, meter).await;
    let unmounted = blocking("unmounting", move || mounted.unmount()).await;
    result.and(unmounted)?;
    Ok(format!("with its {kind}"))
}

#[cfg(test)]
mod tests {
    use super::{DiskState, Slice, last};

    #[test]
    fn the_last_partition_is_the_one_behind_which_nothing_lies() {
        let slice = |number, start| Slice { number, start, size: 100 };
        let mut seen =
            DiskState { path: "/dev/sda".to_owned(), size: 10_000, ..DiskState::default() };
        assert!(last(&seen, 0).unwrap_err().contains("no partition"));
        seen.partitions = vec![slice(1, 4096), slice(14, 34), slice(15, 2048)];
        assert_eq!(last(&seen, 0).unwrap().number, 1);
        assert_eq!(last(&seen, 1).unwrap().number, 1);
        let refused = last(&seen, 15).unwrap_err();
        assert_eq!(refused, "partition 15 of /dev/sda cannot grow: 1 follows it");
    }
}
