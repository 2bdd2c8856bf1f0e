//! Input of the agent: from a DHCP server, from the boot script, and from a workflow.

#![no_main]

use agent::actions::{Action, Limits};
use agent::init::CommandLine;
use agent_rpc::Assignment;
use fuzz::Input;
use imaging::stream::Url;
use libfuzzer_sys::fuzz_target;
use platform::net::dhcp::{ServerResponse, decode};
use stdx::MacAddr;

const ID: u32 = 0x1234_5678;
const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);
const IMAGES: [&str; 11] = [
    "image2disk",
    "writefile",
    "disk-wipe",
    "kexec",
    "reboot",
    "qemuimg2disk",
    "archive2disk",
    "cexec",
    "grub2disk",
    "syslinux",
    "slurp",
];

fn dhcp(bytes: &[u8]) {
    let mut answer = bytes.to_vec();
    if let Some(fixed) = answer.get_mut(..240) {
        fixed[0] = 2;
        fixed[4..8].copy_from_slice(&ID.to_be_bytes());
        fixed[28..34].copy_from_slice(&MAC.0);
        fixed[236..].copy_from_slice(&[99, 130, 83, 99]);
    }
    if let Some(ServerResponse::Offer(lease) | ServerResponse::Ack(lease)) =
        decode(&answer, ID, MAC)
    {
        let address = &lease.address;
        assert!(address.prefix <= 32 && !address.address.is_unspecified(), "{lease:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let choice = input.byte();
    match choice % 4 {
        0 => dhcp(input.0),
        1 => {
            let _ = CommandLine::parse(&String::from_utf8_lossy(input.0));
        }
        2 => {
            if let Ok(url) = String::from_utf8_lossy(input.0).parse::<Url>() {
                let shown = url.to_string();
                let host = shown.split('/').nth(2).unwrap_or_default();
                assert!(!shown.contains('?') && !host.contains('@'), "{shown} may hold a secret");
            }
        }
        _ => {
            let image = IMAGES[usize::from(choice / 4) % IMAGES.len()].to_owned();
            let text = String::from_utf8_lossy(input.0);
            let environment = text.lines().map(str::to_owned).collect();
            let assignment = Assignment { image, environment, ..Assignment::default() };
            let _ = Action::parse(&assignment, Limits::MACHINE);
        }
    }
});
