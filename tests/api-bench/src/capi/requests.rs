//! Requests that an API server answered, by verb and resource.

use std::collections::BTreeMap;

/// Kinds of requests in the printed table.
const PRINTED_MAX: usize = 12;
/// Name of the counters in the metrics of kube-apiserver.
const COUNTER: &str = "apiserver_request_total{";

/// Number of requests by verb and resource, such as `PUT tinkerbellmachines/status`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requests(BTreeMap<String, f64>);

impl Requests {
    /// Reads the metrics of kube-apiserver.
    pub fn read(metrics: &str) -> Self {
        let mut all = BTreeMap::new();
        for line in metrics.lines().filter_map(|line| line.strip_prefix(COUNTER)) {
            let Some((labels, count)) = line.rsplit_once("} ") else { continue };
            let label = |name: &str| {
                let rest = labels.split_once(&format!("{name}=\"")).map_or("", |(_, rest)| rest);
                rest.split('"').next().unwrap_or_default()
            };
            let mut kind = format!("{} {}", label("verb"), label(",resource"));
            if !label("subresource").is_empty() {
                kind = format!("{kind}/{}", label("subresource"));
            }
            if label("code") == "409" {
                kind.push_str(" (conflict)");
            }
            *all.entry(kind).or_default() += count.parse::<f64>().unwrap_or_default();
        }
        Self(all)
    }

    /// Returns the requests since an earlier reading.
    pub fn since(&self, before: &Self) -> Self {
        let earlier = |kind: &String| before.0.get(kind).copied().unwrap_or_default();
        let all = self.0.iter().map(|(kind, count)| (kind.clone(), count - earlier(kind)));
        Self(all.filter(|(_, count)| *count > 0.0).collect())
    }

    /// Returns the number of all requests.
    pub fn sum(&self) -> f64 {
        self.0.values().sum()
    }

    /// Prints the most frequent kinds, for each of `machines`. Requests of Cluster API's managers
    /// are included.
    pub fn print(&self, machines: f64) {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        println!("requests for each machine: {:.1}", self.sum() / machines);
        for (kind, count) in all.into_iter().take(PRINTED_MAX) {
            println!("{:>8.2}  {kind}", count / machines);
        }
    }
}
