//! User of a client certificate: CN is the user name, each O a group (k8s.io/apiserver,
//! pkg/authentication/request/x509). The caller must have verified the certificate. This module
//! reads only the subject (RFC 5280 section 4.1, DER of ITU-T X.690).

use crate::User;

/// Maximum number of groups in one certificate.
pub const MAX_GROUPS: usize = 64;

const INTEGER: u8 = 0x02;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
/// DER tags of the string types in names: UTF8String, PrintableString, TeletexString, IA5String.
/// All are read as UTF-8.
const TEXTS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];
/// OID of the common name: id-at-commonName, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// OID of the organization: id-at-organizationName, 2.5.4.10.
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// Returns the user of `certificate` (DER); `None` without a common name that is text.
pub fn user(certificate: &[u8]) -> Option<User> {
    let (whole, _) = take(certificate, SEQUENCE)?;
    let (mut fields, _) = take(whole, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = take(fields, VERSION)?.1;
    }
    fields = take(fields, INTEGER)?.1; // serial number
    for _ in ["signature", "issuer", "validity"] {
        fields = take(fields, SEQUENCE)?.1;
    }
    let (mut names, _) = take(fields, SEQUENCE)?;
    let (mut name, mut groups) = (None, Vec::new());
    while !names.is_empty() {
        let (mut set, rest) = take(names, SET)?;
        names = rest;
        while !set.is_empty() {
            let (pair, rest) = take(set, SEQUENCE)?;
            set = rest;
            let (kind, value) = take(pair, OBJECT_IDENTIFIER)?;
            if kind == COMMON_NAME {
                // The last common name is used, as in Go.
                name = Some(text(value)?);
            } else if kind == ORGANIZATION && groups.len() < MAX_GROUPS {
                groups.push(text(value)?);
            }
        }
    }
    let name = name.filter(|name| !name.is_empty())?;
    Some(User::known(name, groups))
}

fn text(value: &[u8]) -> Option<String> {
    let tag = TEXTS.into_iter().find(|tag| value.first() == Some(tag))?;
    let (text, _) = take(value, tag)?;
    Some(std::str::from_utf8(text).ok()?.to_owned())
}

/// Returns the content of the first DER element of `bytes` and the bytes after the element; `None`
/// if its type is not `tag`.
fn take(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first()?;
    if *first != tag {
        return None;
    }
    let (length, rest) = match *length {
        short @ 0..=0x7f => (usize::from(short), rest),
        // Three bytes of length at most: no certificate has 16 MiB.
        long @ 0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            (digits.iter().fold(0, |sum, digit| (sum << 8) | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::{COMMON_NAME, ORGANIZATION, user};

    fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
        let length = u16::try_from(contents.len()).unwrap().to_be_bytes();
        [&[tag, 0x82][..], &length, contents].concat()
    }

    fn name(kind: &[u8], text: &[u8]) -> Vec<u8> {
        let pair = [element(0x06, kind), element(0x0c, text)].concat();
        element(0x31, &element(0x30, &pair))
    }

    fn certificate(subject: &[u8]) -> Vec<u8> {
        let empty = element(0x30, &[]);
        let fields = [
            element(0xa0, &element(0x02, &[2])),
            element(0x02, &[1]),
            empty.clone(),
            empty.clone(),
            empty,
            element(0x30, subject),
        ];
        element(0x30, &element(0x30, &fields.concat()))
    }

    #[test]
    fn common_name_and_organizations() {
        let subject = [
            name(ORGANIZATION, b"system:masters"),
            name(COMMON_NAME, b"jane"),
            name(&[0x55, 0x04, 0x06], b"CH"),
            name(ORGANIZATION, b"dev"),
        ];
        let user = user(&certificate(&subject.concat())).unwrap();
        assert_eq!(user.name, "jane");
        assert_eq!(user.groups, ["system:masters", "dev", "system:authenticated"]);
    }

    #[test]
    fn nobody_without_a_name_and_nothing_breaks() {
        assert_eq!(user(&certificate(&name(ORGANIZATION, b"system:masters"))), None);
        assert_eq!(user(&certificate(&name(COMMON_NAME, b""))), None);
        assert_eq!(user(&certificate(&name(COMMON_NAME, b"\xff"))), None);
        let whole = certificate(&name(COMMON_NAME, b"jane"));
        for end in 0..whole.len() {
            assert_eq!(user(&whole[..end]), None);
            let mut broken = whole.clone();
            broken[end] ^= 0x81;
            let _ = user(&broken);
        }
    }
}
