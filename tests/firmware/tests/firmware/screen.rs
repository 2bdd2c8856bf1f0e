//! What a flashed box's monitor shows, as who stands before it sees it.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use firmware::{PATIENCE, run};
use qemu::{Board, poll};

use firmware::owner::Owner;

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A phone held before it reads `url`, which claims the box.
pub fn shows_code(board: &mut Board, url: &str) {
    let picture = kept("claim.png");
    let scan = || {
        board.screenshot(&picture).ok()?;
        let mut scan = Command::new("zbarimg");
        scan.args(["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"]);
        let read = scan.arg(&picture).output().ok()?.stdout;
        (String::from_utf8(read).ok()?.trim() == url).then_some(())
    };
    poll(&format!("the monitor to show {url}"), PATIENCE, scan).unwrap();
}

/// It is what the box's own `/panel.png` is, but for the dot that runs along the lowest row of a
/// monitor as long as its loop lives.
pub fn shows_picture(board: &mut Board, owner: &Owner<'_>, folder: &Path) {
    owner.log_in();
    let (shown, drawn) = (kept("monitor.png"), folder.join("panel.png"));
    let equal = || {
        board.screenshot(&shown).ok()?;
        run(owner.curl("/panel.png").arg("-o").arg(&drawn)).ok()?;
        let (monitor, picture) = (dots(&shown)?, dots(&drawn)?);
        let alive = [monitor.lit, picture.lit] == [1, 1];
        (alive && monitor.above == picture.above).then_some(())
    };
    // They are drawn at two moments, and some of it is a clock.
    poll("the monitor to be as it is drawn", PATIENCE, equal).unwrap();
}

struct Dots {
    /// Those above the lowest row.
    above: Vec<Vec<u8>>,
    /// How many of the lowest row are not black.
    lit: usize,
}

fn dots(path: &Path) -> Option<Dots> {
    let mut picture = png::Decoder::new(BufReader::new(File::open(path).ok()?)).read_info().ok()?;
    let mut bytes = vec![0; picture.output_buffer_size()?];
    let info = picture.next_frame(&mut bytes).ok()?;
    assert_eq!(info.color_type, png::ColorType::Rgb, "{}", path.display());
    bytes.truncate(info.buffer_size());
    let mut above: Vec<Vec<u8>> = bytes.chunks(info.line_size).map(<[u8]>::to_vec).collect();
    let lowest = above.pop()?;
    let lit = lowest.chunks(3).filter(|dot| **dot != [0; 3]).count();
    Some(Dots { above, lit })
}
