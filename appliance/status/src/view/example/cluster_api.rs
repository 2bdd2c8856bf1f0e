//! Management clusters and machines of the example.

use crate::view::{ClusterApi, ClusterMachine, PairedCluster};

pub(super) fn cluster_api() -> ClusterApi {
    ClusterApi {
        clusters: vec![
            PairedCluster {
                name: "fleet".into(),
                connected: true,
                state: "Connected".into(),
                server: "https://fleet.example:6443".into(),
                version: "v1.35.0".into(),
                ..PairedCluster::default()
            },
            PairedCluster {
                name: "lab".into(),
                state: "Unreachable".into(),
                message: "https://lab.example:6443 refuses connections; the box tries again".into(),
                server: "https://lab.example:6443".into(),
                ..PairedCluster::default()
            },
        ],
        machines: vec![
            ClusterMachine {
                cluster: "fleet".into(),
                name: "default/edge-md-2".into(),
                state: "NoHardware".into(),
                choice: "0 of 2 Hardware can be used: 1 is in use (nuc-01), 1 has another \
                         manufacturer (nuc-02)"
                    .into(),
                ..ClusterMachine::default()
            },
            ClusterMachine {
                cluster: "fleet".into(),
                name: "default/edge-cp-1".into(),
                hardware: "nuc-01".into(),
                ready: true,
                state: "Provisioned".into(),
                choice: "default/nuc-01 was chosen; 2 of 2 Hardware can be used".into(),
            },
        ],
        more_machines: 0,
    }
}
