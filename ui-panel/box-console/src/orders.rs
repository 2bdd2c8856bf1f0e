//! Orders under way. A loop that draws does not wait for an order, because a BMC may take long.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use panel::model::PanelOrder;

use crate::Actions;

/// Maximum number of orders under way at one device.
const ORDERS_MAX: usize = 8;

type Order<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Orders under way of one device.
pub struct Orders<'a> {
    actions: &'a dyn Actions,
    place: &'a str,
    running: Vec<(PanelOrder, Order<'a>)>,
}

impl<'a> Orders<'a> {
    /// Creates a list without orders. `place` is the name of the device in the log.
    pub fn new(actions: &'a dyn Actions, place: &'a str) -> Self {
        Self { actions, place, running: Vec::new() }
    }

    /// Begins an order, which proceeds while [`Orders::ended`] is awaited.
    ///
    /// # Errors
    /// Too many orders are under way; the reason is a sentence.
    pub fn begin(&mut self, order: PanelOrder) -> Result<(), String> {
        if self.running.len() >= ORDERS_MAX {
            return Err(format!("{ORDERS_MAX} actions are under way. Wait until one has ended."));
        }
        self.running.push((order.clone(), self.actions.carry_out(order, self.place)));
        Ok(())
    }

    /// Waits until an order has ended, and returns it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The order was refused; with the reason.
    pub async fn ended(&mut self) -> Result<PanelOrder, String> {
        poll_fn(|context| {
            for at in 0..self.running.len() {
                if let Poll::Ready(done) = self.running[at].1.as_mut().poll(context) {
                    let (order, _) = self.running.swap_remove(at);
                    return Poll::Ready(done.map(|()| order));
                }
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Mutex;

    use panel::model::{Action, PanelOrder};
    use tokio::sync::oneshot;

    use super::{ORDERS_MAX, Orders};
    use crate::Actions;

    /// Test double whose orders end when the test says so; each refusal is the text that it sends.
    #[derive(Default)]
    struct Waiting(Mutex<Vec<oneshot::Sender<String>>>);

    impl Actions for Waiting {
        fn carry_out<'a>(
            &'a self,
            _: PanelOrder,
            _: &'a str,
        ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
            let (ends, end) = oneshot::channel();
            self.0.lock().unwrap().push(ends);
            Box::pin(async { end.await.map_or(Ok(()), Err) })
        }
    }

    #[tokio::test]
    async fn a_slow_order_does_not_delay_the_end_of_another() {
        let actions = Waiting::default();
        let mut orders = Orders::new(&actions, "panel");
        for _ in 0..ORDERS_MAX {
            orders.begin(PanelOrder::Box(Action::Identify)).unwrap();
        }
        let more = orders.begin(PanelOrder::Box(Action::Identify)).unwrap_err();
        assert!(more.starts_with("8 actions are under way"), "{more}");
        let mut ends = std::mem::take(&mut *actions.0.lock().unwrap());
        ends.remove(5).send("no BMC".to_owned()).unwrap();
        assert_eq!(orders.ended().await, Err("no BMC".to_owned()));
        // A dropped sender ends its order without a refusal.
        drop(ends.remove(0));
        assert_eq!(orders.ended().await, Ok(PanelOrder::Box(Action::Identify)));
        assert_eq!(orders.running.len(), ORDERS_MAX - 2);
        orders.begin(PanelOrder::Box(Action::Rescan)).unwrap();
    }
}
