//! Wiring of the API and its authentication.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use apiserver::{AdminAccess, AdminTokens, AuthConfig, Authorizer, Pki};
use axum::Router;
use image_uploads::OsImageUploads;
use lifecycle::backups::{self, Backups};
use lifecycle::{opened, reset, settings};
use resources::{Collector, builtin, roles};

use super::Wiring;
use crate::access_tokens::{self, Tokens};
use crate::bmc_readings;
use crate::consoles;
use crate::discovery::{self, Discovery};
use crate::handlers;
use crate::status_builder::StatusBuilder;

impl Wiring {
    /// Starts the Kubernetes-compatible API, and the tasks that maintain its built-in objects.
    /// Returns a second address of the API on the loopback interface. Only the box itself uses the
    /// second address, so that other clients cannot exhaust its connections.
    pub(super) async fn api(
        &mut self,
        state: &Path,
        pki: &Pki,
        (backups, status_builder, of_its_own): (&Arc<Backups>, &Arc<StatusBuilder>, bool),
    ) -> anyhow::Result<SocketAddr> {
        let access = AdminAccess::ensure(state, pki, &self.config.api_url())
            .context("cannot create the administrator's kubeconfig")?;
        if access.created {
            let file = access.kubeconfig.display();
            tracing::info!(%file, "created the administrator's kubeconfig");
        }
        // The configuration reads the existing tokens, which include the administrator's.
        let auth = self.auth_config(state, of_its_own.then_some(status_builder))?;
        let url = self.config.api_url();
        let tokens = AdminTokens::new(state.to_owned(), pki, &url, auth.tokens());
        let tokens = Tokens::new(tokens, state.to_owned(), Arc::clone(&self.clock));
        self.admin_tokens = Some(Arc::clone(&tokens));
        let filling = auth.fill_token_secrets(self.engine.clone(), pki.ca_pem());
        let filling = self.shutdown.clone().run_until_cancelled_owned(filling);
        self.spawn("token secrets", async move {
            filling.await;
            Ok(())
        });
        let router = apiserver::router(
            self.engine.clone(),
            auth,
            self.routes(backups, tokens, (status_builder, of_its_own)),
        );
        let router = opened::refused(router, self.safe.lost.as_deref());
        let router = reset::warned(router, self.safe.mode.as_deref());
        let listener = self.listen("the API", self.config.api.listen).await?;
        // Set after the bind, which must fail if another program has the port. Afterwards, a
        // control-plane endpoint may have the same port on its own address.
        rustix::net::sockopt::set_socket_reuseport(&listener, true)
            .context("cannot share the port of the API")?;
        let tls = pki.server_config().context("cannot set up TLS for the API")?;
        let (gathering, shutdown) = (self.engine.clone(), self.shutdown.clone());
        self.spawn("roles", async move {
            shutdown.run_until_cancelled(roles::keep_gathered(gathering)).await;
            Ok(())
        });
        let own = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let own = self.listen("the box's own questions", own).await?;
        let asked_at = own.local_addr().context("cannot listen for the box's own requests")?;
        for (name, listener) in [("api", listener), ("the box's own questions", own)] {
            let (tls, router) = (Arc::clone(&tls), router.clone());
            let shutdown = self.shutdown.clone();
            self.spawn(name, async move {
                apiserver::serve(listener, tls, router, shutdown.cancelled_owned()).await?;
                Ok(())
            });
        }
        let cleanup = resources::engine::crd_finalizer::run(self.engine.clone());
        let cleanup = self.shutdown.clone().run_until_cancelled_owned(cleanup);
        self.spawn("kinds", async move {
            cleanup.await;
            Ok(())
        });
        Ok(asked_at)
    }

    /// Returns the routes of the box's own API, which are served beside Kubernetes' paths.
    fn routes(
        &self,
        backups: &Arc<Backups>,
        tokens: Arc<Tokens>,
        (status_builder, of_its_own): (&Arc<StatusBuilder>, bool),
    ) -> Router {
        handlers::router(
            Arc::clone(&self.agents),
            Arc::clone(&self.syslog),
            Arc::clone(&self.observers),
            self.images.clone(),
            self.updates.clone(),
            (self.identify_state.clone(), Arc::clone(status_builder)),
        )
        .merge(discovery::router(Discovery::new(
            self.index.clone(),
            Arc::clone(&self.objects),
            &self.config,
        )))
        .merge(image_uploads::router(
            OsImageUploads::new(Arc::new(self.images.clone()), Arc::clone(&self.objects)),
            Authorizer::new(self.engine.clone()),
        ))
        .merge(consoles::router(Arc::clone(&self.objects), Arc::clone(&self.consoles)))
        .merge(bmc_readings::router(self.bmc_reader()))
        .merge(settings::router(self.settings.clone()))
        .merge(backups::router(Arc::clone(backups)))
        .merge(access_tokens::router(tokens))
        .merge(handlers::users::router(Arc::clone(&status_builder.owner)))
        .merge(reset::router(
            of_its_own.then(|| Arc::clone(status_builder) as _),
            self.audit.clone(),
        ))
    }

    /// Starts the collector, which deletes garbage, objects of deleted namespaces, and old events.
    pub(super) fn collector(&mut self, pki: &Pki) {
        let furniture = builtin::furniture(pki.ca_pem());
        let collector = Collector::new(self.engine.clone(), furniture);
        let running = collector.run(self.shutdown.clone().cancelled_owned());
        self.spawn("collector", async move {
            running.await;
            Ok(())
        });
    }

    /// Creates the authentication of the API. The administrator's token must exist. On firmware
    /// without an owner, unauthenticated requests get a hint how to claim the box.
    fn auth_config(
        &self,
        state: &Path,
        status_builder: Option<&Arc<StatusBuilder>>,
    ) -> anyhow::Result<AuthConfig> {
        let auth = AuthConfig::with_audit(state, &self.config.api_url(), self.audit.log())
            .context("cannot read the API's tokens and keys")?;
        let Some(status_builder) = status_builder else { return Ok(auth) };
        let owner = Arc::clone(&status_builder.owner);
        Ok(auth.unclaimed_until(move || owner.claimed()))
    }
}
