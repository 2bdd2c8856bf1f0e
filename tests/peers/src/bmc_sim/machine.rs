//! The BMC's side of RMCP+: one received datagram, at most one answer, and malformed copies of it.

use std::collections::{HashMap, HashSet};

use bmc::CipherSuite;
use ipmi::crypto::{SessionKeys, hmac};

use super::{BmcSim, Chassis, Config, FullAt, Loss, Noise, Traffic};

const GUID: [u8; 16] = *b"\x4b\x1d\x00\xc0\xff\xee\x4b\x1d\x80\x00\x52\x54\x00\x77\x00\x01";
const SESSIONS_LIMIT: usize = 4;
const RMCP: [u8; 4] = [6, 0, 0xFF, 7];

/// One session, from its proposal on.
struct Session {
    suite: CipherSuite,
    console_id: [u8; 4],
    managed_random: [u8; 16],
    /// From RAKP message 1: random number, role, user name.
    console: Option<([u8; 16], u8, Vec<u8>)>,
    /// Session keys, once RAKP message 3 is verified.
    keys: Option<SessionKeys>,
    privilege: u8,
    received: u32,
    sent: u32,
}

pub(super) struct Machine {
    config: Config,
    sessions: HashMap<u32, Session>,
    seen: HashSet<Vec<u8>>,
    pub(super) chassis: Chassis,
    pub(super) traffic: Traffic,
    /// True if the last request of a session was Chassis Control.
    was_power: bool,
    /// Sessions of other clients.
    pub(super) occupied: usize,
}

impl Machine {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            sessions: HashMap::new(),
            seen: HashSet::new(),
            chassis: Chassis::default(),
            traffic: Traffic::default(),
            was_power: false,
            occupied: 0,
        }
    }

    pub(super) fn set_noise(&mut self, noise: Noise) {
        self.config.noise = noise;
    }

    /// Returns true if no session is free for a client that has reached `step`.
    fn is_full_at(&self, step: FullAt) -> bool {
        let own = usize::from(step == FullAt::Privilege);
        self.config.full_at == step && self.sessions() + self.occupied >= SESSIONS_LIMIT + own
    }

    pub(super) fn sessions(&self) -> usize {
        self.sessions.values().filter(|session| session.keys.is_some()).count()
    }

    pub(super) fn restart(&mut self) {
        self.sessions.clear();
    }

    /// Returns the datagrams that answer a datagram; [`Traffic`] counts the malformed copies of an
    /// answer as one with it.
    pub(super) fn receive(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.traffic.received += 1;
        if self.config.rubbish {
            self.traffic.sent += 1;
            return vec![datagram.iter().map(|byte| byte ^ 0x55).collect()];
        }
        let Some(answer) = self.answer(datagram) else { return Vec::new() };
        let is_in_session = answer[5] & 0x3F == 0 && answer[4] == 6;
        match self.config.noise {
            Noise::Before | Noise::Instead if is_in_session => {
                let mut datagrams = malformed(&answer);
                datagrams.extend(Some(answer).filter(|_| self.config.noise == Noise::Before));
                datagrams
            }
            Noise::InsteadOfPower if is_in_session && self.was_power => malformed(&answer),
            _ => vec![answer],
        }
    }

    fn answer(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let body = datagram.strip_prefix(&RMCP)?;
        let (name, answer) = match *body.first()? {
            0 => (body.to_vec(), self.before_a_session(body.get(10..)?)),
            6 => match body.get(1)? & 0x3F {
                0 => self.in_session(body)?,
                // One key for every RAKP message 3: only the first answer is lost. The client then
                // repeats the whole key exchange with new random numbers.
                0x14 => (vec![0x14], self.key_exchange(0x14, body.get(12..)?)),
                kind => (body.to_vec(), self.key_exchange(kind, body.get(12..)?)),
            },
            _ => return None,
        };
        let is_first = self.seen.insert(name);
        let answer = answer.filter(|_| !(self.config.loss == Loss::Replies && is_first))?;
        self.traffic.sent += 1;
        Some([&RMCP, answer.as_slice()].concat())
    }

    /// True when an incoming request is dropped: the first copy of each request, with
    /// [`Loss::Requests`].
    fn loses(&mut self, name: &[u8]) -> bool {
        self.config.loss == Loss::Requests && self.seen.insert(name.to_vec())
    }

    /// Answers an IPMI 1.5 message without authentication: capabilities and the list of suites.
    fn before_a_session(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        if self.loses(message) {
            return None;
        }
        let request = Request::parse(message)?;
        self.was_power = (request.net_fn, request.command) == (0, 0x02);
        let (code, data) = match (request.net_fn, request.command) {
            // Channel 1, IPMI 2.0 capable, users with names.
            (6, 0x38) => (0, vec![1, 0x80, 0x04, 0x02, 0, 0, 0, 0]),
            (6, 0x54) => (0, self.list_slice(*request.data.get(2)?)?),
            _ => (0xD4, Vec::new()),
        };
        let reply = request.reply(code, &data);
        Some([[0; 9].as_slice(), &[reply.len() as u8], &reply].concat())
    }

    fn list_slice(&self, index: u8) -> Option<Vec<u8>> {
        let records: Vec<u8> = self
            .config
            .listed
            .as_ref()?
            .iter()
            .flat_map(|number| match number {
                17 => [0xC0, 17, 0x03, 0x44, 0x81],
                3 => [0xC0, 3, 0x01, 0x41, 0x81],
                weak => [0xC0, *weak, 0x01, 0x40, 0x80],
            })
            .collect();
        let slice = records.chunks(16).nth(usize::from(index & 0x3F)).unwrap_or_default();
        Some([&[1], slice].concat())
    }

    fn key_exchange(&mut self, kind: u8, payload: &[u8]) -> Option<Vec<u8>> {
        if self.loses(payload) {
            return None;
        }
        let (kind, answer) = match kind {
            0x10 => (0x11, self.open_session(payload)?),
            0x12 => (0x13, self.rakp1(payload)?),
            0x14 => (0x15, self.rakp3(payload)?),
            _ => return None,
        };
        let header = [6, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        Some([&header, (answer.len() as u16).to_le_bytes().as_slice(), &answer].concat())
    }

    fn open_session(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let (tag, console_id) = (*request.first()?, request.get(4..8)?);
        let records = request.get(8..32)?;
        let proposed = [records[4], records[12], records[20]];
        let takes = |suite: &&CipherSuite| match suite {
            CipherSuite::Three => proposed == [1, 1, 1],
            CipherSuite::Seventeen => proposed == [3, 4, 1],
        };
        let Some(suite) = self.config.suites.iter().find(takes).copied() else {
            let refusal = [&[tag, 0x11, 0, 0], console_id].concat();
            return (!self.config.ignores_unknown_suites).then_some(refusal);
        };
        if self.is_full_at(FullAt::Open) {
            return Some([&[tag, 0x01, 0, 0], console_id].concat());
        }
        let id = u32::from_le_bytes(random()).max(1);
        let session = Session {
            suite,
            console_id: console_id.try_into().ok()?,
            managed_random: random(),
            console: None,
            keys: None,
            privilege: 2,
            received: 0,
            sent: 0,
        };
        self.sessions.insert(id, session);
        let head = [tag, 0, self.config.privilege, 0];
        Some([&head, console_id, &id.to_le_bytes(), records].concat())
    }

    fn rakp1(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let tag = *request.first()?;
        let id = u32::from_le_bytes(request.get(4..8)?.try_into().ok()?);
        let is_full = self.is_full_at(FullAt::Role);
        let session = self.sessions.get_mut(&id).filter(|session| session.keys.is_none())?;
        let console_random: [u8; 16] = request.get(8..24)?.try_into().ok()?;
        let role = *request.get(24)?;
        let username = request.get(28..28 + usize::from(*request.get(27)?))?.to_vec();
        let refuse = |status| Some([&[tag, status, 0, 0], session.console_id.as_slice()].concat());
        if username != BmcSim::USERNAME.as_bytes() {
            return refuse(0x0D);
        }
        if role & 0x0F > self.config.privilege && !self.config.checks_privilege_late {
            return refuse(0x0A);
        }
        if is_full {
            return refuse(0x0B);
        }
        let user = [&[role, username.len() as u8], username.as_slice()].concat();
        // A repeated message 1 gets a new random number, so the older answer becomes invalid.
        session.managed_random = random();
        let signed: [&[u8]; 6] = [
            &session.console_id,
            &id.to_le_bytes(),
            &console_random,
            &session.managed_random,
            &GUID,
            &user,
        ];
        let code = hmac(session.suite, BmcSim::PASSWORD.as_bytes(), &signed);
        session.console = Some((console_random, role, username));
        let head = [&[tag, 0, 0, 0], session.console_id.as_slice()].concat();
        Some([head.as_slice(), &session.managed_random, &GUID, &code].concat())
    }

    fn rakp3(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let (tag, status) = (*request.first()?, *request.get(1)?);
        let id = u32::from_le_bytes(request.get(4..8)?.try_into().ok()?);
        if status != 0 {
            self.sessions.remove(&id);
            return None;
        }
        let is_full = self.is_full_at(FullAt::Proof);
        let session = self.sessions.get_mut(&id)?;
        let (suite, console_id) = (session.suite, session.console_id);
        let refuse = |status| Some([&[tag, status, 0, 0], console_id.as_slice()].concat());
        if session.keys.is_some() {
            return refuse(0x02);
        }
        let (console_random, role, username) = session.console.as_ref()?;
        let user = [&[*role, username.len() as u8], username.as_slice()].concat();
        let key = BmcSim::PASSWORD.as_bytes();
        let proof = hmac(suite, key, &[&session.managed_random, &console_id, &user]);
        if proof.as_slice() != request.get(8..)? {
            self.sessions.remove(&id);
            return refuse(0x0F);
        }
        if is_full {
            self.sessions.remove(&id);
            return refuse(0x01);
        }
        let sik = hmac(suite, key, &[console_random, &session.managed_random, &user]);
        let check = hmac(suite, &sik, &[console_random, &id.to_le_bytes(), &GUID]);
        let check_len = if suite == CipherSuite::Seventeen { 16 } else { 12 };
        session.keys = Some(SessionKeys::derive(suite, &sik));
        self.traffic.opened += 1;
        Some([&[tag, 0, 0, 0], console_id.as_slice(), &check[..check_len]].concat())
    }

    /// Returns a key that identifies a request and its repetitions, to simulate losses, and the
    /// answer; the answer is `None` if it gets lost. Returns `None` for an invalid packet, and for
    /// a request that gets lost.
    fn in_session(&mut self, body: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let number = |at: usize| Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?));
        let (id, sequence) = (number(2)?, number(6)?);
        let len = usize::from(u16::from_le_bytes([*body.get(10)?, *body.get(11)?]));
        let is_full = self.is_full_at(FullAt::Privilege);
        let session = self.sessions.get_mut(&id)?;
        let keys = session.keys.as_ref()?;
        let code_at = body.len().checked_sub(if keys.sign(&[]).len() == 16 { 16 } else { 12 })?;
        let both = body[1] & 0xC0 == 0xC0;
        if !both || !keys.verify(&body[..code_at], &body[code_at..]) {
            return None;
        }
        if sequence <= session.received {
            return None;
        }
        session.received = sequence;
        let message = keys.decrypt(body.get(12..12 + len)?).ok()?;
        let name = [id.to_le_bytes().as_slice(), &message].concat();
        if self.config.loss == Loss::Requests && self.seen.insert(name.clone()) {
            return None;
        }
        let request = Request::parse(&message)?;
        self.was_power = (request.net_fn, request.command) == (0, 0x02);
        let (code, data) = match (request.net_fn, request.command) {
            (6, 0x3B) if is_full => (0xC0, Vec::new()),
            _ => command(&mut self.chassis, session, self.config.privilege, &request),
        };
        let mut reply = request.reply(code, &data);
        if let Noise::Cut(len) = self.config.noise {
            reply.truncate(len);
        }
        let answer = seal(session, &reply)?;
        if (request.net_fn, request.command, code) == (6, 0x3C, 0) {
            self.sessions.remove(&id);
            self.traffic.closed += 1;
        }
        let is_status = (request.net_fn, request.command) == (0, 0x01);
        let lost = is_status && self.config.loss == Loss::StatusReplies;
        Some((name, Some(answer).filter(|_| !lost)))
    }
}

fn command(
    chassis: &mut Chassis,
    session: &mut Session,
    limit: u8,
    request: &Request<'_>,
) -> (u8, Vec<u8>) {
    let data = request.data;
    match (request.net_fn, request.command) {
        (6, 0x01) => (0, vec![0x20, 1, 1, 0x23, 2, 0x80, 0x57, 1, 0, 0x34, 0x12]),
        (6, 0x3B) => match data {
            [0] => (0, vec![session.privilege]),
            [level] if *level <= limit => {
                session.privilege = *level;
                (0, vec![*level])
            }
            _ => (0x81, Vec::new()),
        },
        (6, 0x3C) => (0, Vec::new()),
        (0, 0x02 | 0x08) if session.privilege < 3 => (0xD4, Vec::new()),
        (0, command) => chassis.command(command, data),
        _ => (0xC1, Vec::new()),
    }
}

fn seal(session: &mut Session, message: &[u8]) -> Option<Vec<u8>> {
    session.sent += 1;
    let keys = session.keys.as_ref()?;
    let hidden = keys.encrypt(random(), message);
    let mut packet = vec![6, 0xC0];
    packet.extend(session.console_id);
    packet.extend(session.sent.to_le_bytes());
    packet.extend((hidden.len() as u16).to_le_bytes());
    packet.extend(hidden);
    // The header has 12 bytes and the ciphertext a multiple of 16; two pad bytes precede the code.
    packet.extend([0xFF, 0xFF, 2, 7]);
    let code = keys.sign(&packet);
    packet.extend(code);
    Some(packet)
}

/// Returns all beginnings of a datagram, and copies with one changed bit.
fn malformed(answer: &[u8]) -> Vec<Vec<u8>> {
    let beginnings = (0..answer.len()).map(|len| answer[..len].to_vec());
    // The bytes before are the RMCP header, which no code protects.
    let changed = (RMCP.len()..answer.len()).map(|at| {
        let mut copy = answer.to_vec();
        copy[at] ^= 1 << (at % 8);
        copy
    });
    beginnings.chain(changed).collect()
}

/// A received IPMI message.
struct Request<'a> {
    net_fn: u8,
    address: u8,
    sequence: u8,
    command: u8,
    data: &'a [u8],
}

impl<'a> Request<'a> {
    fn parse(message: &'a [u8]) -> Option<Self> {
        let sums_to_zero = |bytes: &[u8]| bytes.iter().fold(0_u8, |a, b| a.wrapping_add(*b)) == 0;
        let (head, body) = message.split_at_checked(3)?;
        if body.len() < 4 || !sums_to_zero(head) || !sums_to_zero(body) || head[0] != 0x20 {
            return None;
        }
        Some(Self {
            net_fn: head[1] >> 2,
            address: body[0],
            sequence: body[1],
            command: body[2],
            data: &body[3..body.len() - 1],
        })
    }

    fn reply(&self, code: u8, data: &[u8]) -> Vec<u8> {
        let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |a, b| a.wrapping_sub(*b));
        let head = [self.address, (self.net_fn | 1) << 2];
        let mut body = vec![0x20, self.sequence, self.command, code];
        body.extend_from_slice(data);
        [head.as_slice(), &[sum(&head)], &body, &[sum(&body)]].concat()
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel gives randomness");
    bytes
}
