//! Serial-over-LAN against OpenIPMI's `ipmi_sim`, whose serial port is a TCP connection here.

use std::io::Write as _;

use bmc::{CipherSuite, Driver, IpmiError, registry};
use peers::{IpmiSim, Ipmitool};
use stdx::testing::PATIENCE;
use tokio::io::{AsyncReadExt, AsyncWriteExt as _, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::cause;

/// A BMC and the machine's end of its serial port.
async fn start() -> (IpmiSim, TcpStream, Box<dyn Driver>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serial = listener.local_addr().unwrap();
    let sim = tokio::task::spawn_blocking(move || IpmiSim::start_with_serial(serial).unwrap());
    let (machine, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let sim = sim.await.unwrap();
    let driver = registry::open(sim.endpoint(Some(CipherSuite::Three)));
    (sim, machine, driver)
}

/// Reads until the text ends with `end`.
async fn read_to(from: &mut (impl AsyncReadExt + Unpin), end: &str) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while !bytes.ends_with(end.as_bytes()) {
            bytes.push(from.read_u8().await.unwrap());
        }
    };
    let found = timeout(PATIENCE, read).await.is_ok();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(found, "expected {end:?}, found {text:?}");
    text
}

#[tokio::test]
async fn what_is_typed_and_printed_arrives_unchanged() {
    let (_sim, mut machine, driver) = start().await;
    let mut console = driver.console().await.unwrap();
    machine.write_all(b"login: ").await.unwrap();
    read_to(&mut console, "login: ").await;
    console.write_all(b"root\r").await.unwrap();
    assert_eq!(read_to(&mut machine, "\r").await, "root\r");

    // More than the sequence numbers and the size of one packet in both directions, with all bytes.
    let every: Vec<u8> = (0..=u8::MAX).cycle().take(20_000).collect();
    let (mut out, mut back) = (vec![0; every.len()], vec![0; every.len()]);
    let (mut from_console, mut to_console) = tokio::io::split(console);
    let (mut from_machine, mut to_machine) = machine.split();
    let both = async {
        tokio::join!(
            async { to_machine.write_all(&every).await.unwrap() },
            async { to_console.write_all(&every).await.unwrap() },
            async { from_console.read_exact(&mut out).await.unwrap() },
            async { from_machine.read_exact(&mut back).await.unwrap() },
        )
    };
    timeout(PATIENCE, both).await.unwrap();
    assert!(out == every && back == every);
    // Power commands have a session of their own.
    driver.power().await.unwrap();
}

#[tokio::test]
async fn one_session_at_a_time_and_the_next_one_after_its_end() {
    let (_sim, mut machine, driver) = start().await;
    let console = driver.console().await.unwrap();
    let second = driver.console().await.unwrap_err();
    assert!(
        matches!(cause(&second), IpmiError::ConsoleBusy { .. }) && second.is_transient(),
        "{second}"
    );
    drop(console);
    let mut next = timeout(PATIENCE, open(driver.as_ref())).await.unwrap();
    machine.write_all(b"again$").await.unwrap();
    read_to(&mut next, "again$").await;
}

#[tokio::test]
async fn ipmitool_and_the_driver_exclude_each_other_and_the_next_one_follows() {
    let (sim, mut machine, driver) = start().await;
    let tool = Ipmitool::new(&sim.endpoint(Some(CipherSuite::Three)), CipherSuite::Three).unwrap();
    // The client of a person has the console until it is closed with its escape.
    let mut person = tool.start("sol activate").unwrap();
    let mut keys = person.stdin.take().unwrap();
    keys.write_all(b"hello$").unwrap();
    assert_eq!(read_to(&mut machine, "hello$").await, "hello$");
    let busy = driver.console().await.unwrap_err();
    assert!(matches!(cause(&busy), IpmiError::ConsoleBusy { .. }), "{busy}");
    keys.write_all(b"\r~.").unwrap();
    let mut console = timeout(PATIENCE, open(driver.as_ref())).await.unwrap();
    tokio::task::spawn_blocking(move || person.wait().unwrap()).await.unwrap();
    machine.write_all(b"ours$").await.unwrap();
    read_to(&mut console, "ours$").await;

    let refused = tokio::task::spawn_blocking(move || tool.run("sol activate")).await.unwrap();
    let refused = format!("{:#}", refused.unwrap_err());
    assert!(refused.contains("SOL payload already active on another session"), "{refused}");
    machine.write_all(b"still$").await.unwrap();
    read_to(&mut console, "still$").await;
}

/// Opens the console as soon as the other client has closed it.
async fn open(driver: &dyn Driver) -> DuplexStream {
    loop {
        match driver.console().await {
            Ok(console) => break console,
            Err(error) => {
                assert!(matches!(cause(&error), IpmiError::ConsoleBusy { .. }), "{error}")
            }
        }
    }
}
