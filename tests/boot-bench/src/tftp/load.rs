//! Clients of a TFTP server, many in one thread, which follow RFC 7440 section 4. They acknowledge
//! at a window's end and at a gap, and drop packets at a given rate.

use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::future::try_join_all;
use netboot::tftp::packet::Packet;
use tokio::net::UdpSocket;

use crate::server::{CLIENT_CORE, HOST, Server, client_socket};

/// Payload of an Ethernet frame after the headers of IPv4, UDP and TFTP, in bytes.
const BLKSIZE: usize = 1468;
/// Timeout after which a client repeats its last packet, as boot ROMs do.
const CLIENT_TIMER: Duration = Duration::from_secs(1);
/// Timeout of a transfer.
const LIMIT: Duration = Duration::from_secs(120);

/// Load for a server.
pub struct Load {
    pub clients: usize,
    pub file: &'static str,
    pub window: u16,
    /// Packets that a client drops, of ten thousand received.
    pub loss: u32,
}

/// Cost of a load.
pub struct Took {
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub megabytes: f64,
}

impl Load {
    /// Runs all clients at once, until each has its file.
    ///
    /// # Errors
    /// A transfer fails.
    pub fn run(&self, server: &Server, port: u16) -> Result<Took> {
        hold_to_core()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let before = server.cpu()?;
        let start = Instant::now();
        let received = runtime.block_on(async {
            let to = SocketAddr::from((HOST, port));
            let clients = (0..self.clients).map(|number| self.client(number, to));
            tokio::time::timeout(LIMIT, try_join_all(clients)).await.context("it took too long")?
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let cpu_seconds = (server.cpu()? - before).as_secs_f64();
        let megabytes = received.iter().sum::<usize>() as f64 / 1e6;
        Ok(Took { seconds, cpu_seconds, megabytes })
    }

    async fn client(&self, number: usize, to: SocketAddr) -> Result<usize> {
        let socket = client_socket(number + 1)?;
        socket.set_nonblocking(true)?;
        let mut client = Client {
            socket: UdpSocket::from_std(socket)?,
            to,
            dice: number as u64 + 1,
            loss: self.loss,
            window: 1,
            received: 0,
            bytes: 0,
            in_window: 0,
            gap_said: false,
            last_word: self.request(),
        };
        client.say().await?;
        let mut datagram = vec![0; 2048];
        while !client.step(&mut datagram).await? {}
        Ok(client.bytes)
    }

    fn request(&self) -> Vec<u8> {
        let mut text = format!("{}\0octet\0blksize\0{BLKSIZE}\0", self.file);
        if self.window > 1 {
            text += &format!("windowsize\0{}\0", self.window);
        }
        [&[0, 1], text.as_bytes()].concat()
    }
}

struct Client {
    socket: UdpSocket,
    /// Destination: the server's port, and after the server's first answer the port of the
    /// transfer.
    to: SocketAddr,
    dice: u64,
    loss: u32,
    /// Window size that the server granted.
    window: u64,
    received: u64,
    bytes: usize,
    in_window: u64,
    gap_said: bool,
    last_word: Vec<u8>,
}

impl Client {
    async fn say(&self) -> Result<()> {
        self.socket.send_to(&self.last_word, self.to).await.map(drop).context("cannot send")
    }

    async fn acknowledge(&mut self) -> Result<()> {
        let [.., high, low] = self.received.to_be_bytes();
        self.last_word = vec![0, 4, high, low];
        self.in_window = 0;
        self.say().await
    }

    fn loses(&mut self) -> bool {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.dice >> 33) % 10_000) < self.loss.into()
    }

    /// Handles one packet; true when the file is complete.
    async fn step(&mut self, datagram: &mut [u8]) -> Result<bool> {
        let heard = match self.socket.try_recv_from(datagram) {
            Ok(heard) => heard,
            Err(_) => {
                let heard = self.socket.recv_from(datagram);
                match tokio::time::timeout(CLIENT_TIMER, heard).await {
                    Ok(heard) => heard?,
                    Err(_) => {
                        self.say().await?;
                        return Ok(false);
                    }
                }
            }
        };
        let (length, from) = heard;
        if self.loses() {
            return Ok(false);
        }
        self.to = from;
        match Packet::parse(&datagram[..length])? {
            Packet::OptionAck(granted) if self.received == 0 => {
                ensure!(granted.blksize == Some(BLKSIZE as u16), "another block size was granted");
                self.window = granted.windowsize.unwrap_or(1).into();
                self.acknowledge().await?;
            }
            Packet::Data { block, payload } => return self.data(block, payload.len()).await,
            Packet::Error { message, .. } => bail!("the server refused: {message}"),
            _ => {}
        }
        Ok(false)
    }

    async fn data(&mut self, block: u16, length: usize) -> Result<bool> {
        let low = |number: u64| (number & 0xffff) as u16;
        if block == low(self.received + 1) {
            self.received += 1;
            self.bytes += length;
            self.in_window += 1;
            self.gap_said = false;
            let ended = length < BLKSIZE;
            if ended || self.in_window == self.window {
                self.acknowledge().await?;
            }
            return Ok(ended);
        }
        // The window's last block again, or a block after a gap: acknowledge the received blocks,
        // once per gap.
        if block == low(self.received) || !self.gap_said {
            self.gap_said = block != low(self.received);
            self.acknowledge().await?;
        }
        Ok(false)
    }
}

/// Pins this thread to the clients' core.
fn hold_to_core() -> Result<()> {
    let id = std::process::id().to_string();
    let mut taskset = std::process::Command::new("taskset");
    let output = taskset.args(["-c", "-p", CLIENT_CORE, &id]).output().context("taskset")?;
    ensure!(output.status.success(), "cannot stay on core {CLIENT_CORE}");
    Ok(())
}

/// Cost of sending without a server: CPU milliseconds per megabyte, one datagram at a time, to a
/// socket that no program reads.
///
/// # Errors
/// The sockets cannot be created.
pub fn floor() -> Result<f64> {
    const MEGABYTES: usize = 256;
    hold_to_core()?;
    let sink = StdSocket::bind((HOST, 0))?;
    let sender = StdSocket::bind((HOST, 0))?;
    sender.connect(sink.local_addr()?)?;
    let datagram = [7; BLKSIZE];
    let start = own_cpu()?;
    for _ in 0..MEGABYTES * 1_000_000 / BLKSIZE {
        sender.send(&datagram).context("cannot send")?;
    }
    Ok((own_cpu()? - start).as_secs_f64() * 1e3 / MEGABYTES as f64)
}

/// CPU time of this thread, from the first field of the file, in nanoseconds.
fn own_cpu() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().context("schedstat is empty")?;
    Ok(Duration::from_nanos(first.parse()?))
}
