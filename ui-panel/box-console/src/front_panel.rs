//! Front panel of a firmware box, configured by `[panel]`: a small screen with its buttons, and
//! LEDs. An absent or failed device is reported once and retried; the box serves without it.

mod display;
mod gpio;
mod leds;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::Panel;
use config::panel::{Buttons, Input};
use panel::backends::PICTURE_EVERY;
use panel::buttons::KeyChange;
use panel::front::{Event, Frame, Front};
use panel::model::Button;
use status::view::{StatusView, led};
use stdx::Backoff;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::orders::Orders;
use crate::{Actions, ViewSource, keys};
use gpio::GpioButton;
use leds::LedHandle;

/// Maximum number of queued button events; further events are lost.
const EVENTS_MAX: usize = 64;
/// First and maximum wait before another try to open an absent or failed device.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Runs the front panel until the box shuts down.
pub async fn run(
    source: Arc<dyn ViewSource>,
    actions: Arc<dyn Actions>,
    config: Panel,
    shutdown: CancellationToken,
) {
    shutdown.run_until_cancelled(attend(source.as_ref(), actions.as_ref(), &config)).await;
}

async fn attend(source: &dyn ViewSource, actions: &dyn Actions, config: &Panel) {
    let began = Instant::now();
    let mut screen = config.settings().map(|settings| Screen {
        front: Front::new(settings, Duration::ZERO),
        frames: display::start(config),
    });
    let mut lights = ConfiguredLeds::of(config);
    let (pressed, mut presses) = mpsc::channel(EVENTS_MAX);
    let (changed, mut changes) = mpsc::channel(keys::CHANGES_MAX);
    let buttons = config.buttons.as_ref();
    buttons.into_iter().flat_map(wires).for_each(|(chip, wires)| {
        gpio::start(chip, wires, pressed.clone());
    });
    let keys = buttons.map(keys_of).unwrap_or_default();
    let following = follow(&keys, buttons, changed);
    let mut orders = Orders::new(actions, "panel");
    let attending = async {
        let mut ticks = tokio::time::interval(PICTURE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (happened, reason) = tokio::select! {
                _ = ticks.tick() => (None, None),
                ended = orders.ended() => (None, ended.err()),
                Some(press) = presses.recv() => (Some(press), None),
                Some((change, at)) = changes.recv() => match event(change, &keys) {
                    Some(event) => (Some((event, at)), None),
                    None => continue,
                },
            };
            let view = source.view().await;
            lights.show(&view);
            let Some(screen) = &mut screen else { continue };
            let now = began.elapsed();
            let order = match happened {
                None => screen.front.tick(&view, now),
                Some((event, at)) => screen.front.event(event, &view, at - began),
            };
            let refused = order.and_then(|order| orders.begin(order).err());
            if let Some(reason) = refused.or(reason) {
                screen.front.report(reason, now);
            }
            screen.show(&view, now);
        }
    };
    tokio::join!(following, attending);
}

/// Screen with the queue of frames to its display thread.
struct Screen {
    front: Front,
    frames: mpsc::Sender<Frame>,
}

impl Screen {
    /// Sends the next frame, if the display thread has taken the last frame.
    fn show(&mut self, view: &StatusView, now: Duration) {
        let Ok(place) = self.frames.try_reserve() else { return };
        if let Some(frame) = self.front.frame(view, now) {
            place.send(frame.clone());
        }
    }
}

/// Configured LEDs: the first shows the state of the box, the second shows traffic.
struct ConfiguredLeds {
    first: Option<LedHandle>,
    second: Option<LedHandle>,
}

impl ConfiguredLeds {
    fn of(config: &Panel) -> Self {
        let start = |led: &Option<_>| led.clone().map(leds::start);
        Self { first: start(&config.led), second: start(&config.traffic_led) }
    }

    fn show(&mut self, view: &StatusView) {
        if let Some(led_handle) = &mut self.first {
            led_handle.be(led::first(view));
        }
        if let Some(led_handle) = &mut self.second {
            led_handle.be(led::second(view));
        }
    }
}

/// Returns the buttons on GPIO lines, grouped by chip.
fn wires(buttons: &Buttons) -> BTreeMap<PathBuf, Vec<GpioButton>> {
    let mut chips: BTreeMap<PathBuf, Vec<GpioButton>> = BTreeMap::new();
    for (button, input) in buttons.all() {
        if let Input::Line(line) = input {
            let active_low = line.active_low.unwrap_or(true);
            let wire = GpioButton { line: line.line.0, active_low, button };
            chips.entry(line.chip.0.clone()).or_default().push(wire);
        }
    }
    chips
}

/// Returns the buttons that are keys of an input device, each with its key code.
fn keys_of(buttons: &Buttons) -> Vec<(u16, Button)> {
    let all = buttons.all().into_iter();
    let key = |(button, input): (Button, &Input)| match input {
        Input::Key(code) => Some((*code, button)),
        Input::Line(_) => None,
    };
    all.filter_map(key).collect()
}

async fn follow(
    keys: &[(u16, Button)],
    buttons: Option<&Buttons>,
    changed: mpsc::Sender<(KeyChange, Instant)>,
) {
    if keys.is_empty() {
        return;
    }
    let device = buttons.and_then(|buttons| buttons.device.as_ref()).map(|name| name.0.clone());
    let codes = keys.iter().map(|(code, _)| *code).collect();
    keys::follow(keys::KeyFilter::here(codes, device), changed).await;
}

/// Converts a key change to a button event; `None` for a key that is not a button of the panel.
fn event(change: KeyChange, keys: &[(u16, Button)]) -> Option<Event> {
    let button = |code| keys.iter().find(|(known, _)| *known == code).map(|(_, button)| *button);
    match change {
        KeyChange::Down(code) => button(code).map(Event::Down),
        KeyChange::Up(code) => button(code).map(Event::Up),
        KeyChange::Lost => Some(Event::Lost),
    }
}

/// Retry state of a device, and its last reported error.
struct RetryState {
    what: String,
    backoff: Backoff,
    /// Last logged report: empty for success, else the error; `None` before the first report.
    logged: Option<String>,
}

impl RetryState {
    fn of(what: String) -> Self {
        Self { what, backoff: Backoff::new(RETRY_FIRST, RETRY_MAX), logged: None }
    }

    /// Resets the backoff. Logs the success after an error, and the first success.
    fn worked(&mut self) {
        self.backoff.reset();
        if self.logged.as_deref() != Some("") {
            tracing::info!(device = self.what, "works");
            self.logged = Some(String::new());
        }
    }

    /// Logs the error, unless it is the same as before. Returns the wait before the next try.
    fn failed(&mut self, why: &str) -> Duration {
        if self.logged.as_deref() != Some(why) {
            let (device, reason) = (&self.what, why);
            tracing::warn!(device, reason, "does not work; trying again");
            self.logged = Some(why.to_owned());
        }
        self.backoff.next_wait()
    }
}

#[cfg(test)]
mod tests;
