//! Tests of addresses from a real DHCP server (dnsmasq) and of fixed addresses, on a real link.
//! VLANs are not tested, because the kernel of a test machine may lack them.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::{Duration, Instant};

use platform::net::{
    Address, Addressing, ClientIdentity, InterfaceConfig, InterfaceSelector, configure, keep,
    leave_link_local, look, stand_in,
};
use stdx::MacAddr;
use stdx::testing::Wait;

/// Environment variable that is set inside the namespace.
const INSIDE: &str = "TINBOX_NET_INSIDE";
/// Environment variable with an address that another machine, the switch, also uses.
const TAKEN: &str = "TINBOX_NET_TAKEN";
/// Environment variable with the lease time in the syntax of dnsmasq, at least 2 minutes.
const LEASE: &str = "TINBOX_NET_LEASE";
/// Script that creates a network interface and a server at the other end of its cable. The named
/// namespaces are private to this namespace and end with it.
const NAMESPACE: &str = r#"
set -e
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip netns add switch
mount -t sysfs sysfs /sys
ip link add nuc address 52:54:00:77:00:01 type veth peer name port netns switch
ip -n switch link set port up
ip -n switch addr add 10.7.0.1/24 dev port
[ -z "$TINBOX_NET_TAKEN" ] || ip -n switch addr add $TINBOX_NET_TAKEN/16 dev port
ip netns exec switch dnsmasq --no-daemon --port=0 --conf-file=/dev/null --interface=port \
  --dhcp-range=10.7.0.9,10.7.0.9,255.255.255.0,$TINBOX_NET_LEASE \
  --dhcp-vendorclass=set:nuc,tinbox-test \
  --dhcp-ignore=tag:!nuc --dhcp-leasefile=/dev/null --log-dhcp --pid-file= &
until ip netns exec switch grep -q ':0043 ' /proc/net/udp; do kill -0 $!; sleep 0.1; done
resolv=$(mktemp); mount --bind $resolv /etc/resolv.conf
"$0" --exact "$1" --nocapture
ip -o addr show; ip route show; cat /etc/resolv.conf
"#;

/// Runs `configure(wanted)` in the namespace, and returns the resulting addresses, routes and name
/// servers.
fn after(test: &str, wanted: InterfaceConfig) -> String {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let configured = runtime.block_on(configure(wanted)).expect("an address");
        let seen = runtime.block_on(look()).expect("what there is");
        let nuc = seen.iter().find(|seen| seen.link.name == "nuc").expect("the card");
        let has = |ip| nuc.addresses.iter().any(|(address, _)| *address == IpAddr::V4(ip));
        assert!(nuc.mbps.is_some() && has(configured.address()), "{seen:?}");
        return String::new();
    }
    in_a_network(test, "")
}

/// Runs `test` in the namespace, where another machine uses the address `taken`.
fn in_a_network(test: &str, taken: &str) -> String {
    in_a_network_for(test, taken, "1h")
}

/// Runs `test` in the namespace with leases of the time `lease`.
fn in_a_network_for(test: &str, taken: &str, lease: &str) -> String {
    let environment = [(INSIDE, "1"), (TAKEN, taken), (LEASE, lease)];
    wire::rerun(NAMESPACE, &format!("net::{test}"), &environment)
}

fn wanted(addressing: Addressing) -> InterfaceConfig {
    let mac = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);
    let caller = ClientIdentity { class: "tinbox-test", name: "box-0001".to_owned() };
    InterfaceConfig { interface: InterfaceSelector::Mac(mac), vlan: None, addressing, caller }
}

/// Kills the DHCP server and waits for the end of the lease, two minutes: the address must then be
/// gone.
#[test]
fn an_address_whose_lease_has_ended_is_given_up() {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let configured = configure(wanted(Addressing::Dhcp)).await.expect("an address");
            let address = IpAddr::V4(configured.address());
            let killed = Command::new("pkill").args(["-KILL", "-x", "dnsmasq"]).status();
            assert!(killed.expect("pkill runs").success());
            let begun = Instant::now();
            tokio::spawn(keep(configured));
            let wait = Wait::limited("the end of the lease", LEASE_ENDS);
            loop {
                let seen = look().await.expect("what there is");
                let nuc = seen.iter().find(|seen| seen.link.name == "nuc").expect("the card");
                if nuc.addresses.iter().all(|(found, _)| *found != address) {
                    break;
                }
                tokio::time::sleep(wait.pause()).await;
            }
            let kept = begun.elapsed();
            assert!(kept > Duration::from_secs(110), "given up after {kept:?}");
        });
        return;
    }
    in_a_network_for("an_address_whose_lease_has_ended_is_given_up", "", "2m");
}

/// Limit for the two minutes of the lease and the last request before its end.
const LEASE_ENDS: Duration = Duration::from_secs(600);

#[test]
fn a_server_gives_an_address() {
    let text = after("a_server_gives_an_address", wanted(Addressing::Dhcp));
    if !text.is_empty() {
        assert!(text.contains("nuc    inet 10.7.0.9/24"), "{text}");
        assert!(text.contains("default via 10.7.0.1 dev nuc proto dhcp"), "{text}");
    }
}

#[test]
fn a_fixed_address_needs_no_server() {
    let fixed = Address {
        address: Ipv4Addr::new(10, 7, 0, 77),
        prefix: 16,
        router: Some(Ipv4Addr::new(10, 7, 0, 1)),
        name_servers: vec![Ipv4Addr::new(10, 7, 0, 53)],
    };
    let wanted = wanted(Addressing::Fixed(fixed));
    let text = after("a_fixed_address_needs_no_server", wanted);
    if !text.is_empty() {
        assert!(text.contains("nuc    inet 10.7.0.77/16"), "{text}");
        assert!(text.contains("default via 10.7.0.1 dev nuc"), "{text}");
        assert!(text.contains("nameserver 10.7.0.53"), "{text}");
    }
}

#[test]
fn without_a_server_an_address_is_link_local() {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let standing = tokio::spawn(stand_in(InterfaceSelector::Name("nuc".to_owned())));
            // The wait is 10 s for a server and 4.5 s for probes.
            let wait = Wait::new("an address");
            let address = loop {
                match link_local().await {
                    Some(address) => break address,
                    None => tokio::time::sleep(wait.pause()).await,
                }
            };
            println!("took {address}.");
            standing.abort();
            leave_link_local("nuc").await;
            assert_eq!(link_local().await, None, "a better address came");
        });
        return;
    }
    let took = |taken: &str| {
        let text = in_a_network("without_a_server_an_address_is_link_local", taken);
        let rest = text.split_once("took ").expect(&text).1;
        rest.split_once(".\n").expect(rest).0.to_owned()
    };
    let first = took("");
    assert!(first.starts_with("169.254."), "{first}");
    let second = took(&first);
    assert!(second.starts_with("169.254.") && second != first, "{first} is in use: {second}");
}

/// Returns the link-local address of the interface.
async fn link_local() -> Option<Ipv4Addr> {
    let seen = look().await.expect("what there is");
    let nuc = seen.into_iter().find(|seen| seen.link.name == "nuc").expect("the card");
    nuc.addresses.into_iter().find_map(|(address, _)| match address {
        IpAddr::V4(address) if address.is_link_local() => Some(address),
        _ => None,
    })
}
