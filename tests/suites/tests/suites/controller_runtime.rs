//! controller-runtime's own suites that need a cluster.

use anyhow::Result;
use suites::Suite;

fn holds(package: &str) -> Result<()> {
    crate::holds("controller-runtime", package, Suite::ginkgo)
}

#[test]
fn client() -> Result<()> {
    holds("pkg/client")
}

#[test]
fn cache() -> Result<()> {
    holds("pkg/cache")
}

#[test]
fn manager() -> Result<()> {
    holds("pkg/manager")
}

#[test]
fn cluster() -> Result<()> {
    holds("pkg/cluster")
}

#[test]
fn builder() -> Result<()> {
    holds("pkg/builder")
}

#[test]
fn controller() -> Result<()> {
    holds("pkg/controller")
}

#[test]
fn controllerutil() -> Result<()> {
    holds("pkg/controller/controllerutil")
}

#[test]
fn source() -> Result<()> {
    holds("pkg/source")
}

#[test]
fn handler() -> Result<()> {
    holds("pkg/handler")
}

#[test]
fn webhook() -> Result<()> {
    holds("pkg/webhook")
}

#[test]
fn recorder() -> Result<()> {
    holds("pkg/internal/recorder")
}

#[test]
fn internal_controller() -> Result<()> {
    holds("pkg/internal/controller")
}

#[test]
fn metrics_filters() -> Result<()> {
    holds("pkg/metrics/filters")
}

#[test]
fn envtest() -> Result<()> {
    holds("pkg/envtest")
}
