//! Tests DHCP clients of operating systems with a pool, over a veth pair: leases, renewals,
//! releases, refusals and restarts.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Stdio};

use dhcp::{Config, DhcpEvent, Mode, Netboot, Range, Subnet};
use stdx::MacAddr;
use stdx::testing::{PATIENCE, until};
use tempfile::TempDir;

use crate::rack::{ADDRESS, MAC, SERVER, Service, Wire, machine, sh};

const GUEST: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 9]);

fn at(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, last)
}

/// Wire with an unknown machine, folder for files, and service with a pool from a given address.
struct Bench {
    wire: Wire,
    folder: TempDir,
    service: Service,
}

impl Bench {
    fn new() -> Self {
        let wire = Wire::new();
        sh(&format!("ip -n {} link set nuc0 address {GUEST}", wire.rack_space));
        let folder = tempfile::tempdir().unwrap();
        let service = serve(&wire, folder.path(), 100);
        Self { wire, folder, service }
    }

    /// Restarts the service with the same leases and a pool from another address.
    fn restarted(self, first: u8) -> Self {
        let Self { wire, folder, service } = self;
        service.stop().unwrap();
        let service = serve(&wire, folder.path(), first);
        Self { wire, folder, service }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn saw(&self, what: &str, is: impl Fn(&DhcpEvent) -> bool) {
        until(what, || self.service.events.all().iter().any(&is));
    }

    fn acked(&self, address: Ipv4Addr) -> usize {
        let is_ack = acked(address);
        self.service.events.all().iter().filter(|event| is_ack(event)).count()
    }

    /// Runs dhclient until it has a lease (`-1`) or has released it (`-r`).
    fn dhclient(&self, what: &str) {
        let (config, secs) = (self.file("dhclient.conf"), PATIENCE.as_secs());
        std::fs::write(&config, format!("timeout {secs};\nreboot {secs};\n")).unwrap();
        let status = self
            .wire
            .rack("dhclient")
            .args(["-4", what, "-sf", "/bin/true", "-cf", &config])
            .args(["-lf", &self.file("dhclient.leases"), "-pf", &self.file("dhclient.pid"), "nuc0"])
            .status()
            .expect("isc-dhcp-client is installed");
        assert!(status.success(), "{what}: {:?}", self.service.events.all());
    }

    /// Sets the interface's address, as the client's script would: a renewal and a release are
    /// unicast.
    fn configure(&self, address: Ipv4Addr) {
        sh(&format!("ip -n {} addr replace {address}/24 dev nuc0", self.wire.rack_space));
    }

    fn addresses(&self) -> String {
        let shown = self.wire.rack("ip").args(["-4", "-oneline", "addr", "show"]).output();
        String::from_utf8_lossy(&shown.unwrap().stdout).into_owned()
    }

    /// Ends the dhclient that keeps running to renew the lease.
    fn end_dhclient(&self) {
        self.dhclient("-x");
    }
}

fn serve(wire: &Wire, folder: &Path, first: u8) -> Service {
    let mut config = Config::new("box0", SERVER);
    config.mode = Mode::Pool;
    let ranges = vec![Range { first: at(first), last: at(first + 9) }];
    config.subnets = vec![Subnet {
        ranges,
        gateway: Some(SERVER),
        domain_name: Some("pool.example".to_owned()),
        ..Subnet::new("10.77.0.0/24".parse().unwrap())
    }];
    let leases = folder.join("leases.redb");
    let service = Service::keeping(wire, machine(Netboot::Allowed), config, Some(&leases));
    service.listens(wire);
    service
}

fn acked(address: Ipv4Addr) -> impl Fn(&DhcpEvent) -> bool {
    move |event| matches!(event, DhcpEvent::Acked { address: it, .. } if *it == address)
}

/// Client that runs until dropped.
struct Running(Child);

impl Running {
    fn signal(&self, name: &str) {
        sh(&format!("kill -{name} {}", self.0.id()));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn udhcpc_leases_renews_and_releases() {
    let bench = Bench::new();
    // A reported ACK has been sent. The client's script records the lease that it accepted.
    let (script, said) = (bench.file("script"), bench.file("said"));
    sh(&format!("printf '#!/bin/sh\necho $1 >>{said}\n' >{script}; chmod +x {script}"));
    let says = |word: &str| {
        let text = || std::fs::read_to_string(&said).unwrap_or_default();
        until(word, || text().lines().any(|line| line == word));
    };
    let client = bench
        .wire
        .rack("busybox")
        .args(["udhcpc", "-i", "nuc0", "-f", "-s", &script, "-T", "1", "-t"])
        .arg(PATIENCE.as_secs().to_string())
        .spawn()
        .expect("busybox-static is installed");
    let client = Running(client);
    bench.saw("a lease", acked(at(100)));
    says("bound");
    bench.configure(at(100));
    client.signal("USR1");
    until("a renewal", || bench.acked(at(100)) >= 2);
    says("renew");
    client.signal("USR2");
    bench.saw("its return", |event| *event == DhcpEvent::Released { mac: GUEST, address: at(100) });
}

#[test]
fn dhclient_keeps_its_address_over_restarts_of_both() {
    let bench = Bench::new();
    bench.dhclient("-1");
    bench.saw("a lease", acked(at(100)));
    let leases = std::fs::read_to_string(bench.file("dhclient.leases")).unwrap();
    for line in ["fixed-address 10.77.0.100;", "option domain-name \"pool.example\";"] {
        assert!(leases.contains(line), "{line} in {leases}");
    }
    bench.end_dhclient();
    let bench = bench.restarted(100);
    bench.dhclient("-1");
    bench.saw("the lease again", acked(at(100)));
    let offered = |event: &DhcpEvent| matches!(event, DhcpEvent::Offered { .. });
    assert!(!bench.service.events.all().iter().any(offered), "it asked for what it had");
    bench.configure(at(100));
    bench.dhclient("-r");
    bench.saw("its return", |event| *event == DhcpEvent::Released { mac: GUEST, address: at(100) });
}

#[test]
fn dhclient_is_refused_an_address_that_is_no_pools_any_more_and_takes_another() {
    let bench = Bench::new();
    bench.dhclient("-1");
    bench.end_dhclient();
    let bench = bench.restarted(150);
    bench.dhclient("-1");
    bench.saw("the refusal", |event| matches!(event, DhcpEvent::Refused { mac: GUEST, .. }));
    bench.saw("another lease", acked(at(150)));
    bench.end_dhclient();
}

/// Starts dhcpcd in a mount namespace, which hides its files from those of the system. The helpers
/// of dhcpcd outlive dhcpcd, but not its PID namespace. The release needs the same arguments in the
/// same namespace, because the name of the control socket has the interface and `-4`.
const DHCPCD: &str = "mkdir -p /var/lib/dhcpcd
mount -t tmpfs none /var/lib/dhcpcd; mount -t tmpfs none /run
dhcpcd -4 -B -p -L -f /dev/null -c /bin/true --noarp -o domain_name nuc0 &
cat
dhcpcd -4 -k nuc0
wait";

#[test]
fn dhcpcd_leases_and_releases() {
    let bench = Bench::new();
    let client = bench
        .wire
        .rack("unshare")
        .args(["-m", "-p", "--fork", "--mount-proc", "--kill-child", "sh", "-ec", DHCPCD])
        .stdin(Stdio::piped())
        .spawn()
        .expect("dhcpcd-base and util-linux are installed");
    let mut client = Running(client);
    bench.saw("a lease", acked(at(100)));
    // The client has accepted the lease when its interface has the address.
    until("its address", || bench.addresses().contains(" 10.77.0.100/24 "));
    drop(client.0.stdin.take());
    bench.saw("its return", |event| *event == DhcpEvent::Released { mac: GUEST, address: at(100) });
    assert!(client.0.wait().unwrap().success());
    assert!(!bench.addresses().contains("10.77.0.100"), "it leaves the address");
}

#[test]
fn a_machine_with_a_record_gets_its_reservation_beside_the_pool() {
    let bench = Bench::new();
    sh(&format!("ip -n {} link set nuc0 address {MAC}", bench.wire.rack_space));
    bench.dhclient("-1");
    bench.saw("its reservation", acked(ADDRESS));
    bench.end_dhclient();
}
