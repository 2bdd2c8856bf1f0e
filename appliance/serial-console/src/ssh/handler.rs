//! Handler of one SSH connection: login, then one channel with a console.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use russh::keys::PublicKey;
use russh::server::{
    Auth, ChannelOpenHandle, Handle, Msg, PublicKeyOffer, Session, VerifiedPublicKey,
};
use russh::{Channel, ChannelId, Pty};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::{ConsoleOutput, Consoles, Input};

/// Command that prints the recorded text instead of the console.
const LOG_COMMAND: &[u8] = b"log";
/// Interval between two checks that the key of an open console is still valid.
const CHECK: Duration = Duration::from_secs(5);
/// Last lines of a console whose machine, or whose key, was removed.
const REMOVED: &[u8] = b"\r\n[the machine was removed]\r\n";
const REVOKED: &[u8] = b"\r\n[your key may not use this console any more]\r\n";
/// Exit status of a command that is not known.
const NOT_FOUND: u32 = 127;

/// State of one connection.
pub(super) struct Handler {
    consoles: Consoles,
    peer: SocketAddr,
    logged_in: watch::Sender<bool>,
    /// Name of the machine, after the login.
    machine: String,
    /// Key of the login.
    key: Option<PublicKey>,
    channel: Option<ChannelId>,
    input: Option<Input>,
    /// Task that sends the output.
    output: Option<AbortHandle>,
}

impl Handler {
    pub(super) fn new(
        consoles: Consoles,
        peer: SocketAddr,
        logged_in: watch::Sender<bool>,
    ) -> Self {
        Self {
            consoles,
            peer,
            logged_in,
            machine: String::new(),
            key: None,
            channel: None,
            input: None,
            output: None,
        }
    }

    async fn admits(&self, machine: &str, key: &PublicKey) -> bool {
        admits(&self.consoles, machine, key).await
    }
}

/// Returns true if the key may use the console of this machine now.
async fn admits(consoles: &Consoles, machine: &str, key: &PublicKey) -> bool {
    let keys = consoles.keys(machine).await;
    // The comment of a key is not part of it.
    let mut keys = keys.iter().filter_map(|text| PublicKey::from_openssh(text.trim()).ok());
    keys.any(|allowed| allowed.key_data() == key.key_data())
}

impl Drop for Handler {
    fn drop(&mut self) {
        if let Some(output) = &self.output {
            output.abort();
        }
    }
}

impl russh::server::Handler for Handler {
    type Error = russh::Error;

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        match self.admits(user, offer.public_key).await {
            true => Ok(Auth::Accept),
            false => Ok(Auth::reject()),
        }
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        if !self.admits(user, key.public_key).await {
            tracing::info!(peer = %self.peer, machine = user, "SSH key refused");
            return Ok(Auth::reject());
        }
        tracing::info!(peer = %self.peer, machine = user, "serial console opened over SSH");
        user.clone_into(&mut self.machine);
        self.key = Some(key.public_key.clone());
        self.logged_in.send_replace(true);
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        // One channel a connection; a second one is refused by the drop of `reply`.
        if self.channel.is_none() {
            self.channel = Some(channel.id());
            reply.accept().await;
        }
        Ok(())
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _term: &str,
        _columns: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        _modes: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        // The terminal is that of the machine; its size and modes are not for the box.
        session.channel_success(channel)
    }

    async fn shell_request(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        if self.output.is_some() {
            return session.channel_failure(channel);
        }
        let Some(key) = self.key.clone() else { return session.channel_failure(channel) };
        let viewer = match self.consoles.attach(&self.machine).await {
            Ok(viewer) => viewer,
            Err(error) => {
                session.channel_success(channel)?;
                session.data(channel, format!("{error}\r\n"))?;
                return end(session, channel, 1);
            }
        };
        session.channel_success(channel)?;
        self.input = Some(viewer.input);
        let (consoles, machine) = (self.consoles.clone(), self.machine.clone());
        let handle = session.handle();
        let showing = async move {
            let revoked = revoked(&consoles, &machine, &key);
            let why = tokio::select! {
                () = send(&handle, channel, viewer.history, viewer.shown) => REMOVED,
                () = revoked => {
                    tracing::info!(machine, "serial console ended: the key is not valid any more");
                    REVOKED
                }
            };
            let _ = handle.data(channel, Bytes::from_static(why)).await;
            let _ = handle.close(channel).await;
        };
        self.output = Some(tokio::spawn(showing).abort_handle());
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)?;
        if command != LOG_COMMAND {
            session.data(channel, "the only command is \"log\": the recorded text\r\n")?;
            return end(session, channel, NOT_FOUND);
        }
        match self.consoles.recorded(&self.machine).await {
            Ok(text) => {
                session.data(channel, text)?;
                end(session, channel, 0)
            }
            Err(error) => {
                session.data(channel, format!("{error}\r\n"))?;
                end(session, channel, 1)
            }
        }
    }

    async fn data(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        if let Some(input) = &self.input
            && !input.send(data).await
        {
            session.data(channel, "\r\n[typed characters were dropped]\r\n")?;
        }
        Ok(())
    }

    async fn channel_eof(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        // Without input, the client still reads.
        self.input = None;
        let _ = (channel, session);
        Ok(())
    }
}

fn end(session: &mut Session, channel: ChannelId, status: u32) -> Result<(), russh::Error> {
    session.exit_status_request(channel, status)?;
    session.eof(channel)?;
    session.close(channel)
}

/// Waits until the key may not use the console of the machine any more.
async fn revoked(consoles: &Consoles, machine: &str, key: &PublicKey) {
    loop {
        tokio::time::sleep(CHECK).await;
        if !admits(consoles, machine, key).await {
            return;
        }
    }
}

/// Sends the output of a console until one side ends.
async fn send(handle: &Handle, channel: ChannelId, history: Vec<u8>, mut shown: ConsoleOutput) {
    let mut next = Some(Bytes::from(history));
    while let Some(bytes) = next {
        if !bytes.is_empty() && handle.data(channel, bytes).await.is_err() {
            return;
        }
        next = shown.next().await;
    }
}
