//! The route from the far segment to the box: a router with ISC's DHCP relay agent.

use std::net::Ipv4Addr;

use super::wait_for_log;
use crate::config::Segment;
use crate::{BOX_ADDRESS, BoxProcess, BoxProgram, Error, Host, Rack, children};

/// A router between the segments that relays DHCP to the box. Dropping it ends the relay agent.
#[derive(Debug)]
pub struct Relay {
    /// The router: 10.77.0.254 and 10.78.0.1.
    pub host: Host,
    process: BoxProcess,
}

impl Relay {
    /// Address of the relay on the far segment: the segment's router, and the `giaddr` of relayed
    /// messages.
    pub const FAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
    /// Address of the relay on the box's segment.
    pub const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);

    /// Connects the two segments of `rack` and gives the box a route to the far segment.
    ///
    /// # Errors
    /// dhcrelay is not installed, or does not start.
    pub fn start(rack: &Rack) -> Result<Self, Error> {
        let legs = [(Segment::Near, Self::NEAR), (Segment::Far, Self::FAR)];
        let host = rack.add_host("relay", &legs)?;
        let mut forward = host.command("sysctl");
        forward.args(["-qw", "net.ipv4.ip_forward=1"]);
        children::run(forward, "")?;
        let mut route = rack.box_command("ip");
        route.args(["route", "add", "10.78.0.0/24", "via", &Self::NEAR.to_string()]);
        children::run(route, "")?;
        // -a: the relay adds option 82, which a server must return (RFC 3046 section 2.2).
        let program = BoxProgram::new("dhcrelay", rack.dir().join("dhcrelay.log"))
            .args(["-4", "-d", "-a", "-id", "eth1", "-iu", "eth0"])
            .args(["-pf", "/dev/null", &BOX_ADDRESS.to_string()]);
        let mut process = host.spawn(program)?;
        wait_for_log(&mut process, "dhcrelay", "Sending on   Socket/fallback")?;
        Ok(Self { host, process })
    }

    /// Process of the relay agent.
    pub fn process(&mut self) -> &mut BoxProcess {
        &mut self.process
    }
}
