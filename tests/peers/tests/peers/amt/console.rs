//! Serial console of Intel AMT: our driver and Debian's `amtterm` with the simulated engine.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use amt_sim::{AmtSim, Behavior};
use bmc::{BootDevice, BootOverride, Driver, Feature, PowerAction};
use peers::poll;
use stdx::testing::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::timeout;

use super::{redirect, start};

/// Kinds of login: in the clear, and by digest.
const CLEAR: u8 = 1;
const DIGEST: u8 = 4;

/// Reads the console until `end`.
async fn shown_until(console: &mut DuplexStream, end: &str) -> String {
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains(end) {
        let read = timeout(PATIENCE, console.read_buf(&mut shown)).await;
        let shown = String::from_utf8_lossy(&shown);
        assert!(read.unwrap().unwrap() > 0, "the console ended after {shown:?}");
    }
    String::from_utf8(shown).unwrap()
}

fn typed(sim: &AmtSim, text: &str) {
    poll("typed characters", PATIENCE, || sim.serial().typed().ends_with(text.as_bytes())).unwrap();
}

fn closed(sim: &AmtSim) {
    poll("the end of the session", PATIENCE, || !sim.serial().is_open()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn characters_go_in_both_directions_until_the_console_is_dropped() {
    for sim in [
        AmtSim::start(Behavior::default()).unwrap(),
        AmtSim::start_with_tls(Behavior::default()).unwrap(),
    ] {
        let driver = bmc::registry::open(sim.endpoint());
        assert!(driver.capabilities().features.contains(&Feature::Console));
        sim.serial().print(b"Booting Linux\r\n");
        let mut console = driver.console().await.unwrap();
        shown_until(&mut console, "Booting Linux\r\n").await;
        console.write_all(b"root\r").await.unwrap();
        typed(&sim, "root\r");
        let long = "x".repeat(5000);
        sim.serial().print(long.as_bytes());
        assert_eq!(shown_until(&mut console, &long).await, long);
        sim.serial().overrun();
        shown_until(&mut console, "lost characters here").await;
        assert_eq!(sim.serial().logins(), (vec![DIGEST], 0));
        drop(console);
        closed(&sim);
        // The session is free for the next one.
        driver.console().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn serial_over_lan_is_switched_on_and_ide_r_stays() {
    let (sim, driver) = start(Behavior::default());
    for (before, after) in [(32_768, 32_770), (32_769, 32_771), (32_770, 32_770)] {
        sim.set_redirection(before, false);
        driver.console().await.unwrap();
        closed(&sim);
        assert_eq!(sim.redirection(), after);
    }
    let puts = sim.executed().iter().filter(|it| *it == "AMT_RedirectionService.Put").count();
    assert_eq!(puts, 3, "the listener was off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_off_ends_the_console_and_leaves_the_service_on() {
    let (sim, driver) = start(Behavior { refuses_silently: true, ..Behavior::default() });
    sim.set_power(2);
    let mut console = driver.console().await.unwrap();
    driver.set_power(PowerAction::Off).await.unwrap();
    assert_eq!((sim.power(), sim.redirection()), (8, 32_771));
    assert!(sim.executed().contains(&redirect(32_768)));
    let mut rest = Vec::new();
    timeout(PATIENCE, console.read_to_end(&mut rest)).await.unwrap().unwrap();
    driver.console().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_firmware_shows_its_screen_only_if_a_console_reads_it() {
    let (sim, driver) = start(Behavior::default());
    let boot = BootOverride { device: BootDevice::Pxe, persistent: false, efi: true };
    driver.set_boot_device(boot).await.unwrap();
    assert_eq!(sim.boot_setting("UseSOL"), "false");
    let console = driver.console().await.unwrap();
    driver.set_boot_device(boot).await.unwrap();
    assert_eq!(sim.boot_setting("UseSOL"), "true");
    drop(console);
    closed(&sim);
    poll("a boot without a console", PATIENCE, || {
        let set = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| set.block_on(driver.set_boot_device(boot))).unwrap();
        sim.boot_setting("UseSOL") == "false"
    })
    .unwrap();
}

/// Sentence of the error of a console.
async fn refusal(driver: &dyn Driver) -> (String, bool) {
    let error = driver.console().await.unwrap_err();
    (error.sentence(), error.is_transient())
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_said_in_words() {
    let (sim, driver) = start(Behavior::default());
    let console = driver.console().await.unwrap();
    let (busy, is_transient) = refusal(driver.as_ref()).await;
    assert!(busy.contains("another client") && is_transient, "{busy}");
    drop(console);
    closed(&sim);
    sim.behave(|behavior| behavior.sol_status = 1);
    let (refused, is_transient) = refusal(driver.as_ref()).await;
    assert!(refused.contains("refused serial-over-LAN with status 1"), "{refused}");
    assert!(is_transient);
    closed(&sim);
    sim.behave(|behavior| behavior.consent = (u32::MAX, 0));
    let (consent, is_transient) = refusal(driver.as_ref()).await;
    assert!(consent.contains("consent of a user") && !is_transient, "{consent}");
    closed(&sim);
    sim.behave(|behavior| *behavior = Behavior { no_digest: true, ..Behavior::default() });
    let (clear, is_transient) = refusal(driver.as_ref()).await;
    assert!(clear.contains("no digest login") && !is_transient, "{clear}");
    assert_eq!(sim.serial().logins().1, 0);
    closed(&sim);
    sim.behave(|behavior| behavior.absent = vec!["AMT_RedirectionService"]);
    let (absent, is_transient) = refusal(driver.as_ref()).await;
    assert!(absent.contains("AMT_RedirectionService") && !is_transient, "{absent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_in_the_clear_needs_tls() {
    let sim = AmtSim::start_with_tls(Behavior { no_digest: true, ..Behavior::default() }).unwrap();
    let driver = bmc::registry::open(sim.endpoint());
    driver.console().await.unwrap();
    assert_eq!(sim.serial().logins(), (vec![CLEAR], 0));
}

/// The engine accepts a client that others wrote; so its messages are not only ours.
#[test]
fn debians_amtterm_uses_the_engine() {
    let sim = AmtSim::start(Behavior::default()).unwrap();
    let line = format!("amtterm -u {} {}", AmtSim::USERNAME, sim.address().ip());
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env("AMT_PASSWORD", AmtSim::PASSWORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let mut screen = terminal.stdout.take().unwrap();
    sim.serial().print(b"login: ");
    let mut shown = String::new();
    while !shown.contains("login: ") {
        let mut bytes = [0; 4096];
        let length = screen.read(&mut bytes).unwrap();
        assert!(length > 0, "amtterm ended: {shown}");
        shown += &String::from_utf8_lossy(&bytes[..length]);
    }
    keys.write_all(b"root\r").unwrap();
    typed(&sim, "root\r");
    assert_eq!(sim.serial().logins(), (vec![CLEAR], 0));
    // Escape sequence of amtterm.
    keys.write_all(b"\x1d").unwrap();
    assert!(terminal.wait().unwrap().success());
    closed(&sim);
}
