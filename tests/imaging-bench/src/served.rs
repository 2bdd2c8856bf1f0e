//! The image server: the box's own file server, in a separate process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use netboot::http::{Downloads, HttpConfig, HttpService, router, serve};
use netboot::{Files, Services};
use peers::Process;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7181);
const START_LIMIT: Duration = Duration::from_secs(10);

/// The running server, stopped when dropped.
pub struct Server {
    _running: Process,
}

impl Server {
    /// Serves the files of `FOLDER/images` as `/images/…`.
    ///
    /// # Errors
    /// The server does not start, or its port is taken.
    pub fn start(folder: &Path, log: &Path) -> Result<Self> {
        let me = std::env::current_exe().context("cannot find the running program")?;
        let arguments = ["serve".to_owned(), folder.display().to_string()];
        let mut process = Process::start(&me, &arguments, log)?;
        let answers = || std::net::TcpStream::connect(ADDRESS).is_ok();
        process.wait_until("the image server", START_LIMIT, answers)?;
        Ok(Self { _running: process })
    }

    /// URL of a file in the images folder.
    pub fn url(&self, file: &str) -> String {
        format!("http://{ADDRESS}/images/{file}")
    }
}

/// Runs the server process: serves until killed.
///
/// # Errors
/// The port is taken.
pub fn run(folder: &Path) -> Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build()?.block_on(async {
        let services =
            Services { files: Files::new(folder), plans: Arc::new(()), observer: Arc::new(()) };
        let config =
            HttpConfig { script_base: format!("http://{ADDRESS}"), version: String::new() };
        let routes = router(config, services.clone());
        let service = HttpService::with_downloads(routes, Downloads::boot(services));
        let listener = TcpListener::bind(ADDRESS).await?;
        serve(listener, service, CancellationToken::new()).await;
        Ok(())
    })
}
