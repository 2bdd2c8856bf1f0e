//! A box that leaves a program behind, in `tinboxd`'s place in an image. The program is in a
//! process group of its own, and has a file of the state volume open for writing.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use platform::init;

/// Argument of the program that is left behind.
const WRITE: &str = "write";

fn main() -> Result<(), Box<dyn Error>> {
    if init::is_first_process() {
        init::run(OsStr::new(firmware::INSTALLED), &["--firmware"], &[]);
    }
    let _file = if std::env::args().any(|argument| argument == WRITE) {
        let file = File::create(Path::new(init::STATE).join("orphan"))?;
        println!("{}", firmware::FIRST_LINE);
        Some(file)
    } else {
        Command::new(std::env::current_exe()?).arg(WRITE).process_group(0).spawn()?;
        None
    };
    loop {
        std::thread::park();
    }
}
