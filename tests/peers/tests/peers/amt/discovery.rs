//! Discovery of Intel AMT by its ports, at the simulated engine.

use std::net::{IpAddr, Ipv4Addr};

use amt_sim::{AmtSim, Behavior};
use bmc_discovery::{DiscoveredBmc, ProtocolKind, Segment, scan};

/// Scans the address of the engine only.
async fn found(sim: &AmtSim) -> Vec<DiscoveredBmc> {
    let IpAddr::V4(address) = sim.address().ip() else { panic!("expected an IPv4 address") };
    let segment = Segment::new(Ipv4Addr::LOCALHOST, address, 32).unwrap();
    scan(&[segment], |_| String::new()).await.unwrap()
}

#[tokio::test]
async fn an_engine_is_found_without_a_login_with_and_without_tls() {
    let plain = AmtSim::start(Behavior::default()).unwrap();
    let tls = AmtSim::start_with_tls(Behavior::default()).unwrap();
    let (with_plain, with_tls) = tokio::join!(found(&plain), found(&tls));
    let [bmc] = &with_plain[..] else { panic!("{with_plain:?}") };
    assert_eq!(bmc.protocols, [ProtocolKind::AmtPlain]);
    assert_eq!(IpAddr::from(bmc.address), plain.address().ip());
    assert!(bmc.description.contains("Active Management Technology"), "{}", bmc.description);
    let [bmc] = &with_tls[..] else { panic!("{with_tls:?}") };
    assert_eq!(bmc.protocols, [ProtocolKind::AmtTls]);
    assert_eq!((plain.refused_logins(), tls.refused_logins()), (0, 0));
}
