//! `make bench-bmc`: the power state by IPMI beside `ipmitool` and by Redfish beside `sushy`, and
//! the cost of 1,000 BMCs. Compare ratios only: the machine may be busy, and its load is printed.

mod rack;
mod redfish;
mod status;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use figures::Table;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run()));
    figures::exit(done.map_err(|error: anyhow::Error| format!("{error:#}")))
}

async fn run() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some(rack::SIMULATE) {
        return rack::simulate().await;
    }
    let load = fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    println!("load average: {}", load.trim());
    let mut table = Table::default();
    status::measure(&mut table).await.context("measuring the power state")?;
    redfish::measure(&mut table).await.context("measuring Redfish")?;
    rack::measure(&mut table).await.context("measuring 1,000 BMCs")?;
    table.sum_up();
    Ok(())
}
