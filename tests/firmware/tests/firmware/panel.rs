//! A flashed box with a small screen, its buttons, and two NICs in one bond.

use std::path::Path;

use firmware::boot_volume;
use firmware::owner::{self, Owner};
use firmware::{PATIENCE, run};
use qemu::{Board, Bus, Drive, Host, Mark, Nic, Rack, RackConfig, Segment, poll};
use stdx::MacAddr;

use super::made;
use super::screen::{self, Picture};

const CARDS: [MacAddr; 2] =
    [MacAddr([0x52, 0x54, 0, 0x77, 0xbd, 0]), MacAddr([0x52, 0x54, 0, 0x77, 0xbd, 1])];
/// The monitor serves as the small screen, because QEMU has no other; the LED does not exist.
const BOX_TOML: &str = "[[management]]\n\
    interface = \"bond0\"\n\
    bond = { ports = [\"eth0\", \"eth1\"], mode = \"active-backup\", primary = \"eth1\" }\n\
    [panel]\n\
    tft = \"/dev/fb0\"\n\
    led = \"green:status\"\n\
    buttons = { up = \"KEY_UP\", down = \"KEY_DOWN\", select = \"KEY_ENTER\" }\n";
/// Width and height of the small screen in pixels.
const SMALL: (usize, usize) = (320, 240);
/// Rows of the small screen between its header and footer.
const BODY: std::ops::Range<usize> = 30..214;
/// Minimum number of different pixels in these rows between two pages; changes within one page are
/// always smaller.
const PAGE_PIXELS: usize = 1000;

/// The small screen in the middle of the monitor; all other pixels are dark.
fn middle(shown: &Picture) -> Vec<Vec<[u8; 3]>> {
    let rows = &shown.rows;
    let (left, top) = ((rows[0].len() - SMALL.0) / 2, (rows.len() - SMALL.1) / 2);
    let lit = |rows: &[Vec<[u8; 3]>]| rows.iter().flatten().any(|pixel| *pixel != [0; 3]);
    assert!(!lit(&rows[..top]) && !lit(&rows[top + SMALL.1..]), "more than the screen is lit");
    rows[top..top + SMALL.1].iter().map(|row| row[left..left + SMALL.0].to_vec()).collect()
}

fn shown(board: &mut Board, folder: &Path) -> Option<Picture> {
    Picture::shown(board, &folder.join("panel.png"))
}

fn tap(board: &mut Board, key: &str) {
    [true, false].into_iter().for_each(|down| board.key(key, down).unwrap());
}

/// `Some` when the box sends its certificate to a client without credentials.
fn answers(owner: &Host, address: &str) -> Option<()> {
    let mut curl = owner.command("curl");
    curl.args(["-sf", "--max-time", "5"]).arg(format!("http://{address}/ca.pem"));
    run(&mut curl).ok().filter(|pem| pem.contains("BEGIN CERTIFICATE")).map(|_| ())
}

#[test]
fn a_small_screen_is_turned_by_its_buttons_and_a_bond_outlives_its_cables() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes()).unwrap();
    let rack = Rack::build(RackConfig::new("panel")).unwrap();
    let owner = owner::host(&rack, [10, 9, 9, 9].into());
    // QEMU does not report an unplugged cable of an e1000e to Linux.
    let cards = CARDS.map(|mac| (Segment::Near, Nic::E1000, mac));
    let mut board = rack.add_board_with(&Drive::new(&disk, Bus::Nvme), &cards).unwrap();

    // A missing LED is reported once, and has no other effect.
    board.serial().wait_for("does not work.*the light green:status", PATIENCE).unwrap();
    let claim = "claim this box at HTTPS://169\\.254\\.";
    let claim = board.serial().wait_for_whole(Mark::START, claim, PATIENCE).unwrap().0.text;
    let url = claim.split_whitespace().find(|it| it.contains("/S/")).unwrap().to_owned();
    screen::shows_code(&mut board, &url);
    let claimed = middle(&shown(&mut board, folder.path()).unwrap());
    tap(&mut board, "down");
    let turned = || {
        let shown = shown(&mut board, folder.path())?;
        (shown.code.is_none() && middle(&shown) != claimed).then_some(())
    };
    poll("the panel to show its next page", PATIENCE, turned).unwrap();
    tap(&mut board, "ret");
    screen::shows_code(&mut board, &url);

    let address = &owner::address(&url);
    poll("the box to answer", PATIENCE, || answers(&owner, address)).unwrap();
    outlives_cables(&mut board, &owner, address);
    let owner = Owner::claims(&owner, address, board.serial(), folder.path());
    // Once the box has an owner, the screen returns to its first page.
    poll("the panel to have no code", PATIENCE, || {
        shown(&mut board, folder.path())?.code.is_none().then_some(())
    })
    .unwrap();
    let told = run(owner.tinbox().args(["box", "identify"])).unwrap();
    assert_eq!(told.trim(), "the box blinks for 60 s");
    obeys_its_menu(&mut board, folder.path());
    rack.succeed();
}

/// Unplugs the active cable, then the other one.
fn outlives_cables(board: &mut Board, owner: &Host, address: &str) {
    for (card, other) in [(1, 0), (0, 1)] {
        board.plug(card, false).unwrap();
        let out = format!("problem: bond0 lost a cable on eth{card}");
        let (_, mark) = board.serial().wait_for_after(Mark::START, &out, PATIENCE).unwrap();
        let through = format!("the box to answer on eth{other} alone");
        poll(&through, PATIENCE, || answers(owner, address)).unwrap();
        board.plug(card, true).unwrap();
        let over = format!("over: fault/NoCarrier/eth{card} HAS NO CABLE");
        board.serial().wait_for_after(mark, &over, PATIENCE).unwrap();
    }
}

/// Lets the box blink, then switches it off: an irreversible action needs a second hold of the
/// button.
fn obeys_its_menu(board: &mut Board, folder: &Path) {
    let home = body(board, folder).unwrap();
    opens_its_menu(board, folder, &home);
    tap(board, "ret");
    board.serial().wait_for("requested at the panel.*identify", PATIENCE).unwrap();
    opens_its_menu(board, folder, &home);
    // Backwards in the menu: back, factory reset, power off.
    ["up", "up", "up", "ret"].into_iter().for_each(|key| tap(board, key));
    board.key("ret", true).unwrap();
    board.serial().wait_for("the box goes down.*PowerOff.*panel", PATIENCE).unwrap();
    board.wait_off(PATIENCE).unwrap();
}

/// Holds the button at the page `home` until the menu appears.
fn opens_its_menu(board: &mut Board, folder: &Path, home: &[[u8; 3]]) {
    let is_home = |board: &mut Board, wanted: bool| {
        let now = body(board, folder)?;
        let differ = now.iter().zip(home).filter(|(one, other)| one != other).count();
        ((differ < PAGE_PIXELS) == wanted).then_some(())
    };
    poll("the panel to rest at its first page", PATIENCE, || is_home(board, true)).unwrap();
    board.key("ret", true).unwrap();
    poll("the panel to show its menu", PATIENCE, || is_home(board, false)).unwrap();
    board.key("ret", false).unwrap();
}

/// Pixels of the small screen between its header and its footer.
fn body(board: &mut Board, folder: &Path) -> Option<Vec<[u8; 3]>> {
    Some(middle(&shown(board, folder)?)[BODY].concat())
}
