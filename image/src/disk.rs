//! Builds the box's disk: a partition table, the boot volume, two slots that hold the same system,
//! and two file systems for the box's state and cache.
//!
//! Enter at [`assemble`]. Every file is reproducible: the same inputs and programs give the same
//! bytes, at any time and on any machine.

mod blockmap;
mod boot_volume;
mod ext4;
mod layout;
mod root;
mod sparse;
mod verity;

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};

use platform::bundle::{Slot, Verity};

pub use blockmap::BlockMap;
pub use boot_volume::{BootVolume, Loader};
pub use layout::{BOOT_SIZE, CACHE_SIZE, Part, ROOT_SIZE, STATE_SIZE, disk_size};
pub use root::RootTree;
pub use verity::{BLOCK, BRANCHES, protect};

use crate::{Arch, Error};

/// Inputs of the image.
#[derive(Debug)]
pub struct Inputs {
    /// Processor of the box.
    pub arch: Arch,
    /// Time of every file, in seconds since 1970.
    pub epoch: u64,
    /// Path of the kernel.
    pub kernel: PathBuf,
    /// GRUB for the firmware: a finished program, or the modules to build it from.
    pub loader: Loader,
    /// Contents of the root file system.
    pub root: RootTree,
}

/// Files of a built image.
#[derive(Debug)]
pub struct Disk {
    /// Path of the disk image, a sparse file.
    pub image: PathBuf,
    /// Path of the root with its hash tree, as both slots contain it.
    pub root: PathBuf,
    /// Parameters of dm-verity for the root.
    pub verity: Verity,
    /// Blocks of the image that must be written.
    pub map: BlockMap,
}

/// Builds `NAME.img`, `NAME.img.bmap` and `NAME.root` in `folder`.
///
/// # Errors
/// Names the input or program that failed, and the file it works on.
pub fn assemble(inputs: &Inputs, folder: &Path, name: &str) -> Result<Disk, Error> {
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(write(folder))?;
    let work = tempfile::tempdir_in(folder).map_err(write(folder))?;
    let state = ext4::make(Part::State, work.path(), inputs.epoch)?;
    let squashfs = inputs.root.pack(work.path(), &state.path, inputs.epoch)?;
    let data =
        fs::read(&squashfs).map_err(|source| Error::Read { path: squashfs.clone(), source })?;
    let (root, verity) = protect(data, Part::RootA.uuid());
    fits("the root", root.len() as u64, ROOT_SIZE)?;
    let root_path = folder.join(format!("{name}.root"));
    fs::write(&root_path, &root).map_err(write(&root_path))?;

    let volume = BootVolume {
        arch: inputs.arch,
        version: &inputs.root.version,
        kernel: &inputs.kernel,
        loader: &inputs.loader,
        slots: &[(Slot::A, &verity), (Slot::B, &verity)],
        quick: inputs.root.quick,
    };
    let boot = volume.make(work.path(), inputs.epoch)?;
    let cache = ext4::make(Part::Cache, work.path(), inputs.epoch)?;

    let image = folder.join(format!("{name}.img"));
    let part = folder.join(format!("{name}.img.part"));
    let options = File::options().read(true).write(true).create(true).truncate(true).clone();
    let mut disk = options.open(&part).map_err(write(&part))?;
    disk.set_len(disk_size()).map_err(write(&part))?;
    layout::write_table(&mut disk, inputs.arch)?;
    let mut mapped = Vec::from([Range { start: 0, end: Part::Boot.offset() }]);
    let files = [(Part::Boot, &boot), (Part::RootA, &root_path), (Part::RootB, &root_path)];
    for (place, file) in files {
        let length = sparse::copy(file, &mut disk, place.offset(), &part)?;
        mapped.push(place.offset()..place.offset() + length);
    }
    for (place, made) in [(Part::State, state), (Part::Cache, cache)] {
        sparse::copy(&made.path, &mut disk, place.offset(), &part)?;
        let used = made.used.iter();
        mapped.extend(used.map(|it| place.offset() + it.start..place.offset() + it.end));
    }
    mapped.push(Part::Cache.offset() + Part::Cache.size()..disk_size());
    drop(disk);
    let map = BlockMap::of(&part, &mapped)?;
    fs::rename(&part, &image).map_err(write(&image))?;
    let map_path = folder.join(format!("{name}.img.bmap"));
    fs::write(&map_path, map.to_xml()).map_err(write(&map_path))?;
    Ok(Disk { image, root: root_path, verity, map })
}

/// Returns an error when `size` is more than `limit` bytes.
fn fits(what: &'static str, size: u64, limit: u64) -> Result<(), Error> {
    if size > limit {
        let (size, limit) = (stdx::bytes(size), stdx::bytes(limit));
        return Err(Error::NoRoom { what, size, limit });
    }
    Ok(())
}
