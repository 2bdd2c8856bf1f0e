//! HTTP compared with nginx with sendfile, plain and over TLS 1.3: wrk sends the same load to both.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use peers::find;

use crate::served::{CERTIFICATE, HTTP_PORT, KEY, TLS_PORT};
use crate::server::{CLIENT_CORE, HOST, Server};
use figures::{Goal, Table, median};

const NGINX_PORT: u16 = 8080;
const NGINX_TLS_PORT: u16 = 8443;
const BIG: u64 = 1 << 30;
const SMALL: u64 = 4 << 10;
const CONNECTIONS: &str = "32";
/// Duration of one run of wrk.
const SPAN: &str = "4s";
/// Minimum ratio of the box's figures to nginx's: bytes per CPU-second and requests per second.
const GOAL: f64 = 0.9;

/// Results of one run of wrk, with the server's CPU time.
struct Run {
    gib_per_cpu_second: f64,
    requests_per_second: f64,
    cpu_us_per_request: f64,
}

/// Adds the figures for HTTP to the table.
///
/// # Errors
/// A server or wrk is missing or fails.
pub fn measure(rounds: usize, table: &mut Table) -> Result<()> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    let me = std::env::current_exe()?;
    let me = me.to_str().context("the path of this program is not UTF-8")?;
    let artifacts = folder.path().to_str().context("a folder's path is not UTF-8")?;
    let mut ours = Server::start("tinbox", (me, ""), &["served", artifacts], folder.path())?;
    ours.wait_for("tcp", TLS_PORT)?;
    let config = folder.path().join("nginx.conf");
    let config = config.to_str().context("a folder's path is not UTF-8")?;
    let nginx = ["-c", config, "-p", artifacts, "-e", "nginx.errors"];
    let mut theirs = Server::start("nginx", ("nginx", "nginx"), &nginx, folder.path())?;
    theirs.wait_for("tcp", NGINX_TLS_PORT)?;
    for (kind, scheme, our_port, their_port) in
        [("HTTP", "http", HTTP_PORT, NGINX_PORT), ("HTTPS", "https", TLS_PORT, NGINX_TLS_PORT)]
    {
        for (file, what) in [("big", "1 GiB"), ("small", "4 KiB")] {
            let (mut our, mut their) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                our.push(run(&ours, scheme, our_port, file)?);
                their.push(run(&theirs, scheme, their_port, file)?);
            }
            let mut add = |what: String, figure: fn(&Run) -> f64, goal: Goal| {
                let middle = |runs: &[Run]| median(runs.iter().map(figure).collect());
                table.add(&what, middle(&our), ("nginx", middle(&their)), goal);
            };
            let title = format!("{kind} {what}, {CONNECTIONS} connections");
            if file == "big" {
                let per_cpu: fn(&Run) -> f64 = |run| run.gib_per_cpu_second;
                add(format!("{title}, GiB/CPU-s"), per_cpu, Goal::AtLeast(GOAL));
            } else {
                let rate: fn(&Run) -> f64 = |run| run.requests_per_second;
                add(format!("{title}, requests/s"), rate, Goal::AtLeast(GOAL));
                let cost: fn(&Run) -> f64 = |run| run.cpu_us_per_request;
                add(format!("{title}, CPU us/request"), cost, Goal::None);
            }
        }
    }
    Ok(())
}

/// Creates the served files, a certificate for both servers, and nginx's configuration.
fn prepare(folder: &Path) -> Result<()> {
    let images = folder.join("images");
    fs::create_dir(&images)?;
    File::create(images.join("big"))?.set_len(BIG)?;
    // Loads the file into the page cache, so that no server pays for the disk access.
    std::io::copy(&mut File::open(images.join("big"))?, &mut std::io::sink())?;
    fs::write(images.join("small"), vec![7; usize::try_from(SMALL)?])?;
    certificate(folder)?;
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("  {name}_temp_path temp;\n"))
        .concat();
    let config = format!(
        "daemon off;\nmaster_process off;\npid nginx.pid;\nuser root;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n{paths}  access_log off;\n  sendfile on;\n  tcp_nopush on;\n\
         \x20 keepalive_requests 1000000000;\n  default_type application/octet-stream;\n\
         \x20 root .;\n  ssl_protocols TLSv1.3;\n\
         \x20 ssl_certificate {CERTIFICATE};\n  ssl_certificate_key {KEY};\n\
         \x20 server {{ listen {HOST}:{NGINX_PORT}; listen {HOST}:{NGINX_TLS_PORT} ssl; }}\n}}\n"
    );
    let root = folder.display().to_string();
    let config = config.replace("root .;", &format!("root {root};"));
    fs::write(folder.join("nginx.conf"), config).context("cannot write nginx's configuration")
}

/// Creates a key and a self-signed certificate for the servers of a folder.
///
/// # Errors
/// The key or the certificate cannot be generated or written.
pub fn certificate(folder: &Path) -> Result<()> {
    // rcgen's keys are P-256 by default.
    let made = rcgen::generate_simple_self_signed([HOST.to_string()])?;
    fs::write(folder.join(CERTIFICATE), made.cert.pem())?;
    Ok(fs::write(folder.join(KEY), made.signing_key.serialize_pem())?)
}

fn run(server: &Server, scheme: &str, port: u16, file: &str) -> Result<Run> {
    let url = format!("{scheme}://{HOST}:{port}/images/{file}");
    let wrk = find("wrk", "wrk")?;
    let mut command = Command::new("taskset");
    command.args(["-c", CLIENT_CORE]).arg(wrk);
    command.args(["-t1", "-c", CONNECTIONS, "-d", SPAN, &url]);
    let before = server.cpu()?;
    let output = command.output().context("cannot run wrk")?;
    let cpu = (server.cpu()? - before).as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && !text.contains("Non-2xx"), "wrk at {url}: {text}");
    let said = read(&text).with_context(|| format!("wrk said: {text}"))?;
    Ok(Run {
        gib_per_cpu_second: said.bytes / (1 << 30) as f64 / cpu,
        requests_per_second: said.requests / said.seconds,
        cpu_us_per_request: cpu * 1e6 / said.requests,
    })
}

/// Figures in wrk's line `120 requests in 4.10s, 1.17GB read`.
#[derive(Debug, PartialEq)]
struct Said {
    requests: f64,
    seconds: f64,
    bytes: f64,
}

fn read(text: &str) -> Option<Said> {
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    let mut words = line.split_whitespace();
    let requests = words.next()?.parse().ok()?;
    let span = words.nth(2)?.trim_end_matches(',');
    let amount = words.next()?;
    let seconds = scaled(span, &[("ms", 1e-3), ("s", 1.0), ("m", 60.0)])?;
    let mib = f64::from(1 << 20);
    let units = [("KB", 1024.0), ("MB", mib), ("GB", mib * 1024.0), ("TB", mib * mib), ("B", 1.0)];
    Some(Said { requests, seconds, bytes: scaled(amount, &units)? })
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::{Said, read};

    #[test]
    fn reads_what_wrk_says() {
        let text = "  Thread Stats\n  515 requests in 4.10s, 2.50GB read\nRequests/sec: 1\n";
        let bytes = 2.5 * f64::from(1 << 30);
        assert_eq!(read(text), Some(Said { requests: 515.0, seconds: 4.1, bytes }));
        assert_eq!(read("  1 requests in 1.00m, 12.00KB read").unwrap().bytes, 12.0 * 1024.0);
        assert_eq!(read("unable to connect"), None);
    }
}
