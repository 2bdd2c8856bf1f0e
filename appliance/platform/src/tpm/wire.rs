//! Commands and answers of a TPM 2.0 as bytes (TCG, "TPM 2.0 Library", parts 2 and 3), as far as
//! sealing needs them. Nothing here touches a device.

/// Bytes before the parameters of a command or an answer.
pub(super) const HEADER: usize = 10;
/// Bytes of the longest answer that is taken.
pub(super) const ANSWER_MAX: usize = 4096;

/// `TPM_ST_NO_SESSIONS` and `TPM_ST_SESSIONS`.
const WITHOUT_SESSIONS: u16 = 0x8001;
const WITH_SESSIONS: u16 = 0x8002;
/// `TPM_RH_OWNER`, `TPM_RH_NULL`, `TPM_RS_PW`.
const OWNER: u32 = 0x4000_0001;
const NULL: u32 = 0x4000_0007;
const PASSWORD: u32 = 0x4000_0009;
/// `TPM_ALG_*`.
const SHA256: u16 = 0x000b;
const NO_ALGORITHM: u16 = 0x0010;
/// `TPM_CC_*`.
const CREATE_PRIMARY: u32 = 0x131;
const CREATE: u32 = 0x153;
const LOAD: u32 = 0x157;
const UNSEAL: u32 = 0x15e;
const FLUSH_CONTEXT: u32 = 0x165;
const START_SESSION: u32 = 0x176;
const POLICY_PCR: u32 = 0x17f;
const POLICY_DIGEST: u32 = 0x189;

/// Type of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// Proves a policy (`TPM_SE_POLICY`).
    Policy = 1,
    /// Computes a policy and proves nothing (`TPM_SE_TRIAL`).
    Trial = 3,
}

/// A command under construction.
struct Command {
    tag: u16,
    bytes: Vec<u8>,
}

impl Command {
    fn new(code: u32) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[6..HEADER].copy_from_slice(&code.to_be_bytes());
        Self { tag: WITHOUT_SESSIONS, bytes }
    }

    fn u8(mut self, value: u8) -> Self {
        self.bytes.push(value);
        self
    }

    fn u16(mut self, value: u16) -> Self {
        self.bytes.extend(value.to_be_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.bytes.extend(value.to_be_bytes());
        self
    }

    /// Bytes after their count (`TPM2B`). The callers' are far shorter than 64 KiB.
    fn sized(self, bytes: &[u8]) -> Self {
        let mut with_count = self.u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
        with_count.bytes.extend(bytes);
        with_count
    }

    /// The area of one session without nonce and HMAC: a policy, or the empty password.
    fn authorized_by(mut self, session: u32) -> Self {
        self.tag = WITH_SESSIONS;
        self.u32(9).u32(session).u16(0).u8(0).u16(0)
    }

    fn finish(mut self) -> Vec<u8> {
        let size = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes[..2].copy_from_slice(&self.tag.to_be_bytes());
        self.bytes[2..6].copy_from_slice(&size.to_be_bytes());
        self.bytes
    }
}

/// Makes the storage key that a TPM always derives alike from its seed: ECC P-256 with AES-128-CFB
/// (TCG, "Provisioning Guidance", SRK template).
pub(super) fn create_primary() -> Vec<u8> {
    // fixedTPM, fixedParent, sensitiveDataOrigin, userWithAuth, noDA, restricted, decrypt.
    let attributes = 0x0003_0472;
    let public = Command { tag: 0, bytes: Vec::new() }
        .u16(0x0023) // TPM_ALG_ECC
        .u16(SHA256)
        .u32(attributes)
        .sized(&[])
        .u16(0x0006) // TPM_ALG_AES
        .u16(128)
        .u16(0x0043) // TPM_ALG_CFB
        .u16(NO_ALGORITHM)
        .u16(0x0003) // TPM_ECC_NIST_P256
        .u16(NO_ALGORITHM)
        .sized(&[])
        .sized(&[]);
    let command = Command::new(CREATE_PRIMARY).u32(OWNER).authorized_by(PASSWORD);
    command.sized(&[0; 4]).sized(&public.bytes).sized(&[]).u32(0).finish()
}

/// Seals `secret` below `parent`, for a session that proves `policy`.
pub(super) fn create(parent: u32, secret: &[u8], policy: &[u8]) -> Vec<u8> {
    let sensitive = Command { tag: 0, bytes: Vec::new() }.sized(&[]).sized(secret);
    let public = Command { tag: 0, bytes: Vec::new() }
        .u16(0x0008) // TPM_ALG_KEYEDHASH
        .u16(SHA256)
        .u32(0x0000_0412) // fixedTPM, fixedParent, noDA; without userWithAuth
        .sized(policy)
        .u16(NO_ALGORITHM)
        .sized(&[]);
    let command = Command::new(CREATE).u32(parent).authorized_by(PASSWORD);
    command.sized(&sensitive.bytes).sized(&public.bytes).sized(&[]).u32(0).finish()
}

/// Loads what `create` gave.
pub(super) fn load(parent: u32, private: &[u8], public: &[u8]) -> Vec<u8> {
    Command::new(LOAD).u32(parent).authorized_by(PASSWORD).sized(private).sized(public).finish()
}

/// Gives the secret of a loaded object to a session that proved its policy.
pub(super) fn unseal(item: u32, session: u32) -> Vec<u8> {
    Command::new(UNSEAL).u32(item).authorized_by(session).finish()
}

/// Forgets a loaded object or a session.
pub(super) fn flush(handle: u32) -> Vec<u8> {
    Command::new(FLUSH_CONTEXT).u32(handle).finish()
}

/// Begins a session; `nonce` is random.
pub(super) fn start_session(kind: Session, nonce: &[u8; 16]) -> Vec<u8> {
    let command = Command::new(START_SESSION).u32(NULL).u32(NULL).sized(nonce).sized(&[]);
    command.u8(kind as u8).u16(NO_ALGORITHM).u16(SHA256).finish()
}

/// Binds a session to the present value of a register of SHA-256.
pub(super) fn policy_pcr(session: u32, register: u8) -> Vec<u8> {
    let selected = 1_u32 << register;
    let [first, second, third, _] = selected.to_le_bytes();
    let command = Command::new(POLICY_PCR).u32(session).sized(&[]).u32(1).u16(SHA256);
    command.u8(3).u8(first).u8(second).u8(third).finish()
}

/// Asks for the digest of a session's policy.
pub(super) fn policy_digest(session: u32) -> Vec<u8> {
    Command::new(POLICY_DIGEST).u32(session).finish()
}

/// Bytes of an answer that has come so far: the size that it will have, once that is known.
pub(super) fn size_of_answer(bytes: &[u8]) -> Option<usize> {
    let size = u32::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    usize::try_from(size).ok()
}

/// The answer of a TPM: what follows its header, or its response code.
pub(super) fn parse(answer: &[u8]) -> Option<Result<Fields<'_>, u32>> {
    let (header, rest) = answer.split_first_chunk::<HEADER>()?;
    let code = u32::from_be_bytes(*header.last_chunk()?);
    let whole = size_of_answer(answer) == Some(answer.len());
    whole.then_some(if code == 0 { Ok(Fields(rest)) } else { Err(code) })
}

/// Fields in order. Each is `None` behind the end.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Fields outside an answer.
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*value))
    }

    pub(super) fn sized(&mut self) -> Option<&'a [u8]> {
        let (count, rest) = self.0.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(u16::from_be_bytes(*count).into())?;
        self.0 = rest;
        Some(value)
    }
}
