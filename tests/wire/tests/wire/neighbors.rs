//! Answers to ARP of another kernel, which a veth pair connects.

use std::net::Ipv4Addr;
use std::sync::Arc;

use neighbor_times::NeighborTimes;
use stdx::MacAddr;
use stdx::testing::until;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const RERUN: &str = "TINBOX_NEIGHBORS";
const NUC: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 11);
const ABSENT: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 12);
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x11]);
const TEST: &str = "neighbors::a_machine_that_answers_arp_has_a_time_and_one_that_is_off_has_none";
/// Script that creates the network of the box, and a machine in a network namespace of its own.
const NETWORK: &str = r#"
set -eu
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip netns add machine
ip link add box type veth peer name nuc address 02:00:00:00:00:11 netns machine
ip address add 10.99.0.1/24 dev box
ip link set box up
ip -n machine address add 10.99.0.11/24 dev nuc
ip -n machine link set nuc up
"$0" --exact "$1" --nocapture
"#;

#[test]
fn a_machine_that_answers_arp_has_a_time_and_one_that_is_off_has_none() {
    if std::env::var_os(RERUN).is_none() {
        wire::rerun(NETWORK, TEST, &[(RERUN, "1")]);
        return;
    }
    let (times, shutdown) = (Arc::new(NeighborTimes::default()), CancellationToken::new());
    let runtime = Runtime::new().unwrap();
    let (reader, end) = (Arc::clone(&times), shutdown.clone());
    let running = runtime.spawn(async move { reader.run(end).await });
    times.watch(ABSENT);
    times.watch(NUC);
    until("an answer to ARP", || times.answered(NUC).is_some());
    assert_eq!(times.answered(NUC).map(|(mac, _)| mac), Some(MAC));
    assert_eq!(times.answered(ABSENT), None);
    shutdown.cancel();
    runtime.block_on(running).unwrap();
}
