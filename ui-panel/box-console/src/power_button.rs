//! Power button of the case, as an input device of the kernel. A press shuts the box down in order.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use panel::buttons::{Decoder, KEY_POWER, KeyChange, devices_with};

/// Calls `on_press` for each later press, until the process ends.
pub fn listen(on_press: impl Fn() + Clone + Send + 'static) {
    for name in devices_with(Path::new("/sys/class/input"), &[KEY_POWER]) {
        let path = Path::new("/dev/input").join(name);
        match File::open(&path) {
            // The thread ends with the device or with this process.
            Ok(device) => {
                let on_press = on_press.clone();
                drop(std::thread::spawn(move || follow(device, &on_press)));
            }
            Err(error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "cannot read a power button");
            }
        }
    }
}

fn follow(mut device: File, on_press: &impl Fn()) {
    let (mut decoder, mut bytes) = (Decoder::default(), [0; 1024]);
    while let Ok(count @ 1..) = device.read(&mut bytes) {
        let pressed = decoder.feed(&bytes[..count]).contains(&KeyChange::Down(KEY_POWER));
        if !pressed {
            continue;
        }
        tracing::info!("the power button was pressed");
        on_press();
    }
}
