//! Backend of the workflow service: index of machines, boot tokens, image cache and machine logs.

use std::net::SocketAddr;
use std::sync::Arc;

use agent_rpc::AgentReport;
use agent_service::{Backend, Service, Settings, TokenUse};
use controllers::enrollment::ReportInbox;
use objects::Objects;
use status::boot_event::BootEvent;
use tokio_util::sync::CancellationToken;

use crate::events::observers::Observers;
use crate::images::{Images, reads_registry};
use crate::machines::hardware_views::HardwareViews;

/// Program name of action output in the machine's log.
const PROGRAM: &str = "action";

/// Services of the box that the workflow service uses.
pub struct AgentBackend {
    /// Views of the machines, with index, settings and boot tokens.
    pub views: Arc<HardwareViews>,
    /// Receiver of boot events for the machine history.
    pub observers: Arc<Observers>,
    /// Receiver of the hardware reports of agents.
    pub report_inbox: ReportInbox,
    /// Cache of files from other servers.
    pub images: Images,
    /// Log with the output of machines.
    pub log: Arc<syslog::Log>,
}

impl AgentBackend {
    /// Creates the workflow service on top of this backend.
    pub fn service(self, objects: &Arc<dyn Objects>, closing: CancellationToken) -> Arc<Service> {
        let (objects, clock) = (Arc::clone(objects), Arc::clone(&self.views.clock));
        let runs = self.views.index.runs.clone();
        let agents = &self.views.config.agents;
        let settings = Settings { permissive: agents.permissive, enrollment: agents.enrollment };
        Arc::new(Service::new(objects, runs, Arc::new(self), clock, settings, closing))
    }
}

impl Backend for AgentBackend {
    fn knows(&self, agent_id: &str) -> bool {
        self.views.index.by_agent(agent_id).is_some()
    }

    fn may_introduce_itself(&self, agent_id: &str) -> bool {
        let index = &self.views.index;
        match index.by_agent(agent_id) {
            Some(hardware) => self.views.config.agents.enrollment && index.may_enroll(&hardware),
            None => index.enrolls(),
        }
    }

    fn is_sender(&self, agent_id: &str, peer: Option<SocketAddr>) -> bool {
        let index = &self.views.index;
        let address = peer.map(|peer| peer.ip().to_canonical());
        match index.by_agent(agent_id) {
            Some(hardware) => {
                let neighbor = address.and_then(|address| index.neighbor(address));
                neighbor.is_none_or(|mac| hardware.spec.macs().any(|own| own == mac))
            }
            None => {
                let mac = address.and_then(|address| index.sender(address));
                mac.is_some_and(|mac| agent_id.parse() == Ok(mac))
            }
        }
    }

    fn verify(&self, token: &str, agent_id: &str, workflow_uid: &str) -> Option<TokenUse> {
        self.views.tokens.verify(token, agent_id, workflow_uid)
    }

    fn environment(
        &self,
        agent_id: &str,
        is_stock: bool,
        image: &str,
        environment: Vec<String>,
    ) -> Vec<String> {
        // A stock agent runs the upstream action, which reads its image only from a registry.
        if self.views.config.agents.permissive && is_stock && reads_registry(image) {
            return environment;
        }
        self.images.with_cache_urls(image, environment, self.views.server_of_agent(agent_id))
    }

    fn receive_report(&self, report: AgentReport, is_repeat: bool) {
        if is_repeat {
            self.report_inbox.repeated(report);
        } else {
            self.report_inbox.once(report);
        }
    }

    fn record_event(&self, agent_id: &str, event: &BootEvent) {
        if let Some(hardware) = self.views.index.by_agent(agent_id) {
            self.observers.record_event(&hardware, event);
        }
    }

    fn record_output(&self, agent_id: &str, lines: Vec<String>) {
        let Some(hardware) = self.views.index.by_agent(agent_id) else { return };
        let machine = hardware.key().to_string();
        for text in lines {
            self.log.push(&machine, syslog::Entry::printed(PROGRAM, &text));
        }
    }
}
