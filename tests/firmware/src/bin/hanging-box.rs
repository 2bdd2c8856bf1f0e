//! A box that hangs, in `tinboxd`'s place in an image. It sends a heartbeat, reports a stuck loop,
//! then sends nothing more.

use std::ffi::OsStr;

use platform::heartbeat::{Heartbeat, HeartbeatMessage};
use platform::init;

fn main() {
    if init::is_first_process() {
        init::run(OsStr::new(firmware::INSTALLED), &["--firmware"], &[]);
    }
    println!("before: {}", init::last_restart().unwrap_or_else(|| "nothing".to_owned()));
    if let Some(mut heartbeat) = Heartbeat::inherited() {
        heartbeat.send(&HeartbeatMessage::Beat);
        heartbeat.send(&HeartbeatMessage::Stuck { what: "the API".to_owned(), seconds: 21 });
    }
    loop {
        std::thread::park();
    }
}
