//! LEDs of machines, which blink by their BMCs.

use std::pin::Pin;

use api::meta::ObjectKey;
use lifecycle::local_actions::MachineLeds;
use provisioning::index::Index;

use crate::bmc_readings::BmcReader;

/// Text for a machine without a BMC, whose power the box cannot switch either.
pub(super) const NO_BMC: &str = "This machine has no BMC.";

/// LEDs of machines, found by the machine's Hardware.
pub(super) struct BmcLeds {
    pub index: Index,
    pub bmcs: BmcReader,
}

impl MachineLeds for BmcLeds {
    fn identify<'a>(
        &'a self,
        machine: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async move {
            let machines = self.index.machines();
            let hardware = machines.into_iter().find(|it| it.metadata.name == machine);
            let hardware = hardware.ok_or_else(|| format!("No machine is called {machine}."))?;
            let reference = hardware.spec.bmc_ref.as_ref().ok_or(NO_BMC)?;
            let key = ObjectKey::new(&hardware.key().namespace, &reference.name);
            self.bmcs.identify(&key).await.map_err(|error| error.sentence())
        })
    }
}
