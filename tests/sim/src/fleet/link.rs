//! The wire between an agent and the box: bytes arrive late and in order, and connections break.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::world::World;

/// Bytes that are under way each way.
const UNDER_WAY: usize = 64 << 10;

/// Where the box accepts, as long as it lives.
pub type Front = mpsc::Sender<DuplexStream>;

/// An agent's end of a new connection; one that ends at once when nobody accepts,
/// or too many wait to be.
pub fn connect(world: &Arc<World>) -> DuplexStream {
    let (near, near_wire) = tokio::io::duplex(UNDER_WAY);
    let (far, far_wire) = tokio::io::duplex(UNDER_WAY);
    let is_accepted = world.front().is_some_and(|front| front.try_send(far).is_ok());
    if is_accepted {
        tokio::spawn(carry(Arc::clone(world), near_wire, far_wire));
    }
    near
}

async fn carry(world: Arc<World>, near: DuplexStream, far: DuplexStream) {
    let ((from_near, to_near), (from_far, to_far)) =
        (tokio::io::split(near), tokio::io::split(far));
    let life = world.chance.life(world.chance.faults().cut);
    let cut = async {
        match life {
            Some(life) => tokio::time::sleep(life).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = copy(&world, from_near, to_far) => {}
        () = copy(&world, from_far, to_near) => {}
        () = cut => world.count(|summary| summary.cuts += 1),
        () = world.cutting.notified() => world.count(|summary| summary.cuts += 1),
    }
}

async fn copy(world: &World, mut from: ReadHalf<DuplexStream>, mut to: WriteHalf<DuplexStream>) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        world.chance.delay().await;
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
