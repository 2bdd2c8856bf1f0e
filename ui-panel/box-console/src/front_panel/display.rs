//! Output to a small screen, on a separate thread, because a bus may be slow or hang.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use config::Panel;
use embedded_hal::i2c::I2c;
use panel::backends::backlight::Backlight;
use panel::backends::fbdev::Framebuffer;
use panel::backends::ssd1306::{self, Oled};
use panel::front::Frame;
use panel::screens::Picture;
use tokio::sync::mpsc;

use super::RetryState;

const FRAMEBUFFERS: &str = "/sys/class/graphics";
const BACKLIGHTS: &str = "/sys/class/backlight";

/// Display device that shows frames.
pub trait Display {
    /// Shows a frame.
    ///
    /// # Errors
    /// The device was removed or fails.
    fn show(&mut self, frame: &Frame) -> anyhow::Result<()>;
}

impl<I: I2c> Display for Oled<I> {
    fn show(&mut self, frame: &Frame) -> anyhow::Result<()> {
        let Picture::Mono(sheet) = &frame.picture else { anyhow::bail!("it has no colors") };
        Ok(Oled::show(self, sheet, frame.light)?)
    }
}

struct Tft {
    pixels: Framebuffer,
    backlight: Option<Backlight>,
}

impl Tft {
    fn open(device: &Path, backlight: Option<&str>) -> anyhow::Result<Self> {
        let name = device.file_name().context("a framebuffer has a name")?;
        let pixels = Framebuffer::open(&Path::new(FRAMEBUFFERS).join(name), device)?;
        let backlight = backlight.and_then(|name| {
            let opened = Backlight::open(&Path::new(BACKLIGHTS).join(name));
            // The screen is readable without it.
            opened
                .inspect_err(|error| {
                    let reason = stdx::chain(error);
                    tracing::warn!(reason, "cannot set the brightness");
                })
                .ok()
        });
        Ok(Self { pixels, backlight })
    }
}

impl Display for Tft {
    fn show(&mut self, frame: &Frame) -> anyhow::Result<()> {
        let Picture::Color(sheet) = &frame.picture else { anyhow::bail!("it has colors") };
        self.pixels.show(sheet)?;
        if let Some(backlight) = &mut self.backlight {
            backlight.set(frame.light)?;
        }
        Ok(())
    }
}

/// Starts the thread of the panel's screen. Returns the sender for its frames.
pub fn start(config: &Panel) -> mpsc::Sender<Frame> {
    let (frames, waiting) = mpsc::channel(1);
    let config = config.clone();
    std::thread::spawn(move || {
        let what = match (&config.oled, &config.tft) {
            (Some(oled), _) => format!("the OLED on {}", oled.i2c.0.display()),
            (None, Some(tft)) => format!("the TFT {}", tft.0.display()),
            (None, None) => return,
        };
        keep(RetryState::of(what), || open(&config), waiting, std::thread::sleep);
    });
    frames
}

fn open(config: &Panel) -> anyhow::Result<Box<dyn Display>> {
    if let Some(oled) = &config.oled {
        return Ok(Box::new(ssd1306::open(&oled.i2c.0, oled.address.0)?));
    }
    let tft = config.tft.as_ref().context("there is no screen")?;
    let backlight = config.backlight.as_ref().map(|name| name.0.as_str());
    Ok(Box::new(Tft::open(&tft.0, backlight)?))
}

/// Shows frames until the sender is dropped. After an error, reopens the display.
pub fn keep(
    mut tries: RetryState,
    open: impl Fn() -> anyhow::Result<Box<dyn Display>>,
    mut frames: mpsc::Receiver<Frame>,
    wait: impl Fn(Duration),
) {
    let mut last = None;
    loop {
        let failed = match open() {
            Ok(glass) => match show(glass, &mut last, &mut frames, &mut tries) {
                Ok(()) => return,
                Err(error) => error,
            },
            Err(error) => error,
        };
        wait(tries.failed(&format!("{failed:#}")));
        match frames.try_recv() {
            Ok(frame) => last = Some(frame),
            Err(mpsc::error::TryRecvError::Empty) => {}
            Err(mpsc::error::TryRecvError::Disconnected) => return,
        }
    }
}

fn show(
    mut glass: Box<dyn Display>,
    last: &mut Option<Frame>,
    frames: &mut mpsc::Receiver<Frame>,
    tries: &mut RetryState,
) -> anyhow::Result<()> {
    if last.is_none() {
        *last = frames.blocking_recv();
    }
    while let Some(frame) = last {
        glass.show(frame)?;
        tries.worked();
        match frames.blocking_recv() {
            Some(next) => *frame = next,
            None => break,
        }
    }
    Ok(())
}
