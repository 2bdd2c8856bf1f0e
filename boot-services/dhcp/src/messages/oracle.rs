//! Check of the server's messages by another implementation: dhcproto must parse the same options.

use std::collections::BTreeSet;

use dhcproto::v4::{self, OptionCode, borrowed};
use dhcproto::{Decodable as _, Decoder};

use crate::messages::options::Options;

/// Checks a server's DHCPv4 message, whose options are all in the options field.
///
/// # Panics
/// dhcproto parses another value of an option, or rejects an option as malformed.
#[track_caller]
pub fn agrees(bytes: &[u8]) {
    let ours = Options::read(&bytes[240..], &[], &[]).expect("options");
    let raw = borrowed::Message::new(bytes).expect("a message");
    let mut codes = BTreeSet::new();
    for option in raw.opts() {
        let code = u8::from(option.code());
        assert_eq!(ours.get(code), Some(option.data()), "option {code}");
        codes.insert(option.code());
    }
    // The typed reader stops at the first malformed option. A relay's own option is echoed as the
    // relay wrote it, and is the last.
    let typed = v4::Message::decode(&mut Decoder::new(bytes)).expect("a message");
    let mut read: BTreeSet<OptionCode> = typed.opts().iter().map(|(code, _)| *code).collect();
    let relay = OptionCode::RelayAgentInformation;
    codes.remove(&relay);
    read.remove(&relay);
    assert_eq!(read, codes, "options that dhcproto reads as their types");
    assert_eq!(typed.opcode(), v4::Opcode::BootReply);
}
