//! Local devices of the box: screens, buttons, LEDs, monitor, keyboard, serial line, power button.
//!
//! Never: an action on a machine or on the box, a drawing (crate `panel`). The status view comes
//! from a [`ViewSource`], and [`Actions`] executes orders. Enter at [`front_panel::run`],
//! [`monitor::run`], [`serial::run`] and [`power_button::listen`].

pub mod front_panel;
pub mod keys;
pub mod monitor;
mod orders;
pub mod power_button;
pub mod serial;

use std::pin::Pin;

use panel::model::PanelOrder;
pub use status::source::ViewSource;

/// Executor of the orders that people give at the box.
pub trait Actions: Send + Sync + 'static {
    /// Executes an order. `place` is the name of the device in the log, such as `panel`.
    ///
    /// # Errors
    /// The order was not carried out; the reason is a sentence for the person at the device.
    fn carry_out<'a>(
        &'a self,
        order: PanelOrder,
        place: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
}
