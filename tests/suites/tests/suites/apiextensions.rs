//! The suite of Kubernetes' own server of custom kinds.

use anyhow::Result;
use suites::Suite;

#[test]
fn integration() -> Result<()> {
    crate::holds("apiextensions", "test/integration", Suite::each)
}
