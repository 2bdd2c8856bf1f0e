use super::{Link, LinkMessage, latest};
use stdx::MacAddr;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);

/// Returns a netlink link message: header, ifinfomsg, and padded attributes.
fn message(kind: u16, family: u8, index: u32, flags: u32, changes: u32) -> Vec<u8> {
    let mut body = vec![family, 0, 1, 0];
    body.extend(index.to_ne_bytes());
    body.extend(flags.to_ne_bytes());
    body.extend([0; 4]);
    let mut attribute = |kind: u16, value: &[u8]| {
        body.extend((4 + value.len() as u16).to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    };
    attribute(3, b"eth1\0");
    attribute(1, &MAC.0);
    attribute(35, &changes.to_ne_bytes());
    attribute(0x8000 | 60, &[0; 12]);
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend([0; 10]);
    message.extend(body);
    message
}

fn link(carrier: bool, changes: u32) -> Option<LinkMessage> {
    Some(LinkMessage::Link(Link { index: 7, mac: MAC, carrier, changes }))
}

#[test]
fn the_last_word_of_a_batch_counts() {
    let up = message(16, 0, 7, 0x1_0043, 4);
    let down = message(16, 0, 7, 0x1003, 5);
    let other = message(16, 0, 8, 0x1_0043, 9);
    assert_eq!(latest(&up, 7), link(true, 4));
    assert_eq!(latest(&[&up[..], &down, &other].concat(), 7), link(false, 5));
    assert_eq!(latest(&other, 7), None);
    assert_eq!(latest(&[up, message(17, 0, 7, 0, 5)].concat(), 7), Some(LinkMessage::Gone));
}

#[test]
fn a_port_that_leaves_its_bridge_is_still_there() {
    const AF_BRIDGE: u8 = 7;
    assert_eq!(latest(&message(17, AF_BRIDGE, 7, 0, 1), 7), None);
    assert_eq!(latest(&message(16, AF_BRIDGE, 7, 0, 1), 7), None);
}

#[test]
fn a_refused_question_means_that_the_interface_is_gone() {
    let error = |errno: i32| {
        let mut message = 36_u32.to_ne_bytes().to_vec();
        message.extend(2_u16.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(errno.to_ne_bytes());
        message.extend([0; 16]);
        message
    };
    assert_eq!(latest(&error(-19), 7), Some(LinkMessage::Gone));
    assert_eq!(latest(&error(0), 7), None);
}

#[test]
fn cut_and_absurd_messages_say_nothing() {
    let whole = message(16, 0, 7, 0x1_0043, 4);
    for length in 0..whole.len() {
        assert_eq!(latest(&whole[..length], 7), None, "{length} bytes");
    }
    // Lengths that are too small for the parser to advance.
    let mut message = whole.clone();
    message[..4].fill(0);
    assert_eq!(latest(&message, 7), None);
    let mut message = whole;
    message[32..34].fill(0);
    assert_eq!(latest(&message, 7), None);
}
