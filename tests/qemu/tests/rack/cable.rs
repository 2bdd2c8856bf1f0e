//! The box's namespace, its programs, and network faults.

use std::io::Read;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::SystemTime;

use qemu::{BoxProgram, Direction, NucConfig, Rack};

use crate::{LONG, config};

#[test]
fn a_box_program_is_killed_restarted_and_reached_from_inside_only() {
    let rack = Rack::build(config("box")).expect("build the rack");
    let files = rack.dir().join("files");
    std::fs::create_dir(&files).expect("make the folder");
    let body: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(files.join("image"), &body).expect("write the image");
    let log = rack.dir().join("httpd.log");
    let program = BoxProgram::new(env!("CARGO_BIN_EXE_rack-httpd"), &log)
        .args(["--listen", "10.77.0.1:8080", "--drop-at-percent", "50", "--once", "--dir"])
        .args([&files]);
    let mut server = rack.spawn_box(program).expect("start the server");
    let listening = |times: usize| {
        qemu::poll("the server", LONG, || {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            (log.matches("listening on 10.77.0.1:8080\n").count() == times).then_some(())
        })
        .expect("the server listens");
    };
    listening(1);
    let get = |range: &str| rack.in_box(|| fetch(range)).expect("enter the box");

    let (head, half) = get("");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n"), "{head}");
    assert!(body.starts_with(&half) && half.len() == 500_000, "dropped at half, no error told");
    let (head, rest) = get("Range: bytes=500000-\r\n");
    assert!(head.contains("Content-Range: bytes 500000-999999/1000000\r\n"), "{head}");
    assert_eq!([half, rest].concat(), body, "resumed to the whole");

    let namespace = || std::fs::read_link("/proc/thread-self/ns/net").expect("our namespace");
    let inside = rack.in_box(namespace).expect("enter the box");
    assert_ne!(inside, namespace(), "the host is not in the rack");
    assert!(server.rss().is_some_and(|bytes| bytes > 100_000));
    let before = server.pid();
    server.kill9();
    assert!(!server.is_running());
    server.restart().expect("start it again");
    assert_ne!(server.pid(), before);
    listening(2);
    server.terminate(LONG).expect("it ends");
    rack.succeed();
}

/// Sends a GET with one more header line; returns head and body, which may be incomplete.
fn fetch(header: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect("10.77.0.1:8080").expect("connect");
    let request = format!("GET /image HTTP/1.1\r\nHost: box\r\n{header}\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("send the request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("read the answer");
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
    let body = answer.split_off(end);
    (String::from_utf8(answer).expect("an ASCII head"), body)
}

#[test]
fn a_pulled_or_dead_cable_is_silent_until_it_is_mended() {
    let nuc = NucConfig { memory_mib: 64, disk_bytes: 1 << 20, ..NucConfig::bios() };
    let rack = Rack::build(config("cable").nuc(nuc).capture("udp port 67")).expect("build");
    let nuc = rack.nuc(1);
    let heard = |since: SystemTime| {
        let seen = rack.capture().expect("configured").datagrams().expect("read the capture");
        seen.iter().filter(|d| d.at >= since && d.from == nuc.mac()).count()
    };
    rack.drop_packets(1, Direction::FromNuc, 1000).expect("cut the cable");
    nuc.power_on().expect("switch on");
    // The blank disk fails, then the network boot sends packets, and none arrives.
    qemu::poll("a dropped packet", LONG, || (dropped(&rack) > 0).then_some(())).expect("dropped");
    assert_eq!(heard(SystemTime::UNIX_EPOCH), 0, "every packet was dropped");

    // The cable is unplugged before the loss ends: the firmware keeps sending.
    nuc.unplug().expect("pull the cable");
    rack.drop_packets(1, Direction::FromNuc, 0).expect("mend the cable");
    let mark = nuc.serial().mark();
    nuc.reset().expect("reset");
    // This iPXE does not check the link: it sends, and prints a dot for every second it waits.
    let waiting = r"Configuring \(net0 .*\)\.\.\.";
    nuc.serial().wait_for_after(mark, waiting, LONG).expect("the network boot");
    assert_eq!(heard(SystemTime::UNIX_EPOCH), 0, "nothing passes a pulled cable");

    nuc.plug().expect("put the cable back");
    nuc.reset().expect("reset");
    qemu::poll("a DHCPDISCOVER", LONG, || (heard(SystemTime::UNIX_EPOCH) > 0).then_some(()))
        .expect("the mended cable carries packets");

    rack.drop_packets(1, Direction::ToNuc, 500).expect("a bad cable the other way");
    let shout = || {
        let socket = std::net::UdpSocket::bind("10.77.0.1:0").expect("bind");
        socket.set_broadcast(true).expect("allow broadcasts");
        for _ in 0..400 {
            socket.send_to(b"anyone?", "10.77.0.255:9").expect("send");
        }
    };
    rack.in_box(shout).expect("enter the box");
    let lost = dropped(&rack);
    // Six standard deviations of 400 fair coin tosses.
    assert!((140..=260).contains(&lost), "{lost} of 400 packets were lost");
    rack.succeed();
}

/// Packets counted by the rack's nftables rule.
fn dropped(rack: &Rack) -> u32 {
    let mut command = std::process::Command::new("ip");
    let namespace = format!("{}-rack", rack.name());
    command.args(["netns", "exec", &namespace, "nft", "list", "ruleset"]);
    let output = command.output().expect("run nft");
    let rules = String::from_utf8(output.stdout).expect("text");
    let count = rules.split("counter packets ").nth(1).expect("one rule with a counter");
    count.split_whitespace().next().expect("a number").parse().expect("a number")
}

#[test]
fn an_output_folder_with_foreign_files_is_left_alone() {
    let dir: PathBuf = qemu::out_dir().join(format!("rack-foreign-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("make the folder");
    std::fs::write(dir.join("thesis.txt"), "precious").expect("write the file");
    let mut foreign = config("foreign");
    foreign.dir.clone_from(&dir);
    let error = Rack::build(foreign).expect_err("must refuse").to_string();
    assert!(error.contains("holds files that no rack wrote"), "{error}");
    assert_eq!(std::fs::read(dir.join("thesis.txt")).expect("still there"), b"precious");
    std::fs::remove_dir_all(&dir).expect("remove the folder");
}
