//! The connection between a BMC simulator and the rack. `ipmi_sim` runs `rack-chassis SOCKET NUMBER
//! get|set|check ...` for every chassis command, which sends a request to the rack over a Unix
//! socket.
//!
//! One connection carries one request (the words separated by tabs, ended by a line feed) and one
//! answer: `ok` and lines `name:value`, or `error` and a sentence.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use stdx::testing::PATIENCE;

use crate::{BootDevice, Error, Nuc};

/// Maximum bytes of a request or answer.
const MAX_MESSAGE: u64 = 4096;

/// Sends a request to the rack that listens on `socket`; returns the output for ipmi_sim.
///
/// # Errors
/// The message for ipmi_sim's log; the caller ends with a failure status.
pub fn ask(socket: &Path, words: &[String]) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("ask the rack at {}: {error}", socket.display());
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.write_all(format!("{}\n", words.join("\t")).as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.take(MAX_MESSAGE).read_to_string(&mut answer).map_err(failed)?;
    match answer.split_once('\n') {
        Some(("ok", lines)) => Ok(lines.to_owned()),
        Some(("error", sentence)) => Err(sentence.trim().to_owned()),
        _ => Err("the rack gave no answer".to_owned()),
    }
}

/// Starts a thread that serves requests until all NUCs are retired. Each request has its own
/// thread.
pub fn serve(listener: UnixListener, nucs: Vec<Arc<Nuc>>) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let stopping = nucs.iter().all(|nuc| nuc.is_retired());
            if stopping {
                return;
            }
            let nucs = nucs.clone();
            std::thread::spawn(move || answer(&stream, &nucs));
        }
    });
}

fn answer(mut stream: &UnixStream, nucs: &[Arc<Nuc>]) {
    let mut request = String::new();
    let limited = stream.set_read_timeout(Some(PATIENCE));
    let mut reader = BufReader::new(stream.take(MAX_MESSAGE));
    if limited.is_err() || reader.read_line(&mut request).is_err() {
        return;
    }
    let words: Vec<&str> = request.trim_end().split('\t').collect();
    let answer = match perform(&words, nucs) {
        Ok(lines) => format!("ok\n{lines}"),
        Err(sentence) => format!("error\n{sentence}\n"),
    };
    // The requesting program may have ended; the action remains in effect.
    let _ = stream.write_all(answer.as_bytes());
}

/// `NUMBER get NAME...`, `NUMBER set NAME VALUE...` or `NUMBER check NAME VALUE...`, as OpenIPMI's
/// lanserv (`chassis_control` in its sample `lan.conf`) calls the program.
fn perform(words: &[&str], nucs: &[Arc<Nuc>]) -> Result<String, String> {
    let [number, verb, rest @ ..] = words else {
        return Err("usage: SOCKET NUMBER get|set|check NAME [VALUE]...".to_owned());
    };
    let nuc = number.parse::<usize>().ok().and_then(|n| nucs.get(n.checked_sub(1)?));
    let nuc = nuc.ok_or_else(|| format!("NUC `{number}` does not exist"))?;
    match *verb {
        "get" => rest.iter().map(|name| get(nuc, name)).collect(),
        "check" => rest.chunks(2).try_for_each(check).map(|()| String::new()),
        "set" => rest.chunks(2).try_for_each(|pair| set(nuc, pair)).map(|()| String::new()),
        other => Err(format!("no such verb: `{other}`")),
    }
}

fn get(nuc: &Nuc, name: &str) -> Result<String, String> {
    match name {
        "power" => Ok(format!("power:{}\n", u8::from(nuc.bmc_power()))),
        "boot" => Ok(format!(
            "boot:{}\n",
            match nuc.boot_override() {
                BootDevice::Normal => "none",
                BootDevice::Network => "pxe",
                BootDevice::Disk => "default",
            }
        )),
        other => Err(format!("cannot get `{other}`")),
    }
}

fn set(nuc: &Nuc, pair: &[&str]) -> Result<(), String> {
    let done: Result<(), Error> = match pair {
        ["power", "1"] => nuc.bmc_power_on(),
        ["power", "0"] => nuc.bmc_power_off(),
        ["reset", ..] => nuc.bmc_reset(),
        ["shutdown", ..] => nuc.bmc_soft_off(),
        ["boot", device] => nuc.bmc_boot(boot_device(device)?),
        // An identify LED, which no NUC here has.
        ["identify", ..] => Ok(()),
        other => return Err(format!("cannot set `{}`", other.join(" "))),
    };
    done.map_err(|error| stdx::chain(&error))
}

fn check(pair: &[&str]) -> Result<(), String> {
    match pair {
        ["boot", device] => boot_device(device).map(drop),
        ["power" | "reset" | "shutdown" | "identify", ..] => Ok(()),
        other => Err(format!("cannot set `{}`", other.join(" "))),
    }
}

/// Returns the boot device for lanserv's name of a boot device; lanserv's name of the hard disk is
/// `default`.
fn boot_device(word: &str) -> Result<BootDevice, String> {
    match word {
        "none" => Ok(BootDevice::Normal),
        "pxe" => Ok(BootDevice::Network),
        "default" => Ok(BootDevice::Disk),
        other => Err(format!("this NUC cannot boot from `{other}`")),
    }
}
