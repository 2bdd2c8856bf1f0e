//! Buttons on lines of a GPIO chip, with one thread for each chip.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpiocdev::Request;
use gpiocdev::line::{Bias, EdgeDetection, EdgeKind, Value};
use panel::front::Event;
use panel::model::Button;
use tokio::sync::mpsc;

use super::RetryState;

/// Consumer name of the lines, as the kernel shows it (`gpioinfo`).
const CONSUMER: &str = "tinbox";
/// Debounce period of a button contact.
const DEBOUNCE: Duration = Duration::from_millis(10);

/// Button on a GPIO line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpioButton {
    /// Offset of the line on its chip.
    pub line: u32,
    /// True if a low level (0 V) means pressed.
    pub active_low: bool,
    /// Button of the panel.
    pub button: Button,
}

/// Starts the thread that reads the buttons of a chip, until the receiver is dropped.
pub fn start(chip: PathBuf, wires: Vec<GpioButton>, to: mpsc::Sender<(Event, Instant)>) {
    std::thread::spawn(move || {
        let mut tries = RetryState::of(format!("the buttons on {}", chip.display()));
        while !to.is_closed() {
            let Err(error) = listen(&chip, &wires, &to, &mut tries);
            // A full queue drops the event.
            let _ = to.try_send((Event::Lost, Instant::now()));
            std::thread::sleep(tries.failed(&stdx::chain(&error)));
        }
    });
}

fn listen(
    chip: &Path,
    wires: &[GpioButton],
    to: &mpsc::Sender<(Event, Instant)>,
    tries: &mut RetryState,
) -> Result<Infallible, gpiocdev::Error> {
    let mut builder = Request::builder();
    builder.on_chip(chip).with_consumer(CONSUMER);
    for wire in wires {
        // A pressed button connects its line to the active level, so the bias is the opposite
        // level.
        builder.with_line(wire.line).as_input();
        match wire.active_low {
            true => builder.as_active_low().with_bias(Bias::PullUp),
            false => builder.as_active_high().with_bias(Bias::PullDown),
        };
        builder.with_edge_detection(EdgeDetection::BothEdges).with_debounce_period(DEBOUNCE);
    }
    let request = builder.request()?;
    tries.worked();
    // Not `read_edge_event`: it returns the first of several waiting events and drops the others.
    let mut events = request.edge_events();
    loop {
        let read = events.read_event()?;
        let Some(event) = event(wires, read.offset, read.kind) else { continue };
        let _ = to.try_send((event, Instant::now()));
    }
}

/// Converts an edge to a button event. The kernel has already inverted active-low lines.
fn event(wires: &[GpioButton], line: u32, edge: EdgeKind) -> Option<Event> {
    let wire = wires.iter().find(|wire| wire.line == line)?;
    Some(match edge {
        EdgeKind::Rising => Event::Down(wire.button),
        EdgeKind::Falling => Event::Up(wire.button),
    })
}

/// Output line of a GPIO chip.
#[derive(Debug)]
pub struct GpioOutput(Request);

impl GpioOutput {
    /// Requests a line of the chip as an output. The output is off at first.
    ///
    /// # Errors
    /// The line does not exist, or another process uses it.
    pub fn open(chip: &Path, line: u32, active_low: bool) -> Result<Self, gpiocdev::Error> {
        let mut builder = Request::builder();
        builder.on_chip(chip).with_consumer(CONSUMER).with_line(line);
        if active_low {
            builder.as_active_low();
        }
        builder.as_output(Value::Inactive).request().map(Self)
    }

    /// Switches the line on or off.
    ///
    /// # Errors
    /// The chip was removed.
    pub fn set(&mut self, on: bool) -> Result<(), gpiocdev::Error> {
        self.0.set_lone_value(Value::from(on)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::{Button, EdgeKind, Event, GpioButton, GpioOutput, Path, event};

    #[test]
    fn an_edge_is_a_press_or_a_release() {
        let wire = |line, button| GpioButton { line, active_low: true, button };
        let wires = [wire(17, Button::Up), wire(22, Button::Select)];
        assert_eq!(event(&wires, 22, EdgeKind::Rising), Some(Event::Down(Button::Select)));
        assert_eq!(event(&wires, 17, EdgeKind::Falling), Some(Event::Up(Button::Up)));
        assert_eq!(event(&wires, 18, EdgeKind::Falling), None);
    }

    #[test]
    fn a_chip_that_is_not_there_or_none_is_told() {
        for path in ["/dev/gpiochip9999", "/dev/null"] {
            let error = GpioOutput::open(Path::new(path), 1, false).unwrap_err();
            assert!(!stdx::chain(&error).is_empty(), "{error}");
        }
    }
}
