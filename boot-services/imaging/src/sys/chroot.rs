//! Root folder of a program: a partition or the tools image. [`super::confine`] uses it.

use std::ffi::{CStr, CString};
use std::io;

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};

/// Kernel filesystems to mount in the root: type and mount point.
const KERNEL_FOLDERS: [(&CStr, &CStr); 3] =
    [(c"devtmpfs", c"/dev"), (c"proc", c"/proc"), (c"sysfs", c"/sys")];
/// Writable filesystems to mount in the root of the read-only tools image.
const SCRATCH_FOLDERS: [(&CStr, &CStr); 2] = [(c"tmpfs", c"/run"), (c"tmpfs", c"/tmp")];
/// Mount point of the tools image, in the program's mount namespace.
pub const IMAGE_PLACE: &CStr = c"/run/tinbox-agent/tools";
/// Path of `/mnt` in the tools image, before the change of the root.
const IMAGE_SHOWN: &CStr = c"/run/tinbox-agent/tools/mnt";

/// Root folder of a program, and the mounts to create in it.
#[derive(Debug)]
pub struct ProgramRoot {
    root: &'static CStr,
    image: Option<CString>,
    shown: Option<&'static CStr>,
}

impl ProgramRoot {
    /// Describes the root of a partition, mounted at `root`.
    pub fn partition(root: &'static CStr) -> Self {
        Self { root, image: None, shown: None }
    }

    /// Describes the root of the tools image on block device `image`, with mount `shown` at `/mnt`.
    pub fn image(image: CString, shown: Option<&'static CStr>) -> Self {
        Self { root: IMAGE_PLACE, image: Some(image), shown }
    }

    /// Mounts and enters the root. Called in the child after fork: must not allocate or lock.
    pub fn enter(&self) -> io::Result<()> {
        rustix::mount::mount_change(
            c"/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )?;
        if let Some(image) = &self.image {
            let device = image.as_c_str();
            rustix::mount::mount(device, self.root, c"squashfs", MountFlags::RDONLY, None)?;
        }
        if let Some(shown) = self.shown {
            rustix::mount::mount_bind(shown, IMAGE_SHOWN)?;
        }
        rustix::process::chroot(self.root)?;
        rustix::process::chdir(c"/")?;
        let scratch = self.image.as_ref().map_or(&[][..], |_| &SCRATCH_FOLDERS);
        for (kind, place) in KERNEL_FOLDERS.iter().chain(scratch) {
            // Relative to the new root, so that a symbolic link of the root cannot lead out.
            match rustix::mount::mount(*kind, *place, *kind, MountFlags::empty(), None) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}
