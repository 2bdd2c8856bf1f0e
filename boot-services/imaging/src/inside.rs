//! The root that a program of a partition or of the tools image runs in; [`crate::sys::confine`]
//! puts it there.

use std::ffi::{CStr, CString};
use std::io;

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};

/// What a program finds mounted in its root: type and place.
const KERNEL_FOLDERS: [(&CStr, &CStr); 3] =
    [(c"devtmpfs", c"/dev"), (c"proc", c"/proc"), (c"sysfs", c"/sys")];
/// What it finds beside where nothing else can be written.
const SCRATCH_FOLDERS: [(&CStr, &CStr); 2] = [(c"tmpfs", c"/run"), (c"tmpfs", c"/tmp")];
/// Where an image of programs is mounted, for themselves alone.
pub const IMAGE_PLACE: &CStr = c"/run/tinbox-agent/tools";
/// Where they find the partition that they work on, seen from here.
const IMAGE_SHOWN: &CStr = c"/run/tinbox-agent/tools/mnt";

/// The root that a program runs in.
#[derive(Debug)]
pub struct Inside {
    root: &'static CStr,
    image: Option<CString>,
    shown: Option<&'static CStr>,
}

impl Inside {
    /// A partition mounted at `root`.
    pub fn partition(root: &'static CStr) -> Self {
        Self { root, image: None, shown: None }
    }

    /// The squashfs on the block device `image`, with `shown` as its `/mnt`.
    pub fn image(image: CString, shown: Option<&'static CStr>) -> Self {
        Self { root: IMAGE_PLACE, image: Some(image), shown }
    }

    /// In the child: makes no allocation and takes no lock.
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
            // From within the new root, so that no link of its leads out.
            match rustix::mount::mount(*kind, *place, *kind, MountFlags::empty(), None) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}
