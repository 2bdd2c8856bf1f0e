//! The network between an agent and the box: bytes arrive late and in order, and connections break.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::world::World;

/// Bytes in transit, in each direction.
const UNDER_WAY: usize = 64 << 10;

/// Queue of connections that the running box accepts.
pub type Front = mpsc::Sender<DuplexStream>;

/// Returns an agent's end of a new connection. The connection ends at once when the box is down or
/// its backlog is full.
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
