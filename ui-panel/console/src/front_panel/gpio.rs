//! Buttons on lines of a GPIO chip, a thread for each chip.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpiocdev::Request;
use gpiocdev::line::{Bias, EdgeDetection, EdgeKind, Value};
use panel::front::Event;
use panel::model::Button;
use tokio::sync::mpsc;

use super::Tries;

/// What the kernel tells others of who has a line.
const CONSUMER: &str = "tinbox";
/// How long a contact may bounce.
const DEBOUNCE: Duration = Duration::from_millis(10);

/// A button on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    /// The line's number.
    pub line: u32,
    /// 0 V means pressed.
    pub active_low: bool,
    /// Which it is.
    pub button: Button,
}

/// Starts the thread that listens to these buttons; it ends with whoever takes what they say.
pub fn start(chip: PathBuf, wires: Vec<Wire>, to: mpsc::Sender<(Event, Instant)>) {
    std::thread::spawn(move || {
        let mut tries = Tries::of(format!("the buttons on {}", chip.display()));
        while !to.is_closed() {
            let Err(error) = listen(&chip, &wires, &to, &mut tries);
            // Of more than anybody looks at, the rest is lost.
            let _ = to.try_send((Event::Lost, Instant::now()));
            std::thread::sleep(tries.failed(&stdx::chain(&error)));
        }
    });
}

fn listen(
    chip: &Path,
    wires: &[Wire],
    to: &mpsc::Sender<(Event, Instant)>,
    tries: &mut Tries,
) -> Result<Infallible, gpiocdev::Error> {
    let mut builder = Request::builder();
    builder.on_chip(chip).with_consumer(CONSUMER);
    for wire in wires {
        // A button connects its line with the level that it is active at.
        builder.with_line(wire.line).as_input();
        match wire.active_low {
            true => builder.as_active_low().with_bias(Bias::PullUp),
            false => builder.as_active_high().with_bias(Bias::PullDown),
        };
        builder.with_edge_detection(EdgeDetection::BothEdges).with_debounce_period(DEBOUNCE);
    }
    let request = builder.request()?;
    tries.worked();
    // Not `read_edge_event`: of several that wait it gives the first and forgets the others.
    let mut events = request.edge_events();
    loop {
        let said = events.read_event()?;
        let Some(event) = event(wires, said.offset, said.kind) else { continue };
        let _ = to.try_send((event, Instant::now()));
    }
}

/// What an edge of a line means. The kernel has turned those around that are active low.
fn event(wires: &[Wire], line: u32, edge: EdgeKind) -> Option<Event> {
    let wire = wires.iter().find(|wire| wire.line == line)?;
    Some(match edge {
        EdgeKind::Rising => Event::Down(wire.button),
        EdgeKind::Falling => Event::Up(wire.button),
    })
}

/// A line that drives something.
#[derive(Debug)]
pub struct Output(Request);

impl Output {
    /// The line of this chip, off.
    ///
    /// # Errors
    /// There is none, or somebody else has it.
    pub fn open(chip: &Path, line: u32, active_low: bool) -> Result<Self, gpiocdev::Error> {
        let mut builder = Request::builder();
        builder.on_chip(chip).with_consumer(CONSUMER).with_line(line);
        if active_low {
            builder.as_active_low();
        }
        builder.as_output(Value::Inactive).request().map(Self)
    }

    /// On or off.
    ///
    /// # Errors
    /// The chip is gone.
    pub fn set(&mut self, on: bool) -> Result<(), gpiocdev::Error> {
        self.0.set_lone_value(Value::from(on)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::{Button, EdgeKind, Event, Output, Path, Wire, event};

    #[test]
    fn an_edge_is_a_press_or_a_release() {
        let wire = |line, button| Wire { line, active_low: true, button };
        let wires = [wire(17, Button::Up), wire(22, Button::Select)];
        assert_eq!(event(&wires, 22, EdgeKind::Rising), Some(Event::Down(Button::Select)));
        assert_eq!(event(&wires, 17, EdgeKind::Falling), Some(Event::Up(Button::Up)));
        assert_eq!(event(&wires, 18, EdgeKind::Falling), None);
    }

    #[test]
    fn a_chip_that_is_not_there_or_none_is_told() {
        for path in ["/dev/gpiochip9999", "/dev/null"] {
            let error = Output::open(Path::new(path), 1, false).unwrap_err();
            assert!(!stdx::chain(&error).is_empty(), "{error}");
        }
    }
}
