//! The suite of Kubernetes' own API server for custom resources.

use anyhow::Result;
use suites::Suite;

#[test]
fn integration() -> Result<()> {
    crate::holds("apiextensions", "test/integration", Suite::each)
}
