//! Cluster API: commands that connect a management cluster, and the machines of the box.

use askama::Template;
use status::view::cluster_api::commands::{PAIR, from_copy};
use status::view::{ClusterMachine, PairedCluster, StatusView};
use status::words::{Shape, Tone};

use super::{Part, design, part, rendered};
use crate::rights::{Permission, Visitor};

/// Name of the box's own API in the list of machines.
const OWN: &str = "this box";

#[derive(Template)]
#[template(path = "cluster-api.html")]
struct Connect<'a> {
    version: &'a str,
    init: &'a str,
    pair: &'static str,
    csrf: &'a str,
    /// True for a visitor who may pair the box.
    pairs: bool,
}

#[derive(Template)]
#[template(path = "management-clusters.html")]
struct Clusters<'a> {
    rows: Vec<ClusterRow<'a>>,
}

struct ClusterRow<'a> {
    tone: &'static str,
    shape: &'static str,
    cluster: &'a PairedCluster,
}

#[derive(Template)]
#[template(path = "cluster-machines.html")]
struct Machines<'a> {
    rows: Vec<MachineRow<'a>>,
    more: usize,
}

struct MachineRow<'a> {
    tone: &'static str,
    shape: &'static str,
    word: &'a str,
    cluster: &'a str,
    /// Path of the page of the Hardware.
    link: String,
    machine: &'a ClusterMachine,
}

/// Renders the commands for a workstation that reaches the pages at the URL `pages`. `authority` is
/// the certificate of the box's authority as PEM. A visitor who may pair the box gets the form.
pub fn connect(view: &StatusView, pages: &str, authority: &str, who: &Visitor) -> String {
    let init = from_copy(pages, authority);
    rendered(&Connect {
        version: &view.version,
        init: init.trim_end(),
        pair: PAIR,
        csrf: &who.csrf,
        pairs: who.may(Permission::Pair),
    })
}

/// Renders the management clusters and the machines.
pub fn cluster_api(view: &StatusView) -> Vec<Part> {
    let shown = &view.cluster_api;
    let clusters = shown.clusters.iter().map(|cluster| {
        let (tone, shape) = mark(cluster.connected);
        ClusterRow { tone, shape, cluster }
    });
    let machines = Machines {
        rows: shown.machines.iter().map(machine_row).collect(),
        more: shown.more_machines,
    };
    vec![
        part("clusters", "Management clusters", rendered(&Clusters { rows: clusters.collect() })),
        part("cluster-machines", "Machines of clusters", rendered(&machines)),
    ]
}

fn machine_row(machine: &ClusterMachine) -> MachineRow<'_> {
    let (tone, shape) = mark(machine.ready);
    MachineRow {
        tone,
        shape,
        word: if machine.state.is_empty() { "Unknown" } else { &machine.state },
        cluster: if machine.cluster.is_empty() { OWN } else { &machine.cluster },
        link: super::link(&machine.hardware),
        machine,
    }
}

fn mark(is_good: bool) -> (&'static str, &'static str) {
    let (tone, shape) = match is_good {
        true => (Tone::Good, Shape::FilledDot),
        false => (Tone::Waiting, Shape::HalfDot),
    };
    (design::tone(tone), design::shape(shape))
}
