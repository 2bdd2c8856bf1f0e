//! Monitor and keyboard of a firmware box.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use panel::backends::PICTURE_EVERY;
use panel::backends::fbdev::{Framebuffer, Geometry};
use panel::buttons::{KEYBOARD, KeyChange, key};
use panel::console::Console;
use panel::model::ACTIONS;
use panel::screens::{Size, monitor};
use platform::liveness::LoopSignal;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::orders::Orders;
use crate::{Actions, ViewSource, keys};

/// Interval of searches for a monitor.
const LOOK: Duration = Duration::from_secs(5);
const SYS: &str = "/sys/class/graphics/fb0";
/// Framebuffer device of the monitor.
pub const DEVICE: &str = "/dev/fb0";

/// Returns the size of the monitor in pixels; `None` without a monitor.
pub fn size() -> Option<Size> {
    Geometry::read(Path::new(SYS)).ok().map(|monitor| monitor.size)
}

/// Draws the status on the monitor until shutdown. Without a monitor, searches every 5 s.
pub async fn run(
    source: Arc<dyn ViewSource>,
    actions: Arc<dyn Actions>,
    loop_signal: LoopSignal,
    shutdown: CancellationToken,
) {
    let (pressed, mut changes) = mpsc::channel(keys::CHANGES_MAX);
    let following = keys::follow(keys::KeyFilter::here(KEYBOARD.to_vec(), None), pressed);
    let drawing = async {
        let mut is_logged = false;
        loop {
            loop_signal.tick();
            match Framebuffer::open(Path::new(SYS), Path::new(DEVICE)) {
                Ok(monitor) => {
                    let to = (source.as_ref(), actions.as_ref());
                    draw(to, &loop_signal, monitor, &mut changes).await;
                }
                Err(error) if !is_logged => {
                    tracing::info!(reason = %stdx::chain(&error), "there is no monitor");
                    is_logged = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let both = async { tokio::join!(following, drawing) };
    shutdown.run_until_cancelled(both).await;
}

/// Draws until the monitor is removed.
async fn draw(
    (source, actions): (&dyn ViewSource, &dyn Actions),
    loop_signal: &LoopSignal,
    mut monitor: Framebuffer,
    changes: &mut mpsc::Receiver<(KeyChange, Instant)>,
) {
    let size = monitor.size();
    tracing::info!(width = size.width, height = size.height, "drawing on the monitor");
    let began = Instant::now();
    let mut orders = Orders::new(actions, "keyboard");
    let mut console = Console::new(ACTIONS.to_vec());
    let mut ticks = tokio::time::interval(PICTURE_EVERY);
    loop {
        let view = tokio::select! {
            _ = ticks.tick() => source.view().await,
            ended = orders.ended() => {
                match ended {
                    Ok(order) => console.confirm(&order, began.elapsed()),
                    Err(reason) => console.refuse(reason, began.elapsed()),
                }
                source.view().await
            }
            Some((change, _)) = changes.recv() => {
                let KeyChange::Down(code) = change else { continue };
                let Some(key) = key(code) else { continue };
                let view = source.view().await;
                if let Some(order) = console.key(key, &view, began.elapsed())
                    && let Err(reason) = orders.begin(order)
                {
                    console.refuse(reason, began.elapsed());
                }
                view
            }
        };
        let sheet = monitor::draw(&view, &console, monitor.size(), began.elapsed());
        if let Err(error) = monitor.show(&sheet) {
            tracing::warn!(error = %stdx::chain(&error), "the monitor no longer shows a picture");
            return;
        }
        loop_signal.tick();
    }
}
