//! A box of nothing: put into an image in `tinboxd`'s place, it says one word, for starts to be
//! compared with.

use std::io::Write as _;

fn main() {
    // The console is what the kernel opened for the first process.
    let _ = writeln!(std::io::stdout(), "{}", firmware::BARE);
    loop {
        std::thread::park();
    }
}
