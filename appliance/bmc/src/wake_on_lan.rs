//! Wake-on-LAN: magic packets as UDP broadcasts, which switch a machine on and nothing else.

mod packet;

use std::future::ready;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use stdx::{MacAddr, Secret};
use tokio::net::UdpSocket;

pub use packet::{SecureOn, magic_packet};

use crate::{
    BootControl, BootOverride, Capabilities, Confirmation, Driver, Endpoint, Error, Pending, Power,
    PowerAction, Protocol,
};

/// Waits before each repetition of a packet: three packets within a second, and one after two
/// seconds, because a link that has just come up loses the first packets.
const REPETITIONS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(400),
    Duration::from_millis(400),
    Duration::from_millis(1200),
];
/// Maximum time from a packet to the first request of the machine. A NUC needs up to a minute for
/// its memory test.
const SIGHTING: Duration = Duration::from_secs(120);

/// Addresses and form of the magic packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeOnLan {
    /// Hardware addresses of the machine's NICs. Every address gets a packet.
    pub macs: Vec<MacAddr>,
    /// SecureOn password, in the text form of [`SecureOn`]; `None` without a password.
    pub secure_on: Option<Secret>,
    /// UDP port of the packets, default [`WakeOnLan::PORT`].
    pub port: u16,
    /// Network interfaces that send the packets; empty for the route of the operating system.
    pub interfaces: Vec<String>,
}

impl WakeOnLan {
    /// UDP port `discard` (RFC 863), which common tools use for magic packets.
    pub const PORT: u16 = 9;
}

/// Driver of one machine by Wake-on-LAN.
#[derive(Debug)]
pub(crate) struct WakeOnLanDriver {
    endpoint: Endpoint,
}

impl WakeOnLanDriver {
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    async fn wake(&self) -> Result<(), Error> {
        let Protocol::WakeOnLan(options) = &self.endpoint.protocol else { return Ok(()) };
        if options.macs.is_empty() {
            return Err(Error::NoMac { address: self.endpoint.address.clone() });
        }
        let secure_on = options.secure_on.as_ref().map(|text| text.expose().parse::<SecureOn>());
        let secure_on = secure_on.transpose()?;
        let mut packets = Vec::new();
        for mac in &options.macs {
            packets.push(magic_packet(*mac, secure_on.as_ref()));
        }
        let failed = |interface: &str, source| Error::MagicPacket {
            interface: interface.to_owned(),
            source,
        };
        let mut sockets = Vec::new();
        let mut last = None;
        let names = options.interfaces.iter().map(|name| Some(name.as_str()));
        let route = options.interfaces.is_empty().then_some(None);
        for interface in names.chain(route) {
            match open(interface).await {
                Ok(socket) => sockets.push((interface.unwrap_or("its default route"), socket)),
                Err(error) => last = Some(failed(interface.unwrap_or("its default route"), error)),
            }
        }
        let mut is_sent = false;
        for pause in REPETITIONS {
            tokio::time::sleep(pause).await;
            for (interface, socket) in &sockets {
                for packet in &packets {
                    match socket.send_to(packet, (Ipv4Addr::BROADCAST, options.port)).await {
                        Ok(_) => is_sent = true,
                        Err(error) => last = Some(failed(interface, error)),
                    }
                }
            }
        }
        // An interface without a cable must not hide that another one has sent.
        match last {
            Some(error) if !is_sent => Err(error),
            _ => Ok(()),
        }
    }
}

/// Opens a socket that broadcasts on `interface`; `None` for the route of the operating system.
async fn open(interface: Option<&str>) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.set_broadcast(true)?;
    if let Some(interface) = interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    Ok(socket)
}

impl Driver for WakeOnLanDriver {
    fn name(&self) -> &'static str {
        "wake-on-lan"
    }

    fn capabilities(&self) -> Capabilities {
        let (boot, features) = (BootControl::None, Vec::new());
        Capabilities {
            power: &[PowerAction::On],
            boot,
            features,
            missing: Vec::new(),
            weakness: None,
        }
    }

    fn confirmation(&self) -> Confirmation {
        Confirmation::Sighting { within: SIGHTING }
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(ready(Ok(Power::Unknown)))
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        match action {
            PowerAction::On => Box::pin(self.wake()),
            action => Box::pin(ready(Err(Error::Unsupported { driver: self.name(), action }))),
        }
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        let (driver, device) = (self.name(), boot.device);
        let reason = "a magic packet has no boot device";
        Box::pin(ready(Err(Error::BootDevice { driver, device, reason })))
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        Box::pin(ready(Ok(None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Credentials};

    fn driver(macs: Vec<MacAddr>, secure_on: Option<&str>) -> WakeOnLanDriver {
        let (port, interfaces) = (WakeOnLan::PORT, vec!["absent0".to_owned()]);
        let options = WakeOnLan { macs, secure_on: secure_on.map(Secret::from), port, interfaces };
        WakeOnLanDriver::new(Endpoint {
            address: Address { host: "nuc1".into(), port: 0 },
            credentials: Credentials::default(),
            protocol: Protocol::WakeOnLan(Box::new(options)),
        })
    }

    #[tokio::test]
    async fn only_on_exists_and_the_state_is_not_known() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let driver = driver(vec![mac], None);
        assert_eq!(driver.power().await.unwrap(), Power::Unknown);
        assert_eq!(driver.capabilities().names(), ["on"]);
        let off = driver.set_power(PowerAction::Off).await.unwrap_err();
        assert_eq!(off.to_string(), "wake-on-lan does not support power off");
    }

    #[tokio::test(start_paused = true)]
    async fn a_packet_that_no_interface_sends_is_an_error() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let error = driver(vec![mac], None).set_power(PowerAction::On).await.unwrap_err();
        assert!(error.is_transient(), "the interface may come back");
        assert!(error.sentence().contains("absent0"), "{}", error.sentence());
        let error = driver(Vec::new(), None).set_power(PowerAction::On).await.unwrap_err();
        assert!(error.sentence().contains("wakeOnLAN.macs"), "{}", error.sentence());
        let error = driver(vec![mac], Some("s3cret")).set_power(PowerAction::On).await.unwrap_err();
        assert!(!error.sentence().contains("s3cret"), "{}", error.sentence());
    }
}
