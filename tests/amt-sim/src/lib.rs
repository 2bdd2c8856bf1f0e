//! Simulated management engine with Intel AMT, for cases that no emulator in a registry offers.
//! The simulator shares no code with our client. Clients that others wrote check it: Intel's
//! `go-wsman-messages`, Rufio's `iamt`, MeshCentral, `amt` and `napalm-amt`, and `amtterm`.
//!
//! Never: decides what a client should have sent, or controls a machine other than its [`Chassis`].
//! Enter at [`AmtSim`].

mod chassis;
mod firmware;
mod http;
mod instances;
mod login;
mod redirection;
mod soap;

use std::io::{BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::Result;
use bmc::{Address, Credentials, Endpoint, Fingerprint, Protocol, Security, Trust};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;

pub use chassis::{BootSource, Chassis, ChassisAction};
pub use redirection::SerialPort;

use firmware::{Firmware, Outcome};
use http::{Answer, HttpRequest};
use redirection::Options;

/// Behavior of the simulated engine. Tests change it while the simulator runs.
#[derive(Debug, Clone, Default)]
pub struct Behavior {
    /// True if the operating system runs Intel LMS, so that graceful states are offered.
    pub lms: bool,
    /// True while a session of KVM, serial-over-LAN or IDE-R is open.
    pub session_open: bool,
    /// True for an engine that answers 0 to a power-off that it refuses, as AMT 11.8.
    pub refuses_silently: bool,
    /// Return value of every power request, which is then not executed.
    pub power_return: Option<u32>,
    /// Return value of `SetBootConfigRole`, which is then not executed.
    pub role_return: Option<u32>,
    /// True for an engine that answers 0 and does nothing.
    pub lies: bool,
    /// Readings of the power state that show the old state after a change.
    pub late_readings: u32,
    /// True for an engine that executes power requests and ends the connection without an answer.
    pub loses_answers: bool,
    /// True for an engine that takes connections and never answers.
    pub asleep: bool,
    /// Consent that the engine requires: `OptInRequired` and `OptInState`.
    pub consent: (u32, u32),
    /// Classes that answer HTTP 400 with a page to `Enumerate`, as AMT 10.
    pub enumerations_refused: Vec<&'static str>,
    /// Classes that the firmware does not have.
    pub absent: Vec<&'static str>,
    /// True for the content type `application/octet-stream`, as AMT 11.8.
    pub octet_stream: bool,
    /// Requests after which a nonce is stale; 0 for no limit.
    pub nonce_uses: u32,
    /// Requests after which the engine closes the connection; 0 for no limit.
    pub connection_uses: u32,
    /// Items of one page of an enumeration; 0 for no limit.
    pub page_items: usize,
    /// Records of the event log in one answer; 0 for no limit.
    pub log_page: usize,
    /// True for an engine that adds empty records to its event log, as after a clear.
    pub log_is_padded: bool,
    /// True for a user without the permission for redirection.
    pub redirection_denied: bool,
    /// Status of every answer after the login, with a page in HTML.
    pub page: Option<u16>,
    /// Body of every answer with status 200, instead of the right one.
    pub garbled: Option<String>,
    /// True for an engine without a login by digest for redirection.
    pub no_digest: bool,
    /// Status of the start of serial-over-LAN; 0 is success.
    pub sol_status: u8,
    /// UEFI HTTPS boot of the firmware, and its switch in the firmware setup.
    pub https_boot: HttpsBoot,
}

/// UEFI HTTPS boot (one-click recovery) of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpsBoot {
    /// Firmware of AMT 12: neither the capability nor the settings.
    #[default]
    Absent,
    /// Firmware with the capability, whose switch in the firmware setup is off.
    SwitchedOff,
    /// Firmware that boots from a URL.
    Enabled,
}

/// A running engine with its machine, ended when dropped.
pub struct AmtSim {
    address: SocketAddr,
    fingerprint: Option<Fingerprint>,
    firmware: Arc<Mutex<Firmware>>,
    serial: Arc<SerialPort>,
    stop: Arc<AtomicBool>,
    threads: Vec<(TcpListener, JoinHandle<()>)>,
}

impl AmtSim {
    /// Name of the only user.
    pub const USERNAME: &str = "admin";
    /// Password of the only user.
    pub const PASSWORD: &str = "P@ssw0rd1";

    /// Starts an engine without TLS on a loopback address of its own. The machine is off.
    pub fn start(behavior: Behavior) -> Result<Self> {
        Self::listen(loopback_address()?.into(), behavior, None)
    }

    /// Starts an engine without TLS that controls `chassis`. The listeners are bound to the
    /// standard ports of WS-Management and redirection.
    pub fn start_for(listeners: [TcpListener; 2], chassis: Arc<dyn Chassis>) -> Result<Self> {
        Self::serve(listeners, Behavior::default(), Some(chassis), None)
    }

    /// Starts an engine with TLS and a new certificate.
    pub fn start_with_tls(behavior: Behavior) -> Result<Self> {
        Self::start_with_tls_at(loopback_address()?.into(), behavior)
    }

    /// Starts an engine with TLS and a new certificate at the address of an earlier one.
    pub fn start_with_tls_at(address: IpAddr, behavior: Behavior) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(["amt".to_owned(), address.to_string()])?;
        let certificate = made.cert.der().clone();
        let fingerprint = Fingerprint::of(&certificate);
        let key = made.signing_key.serialize_der();
        let key = key.try_into().map_err(|error| anyhow::anyhow!("{error}"))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        Self::listen(address, behavior, Some((Arc::new(config), fingerprint)))
    }

    fn listen(
        address: IpAddr,
        behavior: Behavior,
        tls: Option<(Arc<ServerConfig>, Fingerprint)>,
    ) -> Result<Self> {
        // Intel's client knows only the standard ports.
        let port = if tls.is_some() { Security::TLS_PORT } else { Security::PLAIN_PORT };
        let bind = |port| TcpListener::bind((address, port));
        Self::serve([bind(port)?, bind(port + 2)?], behavior, None, tls)
    }

    fn serve(
        [requests, redirection]: [TcpListener; 2],
        behavior: Behavior,
        chassis: Option<Arc<dyn Chassis>>,
        tls: Option<(Arc<ServerConfig>, Fingerprint)>,
    ) -> Result<Self> {
        let address = requests.local_addr()?;
        let serial = Arc::new(SerialPort::default());
        let mut firmware = Firmware::new(behavior, Arc::clone(&serial));
        firmware.chassis = chassis;
        firmware.has_tls = tls.is_some();
        let firmware = Arc::new(Mutex::new(firmware));
        let stop = Arc::new(AtomicBool::new(false));
        let fingerprint = tls.as_ref().map(|(_, fingerprint)| *fingerprint);
        let config = tls.map(|(config, _)| config);
        let threads = [(requests, serve as Serve), (redirection, redirect as Serve)];
        let mut running = Vec::new();
        for (listener, serve) in threads {
            let (firmware, stop) = (Arc::clone(&firmware), Arc::clone(&stop));
            let config = config.clone();
            let kept = listener.try_clone()?;
            let thread = std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    let (firmware, config) = (Arc::clone(&firmware), config.clone());
                    std::thread::spawn(move || connection(stream, config, &firmware, serve));
                }
            });
            running.push((kept, thread));
        }
        Ok(Self { address, fingerprint, firmware, serial, stop, threads: running })
    }

    /// Address of the engine.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Fingerprint of the certificate; `None` without TLS.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Endpoint of the engine, without a pin.
    pub fn endpoint(&self) -> Endpoint {
        let security = match self.fingerprint {
            Some(_) => Security::Tls(Trust::FirstUse),
            None => Security::Plain,
        };
        Endpoint {
            address: Address { host: self.address.ip().to_string(), port: self.address.port() },
            credentials: Credentials {
                username: Self::USERNAME.into(),
                password: Self::PASSWORD.into(),
            },
            protocol: Protocol::Amt(security.into()),
        }
    }

    /// Changes the behavior for all later requests.
    pub fn behave(&self, change: impl FnOnce(&mut Behavior)) {
        change(&mut self.firmware().behavior);
    }

    /// Power state of the machine (`PowerState`), without the delay of readings.
    pub fn power(&self) -> u32 {
        self.firmware().power
    }

    /// Changes the power state, as the power button or the operating system does.
    pub fn set_power(&self, state: u32) {
        self.firmware().power = state;
    }

    /// Puts the operating system in modern standby (3) or out of it (2).
    pub fn set_standby(&self, state: u32) {
        self.firmware().standby = state;
    }

    /// State of the redirection service (`EnabledState`).
    pub fn redirection(&self) -> u32 {
        self.firmware().redirection
    }

    /// Changes the state of the redirection service, and of its listener.
    pub fn set_redirection(&self, state: u32, listens: bool) {
        let mut firmware = self.firmware();
        (firmware.redirection, firmware.listens) = (state, listens);
    }

    /// Boot devices that the machine has booted from, first to last. `default` stands for the
    /// firmware's own order.
    pub fn boots(&self) -> Vec<String> {
        self.firmware().boots.clone()
    }

    /// Adds a record to the event log.
    pub fn log(&self, record: [u8; 21]) {
        self.firmware().records.push(record);
    }

    /// Value of a field of AMT_BootSettingData.
    pub fn boot_setting(&self, name: &str) -> String {
        self.firmware().boot_setting(name).to_owned()
    }

    /// Trusted root certificates, in Base64.
    pub fn roots(&self) -> Vec<String> {
        self.firmware().roots.clone()
    }

    /// Last parameters of a boot by UEFI HTTPS, in Base64; empty without.
    pub fn boot_parameters(&self) -> String {
        self.firmware().boot_parameters.clone()
    }

    /// Requests that were executed, as `Class.Verb`, with the number for states.
    pub fn executed(&self) -> Vec<String> {
        self.firmware().executed.clone()
    }

    /// Number of logins that were refused, not counting requests without a login.
    pub fn refused_logins(&self) -> usize {
        self.firmware().login.refused
    }

    /// Serial port of the machine.
    pub fn serial(&self) -> &SerialPort {
        &self.serial
    }

    /// Number of connections that were opened.
    pub fn connections(&self) -> usize {
        self.firmware().streams.len()
    }

    fn firmware(&self) -> MutexGuard<'_, Firmware> {
        locked(&self.firmware)
    }
}

impl Drop for AmtSim {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for stream in self.firmware().streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for (listener, thread) in self.threads.drain(..) {
            // Linux ends a waiting `accept`. A connection might not get here from this namespace.
            let _ = SockRef::from(&listener).shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

/// Random address of the loopback network; the chance of a collision is one in millions.
fn loopback_address() -> Result<Ipv4Addr> {
    let mut random = [0; 3];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let [a, b, c] = random;
    // Outside of 127.0.0.0/16, which people use by hand, and without a 0 or 255 as the last byte.
    Ok(Ipv4Addr::new(127, 16 | (a & 0x6f), b, c.clamp(1, 254)))
}

fn locked(firmware: &Mutex<Firmware>) -> MutexGuard<'_, Firmware> {
    firmware.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connection with or without TLS.
trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// Serves a connection until its end. The second argument is the connection under TLS.
type Serve = fn(Box<dyn Connection>, &TcpStream, &Mutex<Firmware>) -> std::io::Result<()>;

fn connection(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    firmware: &Mutex<Firmware>,
    serve: Serve,
) {
    let Ok(control) = stream.try_clone() else { return };
    let Ok(kept) = stream.try_clone() else { return };
    locked(firmware).streams.push(kept);
    // A client that went away ends the connection.
    let _ = match tls.map(ServerConnection::new) {
        None => serve(Box::new(stream), &control, firmware),
        Some(Ok(connection)) => {
            serve(Box::new(StreamOwned::new(connection, stream)), &control, firmware)
        }
        Some(Err(_)) => Ok(()),
    };
    let _ = control.shutdown(Shutdown::Both);
}

fn redirect(
    stream: Box<dyn Connection>,
    control: &TcpStream,
    firmware: &Mutex<Firmware>,
) -> std::io::Result<()> {
    let (serial, options) = {
        let firmware = locked(firmware);
        if !firmware.offers_console() {
            return Ok(());
        }
        let logins = if firmware.behavior.no_digest { vec![1] } else { vec![1, 4] };
        let options = Options { logins, sol_status: firmware.behavior.sol_status };
        (Arc::clone(&firmware.serial), options)
    };
    redirection::serve(stream, control, &serial, &options)
}

fn serve(
    stream: Box<dyn Connection>,
    _: &TcpStream,
    firmware: &Mutex<Firmware>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut count = 0;
    while let Some(request) = HttpRequest::read(&mut reader)? {
        count += 1;
        let outcome = locked(firmware).answer(&request);
        let mut answer = match outcome {
            Outcome::Answer(answer) => answer,
            Outcome::Cut => return Ok(()),
            Outcome::Silence => {
                // Holds the connection until the client gives up.
                let _ = std::io::copy(&mut reader, &mut std::io::sink());
                return Ok(());
            }
        };
        let uses = locked(firmware).behavior.connection_uses;
        answer.closes |= request.closes || (uses > 0 && count >= uses);
        Answer::write(&answer, reader.get_mut())?;
        if answer.closes {
            return Ok(());
        }
    }
    Ok(())
}
