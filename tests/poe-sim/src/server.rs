//! Unix socket to which the programs of `pass_persist` connect.

use std::io::{BufRead, BufReader, Result as IoResult, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};

use crate::{Listener, State, hold, objects};

/// Serves the socket in threads, which end with the process.
pub fn start(path: &Path, state: Arc<Mutex<State>>, listener: Listener) -> Result<()> {
    let socket = UnixListener::bind(path).context("cannot listen for pass_persist")?;
    let listener = Arc::new(listener);
    std::thread::spawn(move || {
        for stream in socket.incoming().flatten() {
            let (state, listener) = (Arc::clone(&state), Arc::clone(&listener));
            // The end of snmpd ends its connections.
            std::thread::spawn(move || serve(&stream, &state, &listener));
        }
    });
    Ok(())
}

fn serve(stream: &UnixStream, state: &Mutex<State>, listener: &Listener) -> IoResult<()> {
    let mut lines = BufReader::new(stream).lines();
    let end = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let mut next = || lines.next().ok_or_else(end)?;
    let mut writer = stream;
    loop {
        let command = next()?;
        let answer = match command.as_str() {
            // snmpd ends the value of `set` with an empty line.
            "" => continue,
            "PING" => "PONG\n".to_owned(),
            "get" => objects::get(&mut hold(state), &next()?),
            "getnext" => objects::get_next(&hold(state), &next()?),
            "set" => {
                let (name, value) = (next()?, next()?);
                let (answer, changed) = objects::set(&mut hold(state), &name, &value);
                if let Some(port) = changed {
                    listener(&port);
                }
                answer
            }
            _ => "NONE\n".to_owned(),
        };
        writer.write_all(answer.as_bytes())?;
    }
}
