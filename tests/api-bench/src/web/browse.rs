//! Visits of pages by curl, as a browser makes them: with all files that the page names, compressed
//! if the server compresses.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use figures::median;
use peers::Tinboxd;
use serde_json::Value;

/// Number of measured requests of each page.
const REPEATS: usize = 30;
/// Number of new connections of which the first byte is measured.
const CONNECTIONS: usize = 5;
/// Time for which the traffic of a tab is measured, in seconds.
const TRAFFIC_SECONDS: u32 = 10;
/// Maximum time until the pages are served.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Port of the pages.
const PORT: u16 = 8443;
/// Passphrase of the owner.
const PASSPHRASE: &str = "correct horse";

/// Cost of one page.
pub struct Visit {
    /// Bytes on the wire of the page and all its files.
    pub bytes: u64,
    /// Median time to the first byte of the page on an open connection, in milliseconds.
    pub first_byte_ms: f64,
    /// Median time to the first byte on a new connection, with its TLS handshake, in milliseconds.
    pub connected_ms: f64,
}

/// Returns the cost of the page at `url`. `options` are further arguments of curl.
///
/// # Errors
/// The page or one of its files is not served.
pub fn visit(url: &str, options: &[String]) -> Result<Visit> {
    let page = text(url, options)?;
    let origin_end = url.match_indices('/').nth(2).map_or(url.len(), |(at, _)| at);
    let mut urls = vec![url.to_owned()];
    for name in ["src=\"", "href=\""] {
        for rest in page.split(name).skip(1) {
            let path = rest.split('"').next().unwrap_or_default();
            let is_file = [".css", ".js", ".svg", ".png", ".woff2", ".ico"]
                .iter()
                .any(|end| path.split('?').next().is_some_and(|it| it.ends_with(end)));
            if is_file && path.starts_with('/') {
                urls.push(format!("{}{path}", &url[..origin_end]));
            }
        }
    }
    urls.dedup();
    let bytes = measured(&urls, options)?.into_iter().map(|(bytes, _)| bytes).sum();
    // The first request opens the connection.
    let repeated = vec![url.to_owned(); REPEATS + 1];
    let times: Vec<f64> =
        measured(&repeated, options)?.into_iter().skip(1).map(|(_, millis)| millis).collect();
    let mut connected = Vec::new();
    for _ in 0..CONNECTIONS {
        let one = measured(&repeated[..1], options)?;
        connected.extend(one.into_iter().map(|(_, millis)| millis));
    }
    Ok(Visit { bytes, first_byte_ms: median(times), connected_ms: median(connected) })
}

fn text(url: &str, options: &[String]) -> Result<String> {
    let output = Command::new("curl").args(["-ksSfL"]).args(options).arg(url).output()?;
    ensure!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("a page is UTF-8")
}

/// Requests each URL on one connection. Returns bytes and milliseconds to the first byte.
fn measured(urls: &[String], options: &[String]) -> Result<Vec<(u64, f64)>> {
    let mut curl = Command::new("curl");
    curl.args(["-ksSf", "-H", "Accept-Encoding: gzip"]).args(options);
    curl.args(["-w", "%{stderr}%{size_download} %{time_starttransfer}\\n"]);
    for url in urls {
        curl.args(["-o", "/dev/null"]).arg(url);
    }
    let output = curl.output().context("cannot run curl")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {printed}", urls[0]);
    let line = |line: &str| {
        let (bytes, seconds) = line.split_once(' ')?;
        Some((bytes.parse().ok()?, seconds.parse::<f64>().ok()? * 1000.0))
    };
    let figures: Option<Vec<(u64, f64)>> = printed.lines().map(line).collect();
    figures.with_context(|| format!("curl printed {printed}"))
}

/// Box with an owner, whose session curl has.
pub struct BoxPages {
    /// Program that serves the pages.
    pub tinboxd: Tinboxd,
    cookies: PathBuf,
}

impl BoxPages {
    /// Starts a box and claims it.
    ///
    /// # Errors
    /// The box does not start, or refuses its code.
    pub fn start() -> Result<Self> {
        let tinboxd = Tinboxd::start_with("[web]\nlisten = \"ADDRESS:8443\"\n")?;
        let cookies = tinboxd.folder().join("cookies");
        let pages = Self { tinboxd, cookies };
        let code = pages.code()?;
        let form = format!("code={code}&passphrase={PASSPHRASE}&again={PASSPHRASE}");
        let mut claim = Command::new("curl");
        claim.args(["-ksSf", "-c"]).arg(&pages.cookies).args(["--data", &form]);
        let output = claim.arg(pages.url("/S")).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(pages)
    }

    /// Returns the claim code, as soon as the pages are served.
    fn code(&self) -> Result<String> {
        let begin = Instant::now();
        while text(&self.url("/S"), &[]).is_err() {
            if begin.elapsed() > START_LIMIT {
                bail!("the pages are not served");
            }
            sleep(Duration::from_millis(100));
        }
        let kept = fs::read(self.tinboxd.folder().join("state/claim.json"))?;
        let kept: Value = serde_json::from_slice(&kept)?;
        Ok(kept["code"].as_str().context("no code")?.to_owned())
    }

    /// Returns the URL of a page.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}:{PORT}{path}", self.tinboxd.address())
    }

    /// Returns the arguments of curl for the session of the owner.
    pub fn session(&self) -> Vec<String> {
        vec!["-b".to_owned(), self.cookies.display().to_string()]
    }

    /// Returns the traffic of the live stream of a page, in KiB a second.
    ///
    /// # Errors
    /// The stream ends.
    pub fn traffic(&self, path: &str) -> Result<f64> {
        let mut curl = Command::new("curl");
        curl.args(["-ksSN", "-o", "/dev/null", "-w", "%{stderr}%{size_download}\\n"]);
        curl.args(["-H", "Accept-Encoding: gzip", "-m", &TRAFFIC_SECONDS.to_string()]);
        let output = curl.args(self.session()).arg(self.url(path)).output()?;
        let printed = String::from_utf8_lossy(&output.stderr);
        let bytes = printed.lines().find_map(|line| line.parse::<u64>().ok());
        let bytes = bytes.with_context(|| format!("curl printed {printed}"))?;
        ensure!(output.status.code() == Some(28), "expected a timeout, found {printed}");
        Ok(bytes as f64 / 1024.0 / f64::from(TRAFFIC_SECONDS))
    }

    /// Returns the cost of a page.
    ///
    /// # Errors
    /// As [`visit`].
    pub fn visit(&self, path: &str) -> Result<Visit> {
        visit(&self.url(path), &self.session())
    }
}
