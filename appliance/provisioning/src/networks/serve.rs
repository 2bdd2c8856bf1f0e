//! Services of one network: started as the Network object requests, restarted after an error, and
//! reported in the status of the object.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use api::network::{Network, NetworkPlan};
use dhcp::foreign::{self, Permit, Role, Start};
use dhcp::{CheckResult, Checker, ServeMode, Service};
use stdx::Backoff;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::leases::KnownLeases;
use super::plan::{needs_restart, refusal, service_config, service_mode};
use super::report::{self, Report};
use super::v6::V6;
use super::{DesiredNetwork, Networks, nic};

/// First and maximum wait before a network is served again after an error.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Interval between two checks of the default route.
const ROUTE_LOOK: Duration = Duration::from_secs(10);
/// Maximum number of addresses that wait for an ARP check. Further addresses are not checked.
const QUESTIONS_MAX: usize = 256;

/// Reason why a session of services ended.
enum End {
    /// A change of the spec needs a restart.
    Changed,
    /// The default route has moved to or from the interface.
    Route,
    /// The Network was deleted.
    Gone,
}

impl Networks {
    /// Serves the network `name` until the sender of `wanted` is dropped. An error is reported in
    /// the status and as an Event, and the services are started again.
    pub(super) async fn keep_serving(
        &self,
        name: String,
        mut wanted: watch::Receiver<DesiredNetwork>,
        shutdown: CancellationToken,
    ) {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
        // Only the first start of the process resumes the stored state. A later change of the spec
        // starts the service again.
        let mut start = Start::Resume;
        loop {
            let network = wanted.borrow_and_update().clone();
            let session = self.session(&network, &mut wanted, start, &shutdown);
            let ended = tokio::select! {
                // The shutdown is checked first, because services that end with the box have not
                // failed.
                biased;
                () = shutdown.cancelled() => return,
                ended = session => ended,
            };
            self.index.set_enrolls(&name, false);
            match ended {
                Ok(End::Gone) => return self.board.clear(&network.spec.interface),
                Ok(End::Changed) => {
                    backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
                    start = Start::Arm;
                }
                // No person requested the restart, so a stop because of another DHCP server stays
                // in force.
                Ok(End::Route) => start = Start::Resume,
                Err(error) => {
                    let report = Report::failed(&format!("{error:#}"));
                    self.report(&network, &report, &mut None).await;
                    tokio::select! {
                        () = shutdown.cancelled() => return,
                        () = tokio::time::sleep(backoff.next_wait()) => {}
                        changed = wanted.changed() => if changed.is_err() { return },
                    }
                }
            }
        }
    }

    async fn session(
        &self,
        network: &Network,
        wanted: &mut watch::Receiver<DesiredNetwork>,
        start: Start,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<End> {
        let plan = self.plan(network)?;
        let Some(mode) = service_mode(plan.mode) else {
            self.report(network, &Report::off(), &mut None).await;
            return Ok(self.until_changed(network, wanted).await);
        };
        let nic = nic::read(&plan.interface)
            .with_context(|| format!("cannot read the interface {}", plan.interface))?;
        if let Some(why) = refusal(&plan, nic) {
            self.report(network, &Report::failed(&why), &mut None).await;
            let allowed = until(|| is_refused(&plan).is_some_and(|refused| !refused));
            return Ok(tokio::select! {
                ended = self.until_changed(network, wanted) => ended,
                () = allowed => End::Route,
            });
        }
        let stop = shutdown.child_token();
        let _stopped = stop.clone().drop_guard();
        let mut session = Session::begin(self, &plan, mode, start, &stop).await?;
        let (interface, confirmed) = (plan.interface.clone(), plan.clone());
        tokio::select! {
            ended = session.attend(self, network, plan, wanted) => ended,
            // On another Linux system, the box may start before the network of the system is up.
            () = until(|| is_refused(&confirmed) == Some(true)) => {
                tracing::warn!(interface, "the default route uses this interface now");
                Ok(End::Route)
            }
        }
    }

    /// Returns the plan of a Network. An invalid spec, or an interface or address that is not in
    /// the configuration, is an error.
    fn plan(&self, network: &Network) -> anyhow::Result<NetworkPlan> {
        let plan = network.spec.plan().map_err(|problems| {
            let reported: Vec<String> = problems.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("{}", reported.join("; "))
        })?;
        let listed =
            |it: &&NetworkPlan| it.interface == plan.interface && it.address == plan.address;
        anyhow::ensure!(
            self.config.networks.iter().any(|it| listed(&it)),
            "the box serves no boot files at {} on {}: add a [[network]] to its configuration",
            plan.address,
            plan.interface
        );
        Ok(plan)
    }

    /// Waits until the spec changes or the Network is deleted.
    async fn until_changed(
        &self,
        now: &Network,
        wanted: &mut watch::Receiver<DesiredNetwork>,
    ) -> End {
        loop {
            if wanted.changed().await.is_err() {
                return End::Gone;
            }
            if wanted.borrow_and_update().spec != now.spec {
                return End::Changed;
            }
        }
    }
}

/// Returns true if DHCP must not be served on an interface; `None` if its kernel data is missing.
fn is_refused(plan: &NetworkPlan) -> Option<bool> {
    Some(refusal(plan, nic::read(&plan.interface).ok()?).is_some())
}

/// Waits until a condition is true; checks the condition every [`ROUTE_LOOK`].
async fn until(is_so: impl Fn() -> bool) {
    loop {
        tokio::time::sleep(ROUTE_LOOK).await;
        if is_so() {
            return;
        }
    }
}

/// Services of one network with fixed interface, address and mode.
struct Session {
    tasks: JoinSet<anyhow::Result<()>>,
    config: watch::Sender<dhcp::Config>,
    serve_mode: watch::Sender<ServeMode>,
    states: watch::Receiver<foreign::State>,
    rearm: Arc<Notify>,
    bound: watch::Receiver<dhcp::LeaseCounts>,
    mode: dhcp::Mode,
}

impl Session {
    async fn begin(
        networks: &Networks,
        plan: &NetworkPlan,
        mode: dhcp::Mode,
        start: Start,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let (config, settings) = watch::channel(service_config(plan, mode));
        let (serve_mode, served) = watch::channel(ServeMode::Closed);
        let (news, states) = watch::channel(foreign::State::default());
        let rearm = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        let (counted, bound) = watch::channel(dhcp::LeaseCounts::default());
        let leases = match mode {
            dhcp::Mode::Pool => Some(networks.leases(&plan.interface).await? as _),
            _ => None,
        };
        let service = Service {
            config: settings,
            serve_mode: served,
            directory: Arc::clone(&networks.views) as _,
            observer: Arc::clone(&networks.observers) as _,
            leases,
            checker: Some(checker(&plan.interface, &mut tasks, stop).await?),
            counts: counted,
        };
        let stopped = stop.clone();
        tasks.spawn(async move { service.run(stopped).await.context("cannot serve DHCP") });
        let (watched, noticed) = (networks.watched(plan, mode, start), Arc::clone(&rearm));
        let stopped = stop.clone();
        tasks.spawn(async move {
            let watching = foreign::watch(watched, news, noticed, stopped);
            watching.await.context("cannot listen for other DHCP servers")
        });
        if plan.ipv6 {
            let follower = V6 {
                interface: plan.interface.clone(),
                loaders: plan.loaders.clone(),
                index: networks.index.clone(),
                board: networks.board.clone(),
                directory: Arc::clone(&networks.views) as _,
                observer: Arc::clone(&networks.observers) as _,
                serve_mode: serve_mode.subscribe(),
            };
            let following = stop.clone().run_until_cancelled_owned(follower.run());
            tasks.spawn(async move {
                following.await;
                Ok(())
            });
        }
        Ok(Self { tasks, config, serve_mode, states, rearm, bound, mode })
    }

    /// Applies changes of the serving permission and of the spec, and reports both. Returns when
    /// the session must end.
    async fn attend(
        &mut self,
        networks: &Networks,
        network: &Network,
        mut plan: NetworkPlan,
        wanted: &mut watch::Receiver<DesiredNetwork>,
    ) -> anyhow::Result<End> {
        let name = &network.metadata.name;
        let mut spec = network.spec.clone();
        networks.index.set_enrolls(name, plan.enroll);
        let mut reported = None;
        loop {
            tokio::select! {
                Ok(()) = self.states.changed() => {
                    let permit = self.states.borrow_and_update().permit();
                    // The serve mode is set first, because the following steps may wait for a disk.
                    self.serve_mode.send_replace(serve_mode(permit));
                }
                changed = wanted.changed() => {
                    if changed.is_err() {
                        return Ok(End::Gone);
                    }
                    let next = wanted.borrow_and_update().clone();
                    if next.spec == spec {
                        continue;
                    }
                    let Ok(changed) = networks.plan(&next) else { return Ok(End::Changed) };
                    if needs_restart(&plan, &changed) {
                        return Ok(End::Changed);
                    }
                    if changed.rearm != plan.rearm {
                        self.rearm.notify_one();
                    }
                    networks.index.set_enrolls(name, changed.enroll);
                    self.config.send_replace(service_config(&changed, self.mode));
                    (spec, plan) = (next.spec.clone(), changed);
                }
                Some(ended) = self.tasks.join_next() => {
                    match ended {
                        Ok(ended) => ended?,
                        Err(error) if error.is_panic() => {
                            std::panic::resume_unwind(error.into_panic())
                        }
                        Err(_) => {}
                    }
                    anyhow::bail!("a service of the network stopped unexpectedly");
                }
                // The count changes every few seconds, which also retries a status that could not
                // be written.
                Ok(()) = self.bound.changed() => {}
            }
            let state = self.states.borrow().clone();
            let leased = *self.bound.borrow_and_update();
            let report = report::report(&state, &plan, leased);
            networks.report(network, &report, &mut reported).await;
        }
    }
}

fn serve_mode(permit: Permit) -> ServeMode {
    match permit {
        Permit::Everything => ServeMode::Open,
        Permit::Boots => ServeMode::ProxyOnly,
        Permit::Nothing => ServeMode::Closed,
    }
}

/// Starts the task that checks by ARP if another machine uses an address.
async fn checker(
    interface: &str,
    tasks: &mut JoinSet<anyhow::Result<()>>,
    stop: &CancellationToken,
) -> anyhow::Result<Checker> {
    let arp = dhcp::arp::Checker::open(interface).await.context("cannot probe addresses")?;
    let (requests, mut received) = mpsc::channel(QUESTIONS_MAX);
    let (result, results) = mpsc::channel(QUESTIONS_MAX);
    let stop = stop.clone();
    tasks.spawn(async move {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Some(address) = received.recv(), if open.len() < QUESTIONS_MAX => {
                    let arp = arp.clone();
                    open.spawn(async move {
                        CheckResult { address, holder: arp.in_use(address).await }
                    });
                }
                Some(Ok(checked)) = open.join_next() => {
                    if result.send(checked).await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    });
    Ok(Checker { requests, results })
}

impl Networks {
    async fn leases(&self, interface: &str) -> anyhow::Result<Arc<KnownLeases>> {
        let path = self.state.join(format!("leases-{interface}.redb"));
        let (index, open, interface) =
            (self.index.clone(), self.leases.clone(), interface.to_owned());
        let shown = path.display().to_string();
        tokio::task::spawn_blocking(move || open.open(&interface, &path, index))
            .await?
            .with_context(|| format!("cannot open the leases in {shown}"))
    }

    fn watched(&self, plan: &NetworkPlan, mode: dhcp::Mode, start: Start) -> foreign::Config {
        let role = match mode {
            dhcp::Mode::Proxy => Role::Proxy,
            dhcp::Mode::Reserved | dhcp::Mode::Pool => Role::Leases,
        };
        let own = |it: &NetworkPlan| nic::read(&it.interface).ok().map(|nic| nic.mac);
        foreign::Config {
            interface: plan.interface.clone(),
            role,
            start,
            servers: self.config.networks.iter().map(|it| it.address).collect(),
            macs: self.config.networks.iter().filter_map(own).collect(),
            record: Some(self.state.join(format!("dhcp-{}", plan.interface))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ROUTE_LOOK, until};
    use std::cell::Cell;
    use std::time::Duration;
    use tokio::time::{Instant, timeout};

    #[tokio::test(start_paused = true)]
    async fn a_default_route_that_changes_later_is_seen() {
        let (begun, routed) = (Instant::now(), Cell::new(false));
        let seen = until(|| routed.get());
        tokio::pin!(seen);
        timeout(Duration::from_secs(3600), &mut seen).await.unwrap_err();
        routed.set(true);
        seen.await;
        assert!(begun.elapsed() <= Duration::from_secs(3600) + ROUTE_LOOK);
    }
}
