//! Tests of the model of the boot loader, by the rules of `image/boot/grub.cfg`, and of the exit
//! status of process 1 as the kernel reports it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use firmware::contained::loader::{Choice, Variables, command_line};
use firmware::contained::run::End;

const SIGNATURE: &str = "# GRUB Environment Block\n";

fn block(text: &str) -> Vec<u8> {
    let mut block = format!("{SIGNATURE}{text}").into_bytes();
    block.resize(1024, b'#');
    block
}

fn variables(text: &str) -> Variables {
    let read = Variables::parse(&block(text)).unwrap();
    assert_eq!(read.block(), block(text));
    read
}

#[test]
fn a_slot_is_chosen_as_the_script_chooses() {
    let table = [
        ("ORDER=A B\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=0\n", 'a', false, "1 0"),
        ("ORDER=A B\nA_OK=1\nA_TRY=2\nB_OK=1\nB_TRY=0\n", 'a', false, "3 0"),
        ("ORDER=A B\nA_OK=1\nA_TRY=3\nB_OK=1\nB_TRY=0\n", 'b', false, "3 1"),
        ("ORDER=B A\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=1\n", 'b', false, "0 2"),
        ("ORDER=B A\nA_OK=1\nA_TRY=0\nB_OK=0\nB_TRY=0\n", 'a', false, "1 0"),
        // No slot has a start left.
        ("ORDER=B A\nA_OK=1\nA_TRY=3\nB_OK=1\nB_TRY=3\n", 'b', true, "0 0"),
        ("ORDER=B A\nA_OK=0\nA_TRY=0\nB_OK=0\nB_TRY=0\n", 'a', true, "0 0"),
        // A counter that is not a number counts as no start left.
        ("ORDER=A B\nA_OK=1\nA_TRY=x\nB_OK=1\nB_TRY=0\n", 'b', false, "x 1"),
    ];
    for (text, slot, is_anew, tries) in table {
        let mut variables = variables(text);
        assert_eq!(variables.choose(), Choice { slot, is_anew }, "{text}");
        let after = ["A_TRY", "B_TRY"].map(|name| variables.get(name).unwrap());
        assert_eq!(after.join(" "), tries, "{text}");
    }
}

#[test]
fn a_damaged_block_is_refused() {
    assert!(Variables::parse(b"ORDER=A\n").is_err());
    assert!(Variables::parse(&block("nonsense\n")).is_err());
}

#[test]
fn the_command_line_is_the_kernels() {
    let script = "# Tinbox 1\nlinux /tinbox/a/vmlinuz tinbox.slot=a ro\n";
    assert_eq!(command_line(script).unwrap(), "tinbox.slot=a ro");
    assert!(command_line("boot\n").is_err());
}

#[test]
fn an_end_is_what_the_kernel_says() {
    let end = |raw: i32| End::of(ExitStatus::from_raw(raw));
    assert_eq!(end(1), End::Restart);
    assert_eq!(end(2), End::PowerOff);
    assert_eq!(end(9), End::Panic("signal: 9 (SIGKILL)".to_owned()));
    assert_eq!(end(1 << 8), End::Panic("exit status: 1".to_owned()));
}
