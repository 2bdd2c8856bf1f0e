//! A box's program that starts and then does nothing: put into an image in `tinboxd`'s place.

use std::ffi::OsStr;

fn main() {
    if platform::init::is_first_process() {
        platform::init::run(OsStr::new(firmware::INSTALLED), &["--firmware"]);
    }
    loop {
        std::thread::park();
    }
}
