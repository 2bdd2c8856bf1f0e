//! A box whose servers never answer, in `tinboxd`'s place in an image, with the real program beside
//! it. A seccomp filter hides every incoming connection from the real program: `accept4` fails with
//! `EAGAIN`.

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
