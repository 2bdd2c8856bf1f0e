//! A first process without function, in `tinboxd`'s place in an image: it prints one word, as a
//! baseline for start times.

use std::io::Write as _;

fn main() {
    // The kernel has opened the console for the first process.
    let _ = writeln!(std::io::stdout(), "{}", firmware::BARE);
    loop {
        std::thread::park();
    }
}
