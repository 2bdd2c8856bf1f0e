//! The monitor of a box that is firmware, and its keyboard.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use panel::backends::PICTURE_EVERY;
use panel::backends::fbdev::{Framebuffer, Geometry};
use panel::buttons::{Change, Decoder, devices, key};
use panel::console::{Console, Key};
use panel::model::Action;
use panel::screens::{Size, monitor};
use platform::init::{Leave, ask};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::faces::Faces;
use crate::heart::Pulse;

/// Keys that wait to be looked at; more are lost, as on any keyboard.
const KEYS_MAX: usize = 64;
/// Between two looks for a monitor and for keyboards.
const LOOK: Duration = Duration::from_secs(5);
/// What the keyboard may do before there is more that it could.
const ACTIONS: [Action; 2] = [Action::Restart, Action::PowerOff];
const SYS: &str = "/sys/class/graphics/fb0";

/// How large the monitor is, where there is one.
pub fn size() -> Option<Size> {
    Geometry::read(Path::new(SYS)).ok().map(|monitor| monitor.size)
}

/// Draws the box onto its monitor for as long as it runs. A box without one looks for it now and
/// then.
pub async fn run(faces: Arc<Faces>, pulse: Pulse, shutdown: CancellationToken) {
    let drawing = async {
        let mut told = false;
        loop {
            pulse.tick();
            match Framebuffer::open(Path::new(SYS), Path::new("/dev/fb0")) {
                Ok(monitor) => draw(&faces, &pulse, monitor).await,
                Err(error) if !told => {
                    tracing::info!(reason = %stdx::chain(&error), "there is no monitor");
                    told = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    shutdown.run_until_cancelled(drawing).await;
}

/// Returns when the monitor is gone.
async fn draw(faces: &Faces, pulse: &Pulse, mut monitor: Framebuffer) {
    let (pressed, mut keys) = mpsc::channel(KEYS_MAX);
    for name in devices(Path::new("/sys/class/input")) {
        let (path, pressed) = (PathBuf::from("/dev/input").join(name), pressed.clone());
        // It ends with the device or with this process.
        std::thread::spawn(move || listen(&path, &pressed));
    }
    let size = monitor.size();
    tracing::info!(width = size.width, height = size.height, "drawing on the monitor");
    let began = Instant::now();
    let mut console = Console::new(ACTIONS.to_vec());
    let mut ticks = tokio::time::interval(PICTURE_EVERY);
    loop {
        let view = tokio::select! {
            _ = ticks.tick() => faces.view().await,
            Some(key) = keys.recv() => {
                let view = faces.view().await;
                if let Some(order) = console.key(key, &view, began.elapsed()) {
                    carry_out(order.action);
                }
                view
            }
        };
        let sheet = monitor::draw(&view, &console, monitor.size(), began.elapsed());
        if let Err(error) = monitor.show(&sheet) {
            tracing::warn!(error = %stdx::chain(&error), "the monitor shows nothing any more");
            return;
        }
        pulse.tick();
    }
}

fn carry_out(action: Action) {
    let leave = match action {
        Action::PowerOff => Leave::PowerOff,
        _ => Leave::Restart,
    };
    tracing::info!(?leave, "asked at the keyboard");
    if let Err(error) = ask(leave) {
        tracing::warn!(error = %stdx::chain(&error), "the box stays on");
    }
}

fn listen(path: &Path, pressed: &mpsc::Sender<Key>) {
    let Ok(mut device) = File::open(path) else { return };
    let (mut decoder, mut bytes) = (Decoder::default(), [0; 1024]);
    while let Ok(count @ 1..) = device.read(&mut bytes) {
        for change in decoder.feed(&bytes[..count]) {
            let Change::Down(code) = change else { continue };
            if let Some(key) = key(code)
                && pressed.try_send(key).is_err_and(|_| pressed.is_closed())
            {
                return;
            }
        }
    }
}
