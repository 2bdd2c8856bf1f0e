//! A box's program whose servers never answer: put into an image in `tinboxd`'s place, with the
//! real one beside it. The kernel tells that one, at every connection, that there is none.

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

fn main() -> Result<(), Box<dyn Error>> {
    if platform::init::is_first_process() {
        platform::init::run(OsStr::new(firmware::INSTALLED), &["--firmware"], &[]);
    }
    let again = u32::try_from(libc::EAGAIN)?;
    let filter: BpfProgram = SeccompFilter::new(
        [(libc::SYS_accept4, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(again),
        TargetArch::x86_64,
    )?
    .try_into()?;
    seccompiler::apply_filter(&filter)?;
    Err(Command::new(firmware::BESIDE).arg("--firmware").exec().into())
}
