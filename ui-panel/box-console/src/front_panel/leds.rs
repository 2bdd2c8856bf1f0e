//! LEDs of the box, with one thread each, so that other work does not delay a blink pattern.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use config::panel;
use status::view::led::Pattern;

use super::RetryState;
use super::gpio::GpioOutput;

const LEDS: &str = "/sys/class/leds";

/// LED device that can be switched on and off.
pub trait Switch {
    /// Switches the LED on or off.
    ///
    /// # Errors
    /// The device was removed.
    fn set(&mut self, lit: bool) -> anyhow::Result<()>;
}

impl Switch for GpioOutput {
    fn set(&mut self, lit: bool) -> anyhow::Result<()> {
        Ok(GpioOutput::set(self, lit)?)
    }
}

/// LED of the kernel's LED class (Documentation/leds/leds-class.rst).
#[derive(Debug)]
pub struct Led {
    brightness: PathBuf,
    most: String,
}

impl Led {
    /// Opens the LED of a folder below `/sys/class/leds`, and removes its kernel trigger.
    ///
    /// # Errors
    /// The folder has no LED, or the trigger cannot be removed.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let (most, trigger) = (folder.join("max_brightness"), folder.join("trigger"));
        let read = fs::read_to_string(&most);
        let most = read.with_context(|| format!("could not read {}", most.display()))?;
        match fs::write(&trigger, "none") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context(format!("could not write to {}", trigger.display()));
            }
            _ => {}
        }
        Ok(Self { brightness: folder.join("brightness"), most: most.trim().to_owned() })
    }
}

impl Switch for Led {
    fn set(&mut self, lit: bool) -> anyhow::Result<()> {
        fs::write(&self.brightness, if lit { &self.most } else { "0" })
            .with_context(|| format!("could not write to {}", self.brightness.display()))
    }
}

/// Handle of an LED's thread, with the last pattern.
pub struct LedHandle {
    patterns: SyncSender<Pattern>,
    sent: Option<Pattern>,
}

impl LedHandle {
    /// Sends a pattern to the thread, if it differs from the last pattern.
    pub fn be(&mut self, pattern: Pattern) {
        // While the thread has not taken the last pattern, the next call sends the new one.
        if self.sent != Some(pattern) && self.patterns.try_send(pattern).is_ok() {
            self.sent = Some(pattern);
        }
    }
}

/// Starts the thread of a configured LED.
pub fn start(led: panel::Led) -> LedHandle {
    let what = match &led {
        panel::Led::Named(name) => format!("the light {}", name.0),
        panel::Led::Line(line) => {
            format!("the light on line {} of {}", line.line.0, line.chip.0.display())
        }
    };
    let open = move || -> anyhow::Result<Box<dyn Switch>> {
        Ok(match &led {
            panel::Led::Named(name) => Box::new(Led::open(&Path::new(LEDS).join(&name.0))?),
            panel::Led::Line(line) => {
                let active_low = line.active_low.unwrap_or(false);
                Box::new(GpioOutput::open(&line.chip.0, line.line.0, active_low)?)
            }
        })
    };
    run(RetryState::of(what), open)
}

/// Runs an LED on a separate thread.
pub fn run(
    tries: RetryState,
    open: impl Fn() -> anyhow::Result<Box<dyn Switch>> + Send + 'static,
) -> LedHandle {
    let (patterns, incoming) = sync_channel(1);
    std::thread::spawn(move || keep(tries, open, &incoming, std::thread::sleep));
    LedHandle { patterns, sent: None }
}

/// Plays patterns on the LED until the sender is dropped.
fn keep(
    mut tries: RetryState,
    open: impl Fn() -> anyhow::Result<Box<dyn Switch>>,
    incoming: &Receiver<Pattern>,
    wait: impl Fn(Duration),
) {
    let mut rhythm = (Pattern::Off, Instant::now());
    loop {
        let shown = open().and_then(|switch| show(switch, &mut rhythm, incoming, &mut tries));
        match shown {
            Ok(()) => return,
            Err(error) => wait(tries.failed(&format!("{error:#}"))),
        }
    }
}

fn show(
    mut switch: Box<dyn Switch>,
    (pattern, began): &mut (Pattern, Instant),
    incoming: &Receiver<Pattern>,
    tries: &mut RetryState,
) -> anyhow::Result<()> {
    let mut was = None;
    loop {
        let at = u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
        let lit = pattern.lit(at);
        if was != Some(lit) {
            switch.set(lit)?;
            tries.worked();
            was = Some(lit);
        }
        let next = match pattern.stays(at) {
            Some(millis) => incoming.recv_timeout(Duration::from_millis(millis)),
            None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(next) => (*pattern, *began) = (next, Instant::now()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
