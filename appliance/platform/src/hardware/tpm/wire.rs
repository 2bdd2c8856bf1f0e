//! Encoding of TPM 2.0 commands and responses, as far as sealing needs them (TCG, "TPM 2.0
//! Library", parts 2 and 3). The module does not access a device.

/// Length in bytes of the header of a command or response.
pub(super) const HEADER: usize = 10;
/// Maximum length of an accepted response in bytes.
pub(super) const ANSWER_MAX: usize = 4096;

/// Tags of commands: `TPM_ST_NO_SESSIONS` and `TPM_ST_SESSIONS`.
const WITHOUT_SESSIONS: u16 = 0x8001;
const WITH_SESSIONS: u16 = 0x8002;
/// Permanent handles: `TPM_RH_OWNER`, `TPM_RH_NULL`, `TPM_RS_PW`.
const OWNER: u32 = 0x4000_0001;
const NULL: u32 = 0x4000_0007;
const PASSWORD: u32 = 0x4000_0009;
/// Algorithm identifiers of `TPM_ALG_*`.
const SHA256: u16 = 0x000b;
const NO_ALGORITHM: u16 = 0x0010;
/// Command codes of `TPM_CC_*`.
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
    /// Session that satisfies a policy (`TPM_SE_POLICY`).
    Policy = 1,
    /// Session that only computes the digest of a policy (`TPM_SE_TRIAL`).
    Trial = 3,
}

/// TPM command under construction.
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

    /// Appends bytes after their 16-bit length (`TPM2B`). The callers pass far less than 64 KiB.
    fn sized(self, bytes: &[u8]) -> Self {
        let mut with_count = self.u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
        with_count.bytes.extend(bytes);
        with_count
    }

    /// Appends the authorization by one session, without nonce and HMAC: a policy session, or the
    /// empty password.
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

/// Builds the command that creates the storage key, which a TPM always derives from its seed in the
/// same way: ECC P-256 with AES-128-CFB (TCG, "Provisioning Guidance", SRK template).
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

/// Builds the command that seals `secret` below `parent`. Unsealing needs a session with `policy`.
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

/// Builds the command that loads the private and public part, as [`create`] returned them.
pub(super) fn load(parent: u32, private: &[u8], public: &[u8]) -> Vec<u8> {
    Command::new(LOAD).u32(parent).authorized_by(PASSWORD).sized(private).sized(public).finish()
}

/// Builds the command that returns the secret of a loaded object. `session` satisfies its policy.
pub(super) fn unseal(item: u32, session: u32) -> Vec<u8> {
    Command::new(UNSEAL).u32(item).authorized_by(session).finish()
}

/// Builds the command that frees a loaded object or a session.
pub(super) fn flush(handle: u32) -> Vec<u8> {
    Command::new(FLUSH_CONTEXT).u32(handle).finish()
}

/// Builds the command that starts a session. `nonce` must be random.
pub(super) fn start_session(kind: Session, nonce: &[u8; 16]) -> Vec<u8> {
    let command = Command::new(START_SESSION).u32(NULL).u32(NULL).sized(nonce).sized(&[]);
    command.u8(kind as u8).u16(NO_ALGORITHM).u16(SHA256).finish()
}

/// Builds the command that binds a session to the current value of a PCR in the SHA-256 bank.
pub(super) fn policy_pcr(session: u32, register: u8) -> Vec<u8> {
    let selected = 1_u32 << register;
    let [first, second, third, _] = selected.to_le_bytes();
    let command = Command::new(POLICY_PCR).u32(session).sized(&[]).u32(1).u16(SHA256);
    command.u8(3).u8(first).u8(second).u8(third).finish()
}

/// Builds the command that returns the digest of a session's policy.
pub(super) fn policy_digest(session: u32) -> Vec<u8> {
    Command::new(POLICY_DIGEST).u32(session).finish()
}

/// Returns the total size of a response, or `None` before the size field was received.
pub(super) fn size_of_answer(bytes: &[u8]) -> Option<usize> {
    let size = u32::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    usize::try_from(size).ok()
}

/// Parses a response: the bytes after its header, or the TPM's error code. Returns `None` for an
/// incomplete response.
pub(super) fn parse(answer: &[u8]) -> Option<Result<Fields<'_>, u32>> {
    let (header, rest) = answer.split_first_chunk::<HEADER>()?;
    let code = u32::from_be_bytes(*header.last_chunk()?);
    let whole = size_of_answer(answer) == Some(answer.len());
    whole.then_some(if code == 0 { Ok(Fields(rest)) } else { Err(code) })
}

/// Reader of consecutive fields. Each method returns `None` at the end of the bytes.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Creates a reader of bytes without a response header.
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
