//! Tests of the machines that may read a file.

use std::net::IpAddr;

use api::tinkerbell::{Dhcp, Hardware, HardwareSpec, Interface, Ip};
use artifact_cache::Readers as _;

use super::super::readers::MentionReaders;
use super::*;

fn hardware(name: &str, last: u8) -> Hardware {
    let address = Ip { address: format!("203.0.113.{last}"), ..Ip::default() };
    let mac = format!("52:54:00:77:00:{last:02x}").parse().ok();
    let dhcp = Dhcp { mac, ip: Some(address), ..Dhcp::default() };
    let interface = Interface { dhcp: Some(dhcp), ..Interface::default() };
    Hardware {
        metadata: ObjectMeta {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            ..ObjectMeta::default()
        },
        spec: HardwareSpec { interfaces: vec![interface], ..HardwareSpec::default() },
        ..Hardware::default()
    }
}

#[tokio::test]
async fn a_cached_file_is_for_the_machines_of_the_unfinished_workflows_that_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let inner = open(folder.path());
    let images = Images(Some(Arc::clone(&inner)));
    let index = Index::default();
    for (name, last) in [("nuc1", 1), ("nuc2", 2), ("nuc3", 3)] {
        index.put_hardware(hardware(name, last));
    }
    let readers = MentionReaders::new(inner, index);
    let readers_of = |url: &str| -> Vec<u8> {
        let wanted = RemoteFile { url: url.to_owned(), checksum: None };
        let may = |last: &u8| readers.may_read(IpAddr::from([203, 0, 113, *last]), &wanted);
        (1..=9).filter(may).collect()
    };
    let mut one = workflow("one", &[GOOD], State::Pending);
    one.spec.hardware_ref = "nuc1".to_owned();
    images.put_workflow(&one);
    assert_eq!(readers_of(GOOD), [1]);
    assert!(readers_of(BAD).is_empty());

    // The second task of the workflow runs on another machine.
    one.status.tasks[0].agent_id = "52:54:00:77:00:03".to_owned();
    images.put_workflow(&one);
    assert_eq!(readers_of(GOOD), [1, 3]);

    one.status.state = State::Failed;
    images.put_workflow(&one);
    assert!(readers_of(GOOD).is_empty(), "the workflow has ended");
}
