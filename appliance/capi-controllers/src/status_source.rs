//! Status source of the management clusters and their machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::management_cluster::{MANAGEMENT_CLUSTER, ManagementCluster};
use api::meta::ObjectKey;
use objects::{Objects, read};
use status::source::{Filling, StatusSource};
use status::view::{ClusterApi, ClusterMachine, PairedCluster, StatusView};

use crate::signals::{AllClusterApiSignals, MachineReport};

/// Maximum number of machines in the view; the others are counted.
const MACHINES_MAX: usize = 200;
/// Maximum length of an explanation in characters: that of a choice is shorter, but others may
/// write into the management cluster.
const CHOICE_CHARS_MAX: usize = 2048;

/// Status source of the management clusters and their machines.
pub struct ClusterApiSource {
    /// The box's own API, with the ManagementClusters.
    pub objects: Arc<dyn Objects>,
    /// Known machines of all management clusters.
    pub signals: Arc<AllClusterApiSignals>,
}

impl StatusSource for ClusterApiSource {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        Box::pin(async move {
            // Another source reports a store that cannot be read.
            let objects = self.objects.list(MANAGEMENT_CLUSTER, None).await.unwrap_or_default();
            let clusters = objects.into_iter().filter_map(|object| read(object).ok());
            view.cluster_api = shown(clusters.collect(), self.signals.reports());
        })
    }
}

/// Returns the part of the view for ManagementClusters and machines, those with the unique ID of
/// their management cluster.
fn shown(
    clusters: Vec<ManagementCluster>,
    reports: Vec<(String, ObjectKey, MachineReport)>,
) -> ClusterApi {
    let names: BTreeMap<&str, String> = clusters
        .iter()
        .filter_map(|it| Some((it.status.cluster_uid.as_deref()?, name_of(&it.key()))))
        .collect();
    let mut machines: Vec<ClusterMachine> = reports
        .into_iter()
        .map(|(uid, key, report)| ClusterMachine {
            cluster: names.get(uid.as_str()).map_or(uid.as_str(), String::as_str).into(),
            name: key.to_string().into(),
            hardware: report.hardware.into(),
            ready: report.ready,
            state: report.state.into(),
            choice: status::plain_within(&report.choice, CHOICE_CHARS_MAX),
        })
        .collect();
    machines.sort_by(|a, b| {
        let order = |it: &ClusterMachine| (!it.hardware.is_empty(), it.ready);
        order(a).cmp(&order(b)).then_with(|| (&a.cluster, &a.name).cmp(&(&b.cluster, &b.name)))
    });
    let more_machines = machines.len().saturating_sub(MACHINES_MAX);
    machines.truncate(MACHINES_MAX);
    ClusterApi { clusters: clusters.iter().map(paired).collect(), machines, more_machines }
}

fn paired(cluster: &ManagementCluster) -> PairedCluster {
    let (status, condition) = (&cluster.status, cluster.status.connected());
    let text = |text: Option<&String>| text.map(String::as_str).unwrap_or_default().into();
    PairedCluster {
        name: name_of(&cluster.key()).into(),
        connected: condition.is_some_and(|it| it.status == "True"),
        state: text(condition.map(|it| &it.reason)),
        message: text(condition.map(|it| &it.message)),
        server: text(status.server.as_ref()),
        version: text(status.version.as_ref()),
    }
}

/// Returns the name of a ManagementCluster for people.
pub fn name_of(key: &ObjectKey) -> String {
    match key.namespace.as_str() {
        "default" => key.name.clone(),
        _ => key.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::infrastructure::TINKERBELL_MACHINE;
    use api::management_cluster::MANAGEMENT_CLUSTER;
    use objects::fake::Memory;
    use serde_json::{Value, json};
    use status::source::StatusSource as _;
    use status::view::StatusView;

    use super::{ClusterApiSource, MACHINES_MAX};
    use crate::signals::{AllClusterApiSignals, ClusterApiSignals};

    fn machine(name: &str, hardware: &str, ready: &str) -> Value {
        json!({
            "metadata": { "namespace": "default", "name": name },
            "spec": { "hardwareName": hardware },
            "status": { "conditions": [
                { "type": "Ready", "status": ready, "reason": "Reason" },
                { "type": "HardwareClaimed", "status": "True", "message": "a\nwas <chosen>" },
            ] },
        })
    }

    #[tokio::test]
    async fn machines_without_hardware_are_first_and_each_names_its_cluster() {
        let objects = Arc::new(Memory::default());
        let connected = [json!({
            "type": "Connected", "status": "False", "reason": "Unreachable", "message": "refused",
        })];
        objects.put(
            MANAGEMENT_CLUSTER,
            json!({
                "metadata": { "namespace": "default", "name": "fleet" },
                "status": { "clusterUID": "u1", "conditions": connected },
            }),
        );
        let signals = Arc::new(AllClusterApiSignals::default());
        let (fleet, own) = (Arc::new(ClusterApiSignals::default()), Arc::default());
        signals.insert(Some("u1"), Arc::clone(&fleet), objects.clone());
        signals.insert(None, Arc::clone(&own), objects.clone());
        fleet.changed(TINKERBELL_MACHINE, &machine("a", "nuc1", "True"));
        fleet.changed(TINKERBELL_MACHINE, &machine("b", "", "False"));
        own.changed(TINKERBELL_MACHINE, &machine("c", "nuc2", "False"));
        let source = ClusterApiSource { objects, signals };
        let view = async || {
            let mut view = StatusView::default();
            source.fill(&mut view).await;
            view.cluster_api
        };
        let shown = view().await;
        let [cluster] = &shown.clusters[..] else { panic!("{shown:?}") };
        assert_eq!((cluster.connected, &*cluster.state), (false, "Unreachable"));
        let machines: Vec<_> =
            shown.machines.iter().map(|it| (&*it.cluster, &*it.name, &*it.hardware)).collect();
        let expected =
            [("fleet", "default/b", ""), ("", "default/c", "nuc2"), ("fleet", "default/a", "nuc1")];
        assert_eq!(machines, expected);
        assert_eq!(shown.machines[0].choice, "a was <chosen>");
        for index in 0..MACHINES_MAX {
            fleet.changed(TINKERBELL_MACHINE, &machine(&format!("m{index}"), "", "False"));
        }
        let shown = view().await;
        assert_eq!((shown.machines.len(), shown.more_machines), (MACHINES_MAX, 3));
    }
}
