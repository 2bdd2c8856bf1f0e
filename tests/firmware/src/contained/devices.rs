//! Keys and a small screen of a contained box: files in place of the kernel's devices.
//!
//! The box reads a key device and writes a framebuffer as bytes, so a pipe and a file are enough.
//! Each device has one reader: two readers of a pipe would get half of the keys each.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::mount::mount_bind;

/// Key code of the power button in Linux (`linux/input-event-codes.h`).
const KEY_POWER: u16 = 116;
/// Enter key of the panel.
pub const KEY_ENTER: u16 = 28;
/// Up key of the panel.
pub const KEY_UP: u16 = 103;
/// Down key of the panel.
pub const KEY_DOWN: u16 = 108;
/// Key devices and their keys.
const KEYS: [(&str, &[u16]); 2] =
    [("event0", &[KEY_POWER]), ("event1", &[KEY_UP, KEY_DOWN, KEY_ENTER])];
const SCREEN: &str = "fb0";
/// Width and height of the screen in pixels. Each pixel has two bytes: RGB 5-6-5.
const SIZE: (usize, usize) = (320, 240);
/// `struct input_event`: time, type (`EV_KEY`), code, value.
const EVENT_BYTES: usize = 24;
const EV_KEY: u16 = 1;

/// Simulated devices of the box, which a test controls from outside.
#[derive(Debug)]
pub struct Devices {
    folder: PathBuf,
    /// Open for reading too, so that no pipe breaks while the box is off.
    pipes: [File; KEYS.len()],
}

impl Devices {
    /// Creates the files of the devices in `folder`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn new(folder: &Path, has_screen: bool) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let pipe = |(name, _): (&str, &[u16])| {
            let path = folder.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            File::options().read(true).write(true).open(path)
        };
        let [power, panel] = KEYS.map(pipe);
        if has_screen {
            File::create(folder.join(SCREEN))?.set_len((SIZE.0 * SIZE.1 * 2) as u64)?;
        }
        Ok(Self { folder: folder.to_owned(), pipes: [power?, panel?] })
    }

    /// Presses and releases the power button.
    ///
    /// # Errors
    /// The pipe is full: no process reads it.
    pub fn press_power(&self) -> io::Result<()> {
        [true, false].into_iter().try_for_each(|down| send(&self.pipes[0], KEY_POWER, down))
    }

    /// Presses or releases a key of the panel.
    ///
    /// # Errors
    /// The pipe is full: no process reads it.
    pub fn key(&self, code: u16, down: bool) -> io::Result<()> {
        send(&self.pipes[1], code, down)
    }

    /// The rows of the screen, with red, green and blue of each pixel.
    ///
    /// # Errors
    /// There is no screen.
    pub fn screen(&self) -> io::Result<Vec<Vec<[u8; 3]>>> {
        let bytes = fs::read(self.folder.join(SCREEN))?;
        let pixel = |pair: &[u8]| {
            let bits = pair.iter().rev().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
            // The five or six bits are the highest bits of each color, followed by zeros.
            [bits >> 11 << 3, bits >> 5 << 2, bits << 3].map(|color| (color & 0xff) as u8)
        };
        let rows = bytes.chunks(SIZE.0 * 2);
        Ok(rows.map(|row| row.chunks(2).map(pixel).collect()).collect())
    }
}

fn send(mut pipe: &File, code: u16, down: bool) -> io::Result<()> {
    let mut event = [0; EVENT_BYTES];
    event[16..18].copy_from_slice(&EV_KEY.to_ne_bytes());
    event[18..20].copy_from_slice(&code.to_ne_bytes());
    event[20..24].copy_from_slice(&i32::from(down).to_ne_bytes());
    pipe.write_all(&event)
}

/// Mounts the devices of `folder` into the root of a box; its `/dev` and `/sys/class` folders for
/// them are in memory.
///
/// # Errors
/// The kernel refuses.
pub fn lay_out(folder: &Path, root: &Path) -> io::Result<()> {
    let (dev, class) = (root.join("dev"), root.join("sys/class"));
    fs::create_dir_all(dev.join("input"))?;
    for (name, codes) in KEYS {
        put(&folder.join(name), &dev.join("input").join(name))?;
        let device = class.join("input").join(name).join("device");
        fs::create_dir_all(device.join("capabilities"))?;
        fs::write(device.join("name"), "contained\n")?;
        // Words of 64 bits, the highest word first.
        let word = |word: u16| {
            let codes = codes.iter().filter(|code| **code / 64 == word);
            codes.fold(0_u64, |bits, code| bits | 1 << (code % 64))
        };
        fs::write(device.join("capabilities/key"), format!("{:x} {:x}\n", word(1), word(0)))?;
    }
    if folder.join(SCREEN).exists() {
        put(&folder.join(SCREEN), &dev.join(SCREEN))?;
        let sys = class.join("graphics").join(SCREEN);
        fs::create_dir_all(&sys)?;
        let (width, height) = SIZE;
        fs::write(sys.join("virtual_size"), format!("{width},{height}\n"))?;
        fs::write(sys.join("bits_per_pixel"), "16\n")?;
        fs::write(sys.join("stride"), format!("{}\n", width * 2))?;
    }
    Ok(())
}

/// Bind-mounts a file at another path.
fn put(file: &Path, place: &Path) -> io::Result<()> {
    File::create(place)?;
    mount_bind(file, place).map_err(Into::into)
}
