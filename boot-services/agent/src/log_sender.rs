//! Sends log lines to the box as syslog messages (RFC 5424) over UDP (RFC 5426).
//!
//! The sender must never: delay the code that logs, or log a line itself, because that line would
//! return to the sender.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tracing::Level;

/// Maximum messages in the queue, including those from before the network is configured. Further
/// lines are only on the console.
const QUEUE_LINES: usize = 256;
/// Maximum bytes of a message with its header, which every receiver accepts over IPv6 and which
/// needs no fragments (RFC 5426, section 3.2). The rest of a longer line is cut off.
const MAX_MESSAGE: usize = 1180;
/// UDP port of syslog (RFC 5426, section 3.3).
const PORT: u16 = 514;
/// Facility of system daemons (RFC 5424, table 1).
const DAEMON: u8 = 3;
/// Delay after a failed name lookup or a failed send.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Maximum attempts to send one message; after the last one, the message is dropped.
const SEND_ATTEMPTS: u32 = 15;

/// Sending end of the queue.
#[derive(Debug)]
pub struct LogSender(Sender<String>);

/// Receiving end of the queue. Without it, the sender drops all lines.
#[derive(Debug)]
pub struct LogQueue(Receiver<String>);

/// Creates the queue. Needs no tokio runtime.
pub fn queue() -> (LogSender, LogQueue) {
    let (messages, queue) = mpsc::channel(QUEUE_LINES);
    (LogSender(messages), LogQueue(queue))
}

impl LogSender {
    /// Queues a line; drops the line if the queue is full. Never waits.
    pub fn push(&self, level: Level, text: &str) {
        // The console has the line in any case.
        let _ = self.0.try_send(message(level, text));
    }
}

impl LogQueue {
    /// Sends all lines to `host`, an IP address or a name, until the agent ends. The network must
    /// be configured; the lookup of a name is repeated until it succeeds.
    pub async fn send(self, host: String) {
        let (socket, address) = loop {
            match open(&host).await {
                Ok(opened) => break opened,
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        };
        self.send_from(&socket, address).await;
    }

    /// Returns the next message. `None`: the sending end is gone and the queue is empty.
    pub(crate) async fn receive(&mut self) -> Option<String> {
        self.0.recv().await
    }

    /// Sends all lines, until the sending end is gone and the queue is empty.
    async fn send_from(mut self, socket: &UdpSocket, address: SocketAddr) {
        while let Some(message) = self.receive().await {
            for _ in 0..SEND_ATTEMPTS {
                if socket.send_to(message.as_bytes(), address).await.is_ok() {
                    break;
                }
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

async fn open(host: &str) -> io::Result<(UdpSocket, SocketAddr)> {
    let found = tokio::net::lookup_host((host, PORT)).await?.next();
    let address = found.ok_or(io::ErrorKind::NotFound)?;
    let local: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Ok((UdpSocket::bind((local, 0)).await?, address))
}

/// Formats a line as a message without time and host: the machine's clock may be wrong, and the box
/// finds the machine by its address.
fn message(level: Level, text: &str) -> String {
    // Severities of RFC 5424, table 2.
    let severity = match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    };
    let mut message = format!("<{}>1 - - tinbox-agent - - - {text}", DAEMON * 8 + severity);
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    message
}

#[cfg(test)]
mod tests {
    use syslog::{Severity, parse};
    use tokio::net::UdpSocket;
    use tracing::Level;

    use super::{MAX_MESSAGE, QUEUE_LINES, message, queue};

    #[test]
    fn the_box_reads_a_line_as_it_was_logged() {
        for (level, severity) in [
            (Level::ERROR, Severity::Error),
            (Level::WARN, Severity::Warning),
            (Level::INFO, Severity::Info),
            (Level::DEBUG, Severity::Debug),
        ] {
            let text = "action ended: [a] action=\"write: 1\" <2> état=SUCCESS";
            let line = parse(message(level, text).as_bytes());
            assert_eq!((line.severity, line.facility), (Some(severity), Some(3)));
            assert_eq!((line.program.as_str(), line.text.as_str()), ("tinbox-agent", text));
            assert_eq!((line.time.as_str(), line.host.as_str()), ("", ""));
        }
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        for offset in 0..2 {
            let message = message(Level::INFO, &("x".repeat(offset) + &"é".repeat(MAX_MESSAGE)));
            assert!((MAX_MESSAGE - 1..=MAX_MESSAGE).contains(&message.len()));
            assert!(parse(message.as_bytes()).text.ends_with('é'));
        }
    }

    #[tokio::test]
    async fn lines_from_before_the_network_arrive_and_a_full_queue_drops_lines() {
        let (sender, lines) = queue();
        for number in 0..=QUEUE_LINES {
            sender.push(Level::INFO, &format!("line {number}"));
        }
        let the_box = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = the_box.local_addr().unwrap();
        let sending = tokio::spawn(async move { lines.send_from(&socket, address).await });
        let mut datagram = [0; MAX_MESSAGE];
        for number in 0..QUEUE_LINES {
            let length = the_box.recv(&mut datagram).await.unwrap();
            assert_eq!(parse(&datagram[..length]).text, format!("line {number}"));
        }
        sender.push(Level::WARN, "the last line");
        let length = the_box.recv(&mut datagram).await.unwrap();
        assert_eq!(parse(&datagram[..length]).text, "the last line");
        drop(sender);
        sending.await.unwrap();
    }
}
