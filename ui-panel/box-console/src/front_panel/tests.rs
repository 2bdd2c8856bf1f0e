use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use config::Panel;
use embedded_graphics::pixelcolor::BinaryColor;
use panel::buttons::KeyChange;
use panel::draw::Sheet;
use panel::front::{Event, Frame};
use panel::model::{Button, Light};
use panel::screens::{Picture, Size};
use status::view::led::Pattern;
use stdx::testing::PATIENCE;
use tokio::sync::mpsc;

use super::display::{self, Display};
use super::gpio::GpioButton;
use super::leds::{self, Led, Switch};
use super::{RetryState, event, keys_of, wires};

/// Test double of a display that fails after `left` frames and records its events.
#[derive(Clone)]
struct Breaking {
    left: usize,
    story: Rc<RefCell<Vec<String>>>,
    frames: Rc<RefCell<Option<mpsc::Sender<Frame>>>>,
}

impl Breaking {
    fn send(&self, light: Light) {
        let picture = Picture::Mono(Sheet::new(Size::new(1, 1), BinaryColor::On));
        let frame = Frame { picture, light };
        self.frames.borrow().as_ref().unwrap().try_send(frame).unwrap();
    }
}

impl Display for Breaking {
    fn show(&mut self, frame: &Frame) -> anyhow::Result<()> {
        anyhow::ensure!(self.left > 0, "the wire is off");
        self.left -= 1;
        self.story.borrow_mut().push(format!("{:?}", frame.light));
        match frame.light {
            Light::Full => self.send(Light::Dim),
            _ => drop(self.frames.borrow_mut().take()),
        }
        Ok(())
    }
}

#[test]
fn a_glass_that_breaks_is_opened_again_with_longer_waits_and_shows_the_newest_frame() {
    let (frames, waiting) = mpsc::channel(1);
    let frames = Rc::new(RefCell::new(Some(frames)));
    let glass = Breaking { left: 1, story: Rc::default(), frames };
    glass.send(Light::Full);
    let opened = RefCell::new(0);
    let open = || -> anyhow::Result<Box<dyn Display>> {
        *opened.borrow_mut() += 1;
        anyhow::ensure!(*opened.borrow() > 3, "there is none");
        Ok(Box::new(glass.clone()))
    };
    let wait = |time: Duration| glass.story.borrow_mut().push(format!("{} s", time.as_secs()));
    display::keep(RetryState::of("a glass".to_owned()), open, waiting, wait);
    // The second frame failed on the broken bus, and is shown by the display that was opened after
    // that.
    assert_eq!(glass.story.borrow().join(", "), "1 s, 2 s, 4 s, Full, 1 s, Dim");
}

/// Test double of an LED that reports each switch and fails at first.
struct RecordingLed {
    to: SyncSender<bool>,
    fails: Arc<Mutex<usize>>,
}

impl Switch for RecordingLed {
    fn set(&mut self, lit: bool) -> anyhow::Result<()> {
        let mut fails = self.fails.lock().unwrap();
        if *fails > 0 {
            *fails -= 1;
            anyhow::bail!("the chip does not answer");
        }
        Ok(self.to.send(lit)?)
    }
}

fn recording_led(fails: usize) -> (leds::LedHandle, Receiver<bool>) {
    let (to, switched) = sync_channel(64);
    let fails = Arc::new(Mutex::new(fails));
    let open = move || -> anyhow::Result<Box<dyn Switch>> {
        Ok(Box::new(RecordingLed { to: to.clone(), fails: Arc::clone(&fails) }))
    };
    (leds::run(RetryState::of("a light".to_owned()), open), switched)
}

#[test]
fn a_light_keeps_its_rhythm_whatever_it_is_told_again() {
    let (mut led_handle, switched) = recording_led(0);
    let next = || switched.recv_timeout(PATIENCE).unwrap();
    assert!(!next(), "dark until something is known");
    let began = Instant::now();
    led_handle.be(Pattern::Fast);
    for turn in 0..8 {
        led_handle.be(Pattern::Fast);
        assert_eq!(next(), turn % 2 == 0);
    }
    // Seven changes of 125 ms; a busy machine may be late.
    assert!(began.elapsed() >= Duration::from_millis(875), "{:?}", began.elapsed());
}

#[test]
fn a_light_that_failed_shines_once_it_can() {
    let (mut led_handle, switched) = recording_led(1);
    led_handle.be(Pattern::Solid);
    // A failed LED is tried again after a second.
    assert!(std::iter::from_fn(|| switched.recv_timeout(PATIENCE).ok()).any(|lit| lit));
}

#[test]
fn a_light_of_the_kernels_is_taken_from_its_trigger() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let error = Led::open(folder.path()).unwrap_err();
    assert!(format!("{error:#}").contains("max_brightness"), "{error:#}");
    std::fs::write(folder.path().join("max_brightness"), "255\n").unwrap();
    std::fs::write(folder.path().join("trigger"), "[mmc0] none").unwrap();
    let mut led = Led::open(folder.path()).unwrap();
    assert_eq!(read("trigger"), "none");
    led.set(true).unwrap();
    assert_eq!(read("brightness"), "255");
    led.set(false).unwrap();
    assert_eq!(read("brightness"), "0");
    assert!(Led::open(Path::new("/sys/class/leds/none such")).is_err());
}

fn panel(text: &str) -> Panel {
    toml::from_str(text).unwrap()
}

#[test]
fn buttons_are_sorted_by_where_they_are() {
    let panel = panel(
        "[buttons]\nup = { chip = '/dev/gpiochip1', line = 4 }\n\
         down = { chip = '/dev/gpiochip0', line = 9, active_low = false }\nselect = 'KEY_OK'\n",
    );
    let buttons = panel.buttons.unwrap();
    let up = GpioButton { line: 4, active_low: true, button: Button::Up };
    let down = GpioButton { line: 9, active_low: false, button: Button::Down };
    let wires: Vec<_> = wires(&buttons).into_iter().collect();
    assert_eq!(wires, [("/dev/gpiochip0".into(), vec![down]), ("/dev/gpiochip1".into(), vec![up])]);
    let keys = keys_of(&buttons);
    assert_eq!(keys, [(352, Button::Select)]);
    assert_eq!(event(KeyChange::Down(352), &keys), Some(Event::Down(Button::Select)));
    assert_eq!(event(KeyChange::Up(352), &keys), Some(Event::Up(Button::Select)));
    assert_eq!(event(KeyChange::Down(353), &keys), None);
    assert_eq!(event(KeyChange::Lost, &keys), Some(Event::Lost));
}

#[test]
fn tries_wait_longer_and_begin_anew_after_one_that_worked() {
    let mut tries = RetryState::of("it".to_owned());
    let waits: Vec<_> = (0..8).map(|_| tries.failed("it is away").as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    tries.worked();
    assert_eq!(tries.failed("it is away").as_secs(), 1);
}
