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
        let shown = Picture::shown(board, &picture)?;
        (shown.code.as_deref() == Some(url)).then_some(())
    };
    poll(&format!("the monitor to show {url}"), PATIENCE, scan).unwrap();
}

/// It is what the box's own `/panel.png` is, but for the dot that runs along the lowest row of a
/// monitor as long as its loop lives.
pub fn shows_picture(board: &mut Board, owner: &Owner<'_>, folder: &Path) {
    owner.log_in();
    let (shown, drawn) = (kept("monitor.png"), folder.join("panel.png"));
    let equal = || {
        run(owner.curl("/panel.png").arg("-o").arg(&drawn)).ok()?;
        let (monitor, picture) = (Picture::shown(board, &shown)?, Picture::read(&drawn)?);
        let ((dots, monitor), (dot, picture)) =
            (monitor.rows.split_last()?, picture.rows.split_last()?);
        let alive = [dots, dot].map(|row| row.iter().filter(|dot| **dot != [0; 3]).count());
        (alive == [1, 1] && monitor == picture).then_some(())
    };
    // They are drawn at two moments, and some of it is a clock.
    poll("the monitor to be as it is drawn", PATIENCE, equal).unwrap();
}

/// Pixels, and what can be read of them.
pub struct Picture {
    /// From the top, red, green and blue.
    pub rows: Vec<Vec<[u8; 3]>>,
    /// What a QR code among them says.
    pub code: Option<String>,
}

impl Picture {
    /// What the monitor shows, which is kept at `path`; `None` where that fails.
    pub fn shown(board: &mut Board, path: &Path) -> Option<Self> {
        board.screenshot(path).ok()?;
        Self::read(path)
    }

    /// The picture at `path`; `None` where it is none.
    fn read(path: &Path) -> Option<Self> {
        let file = BufReader::new(File::open(path).ok()?);
        let mut picture = png::Decoder::new(file).read_info().ok()?;
        let mut bytes = vec![0; picture.output_buffer_size()?];
        let info = picture.next_frame(&mut bytes).ok()?;
        assert_eq!(info.color_type, png::ColorType::Rgb, "{}", path.display());
        let lines = bytes[..info.buffer_size()].chunks(info.line_size);
        let rows = lines.map(|line| line.as_chunks().0.to_vec()).collect();
        let mut scan = Command::new("zbarimg");
        scan.args(["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"]).arg(path);
        let read = String::from_utf8(scan.output().ok()?.stdout).ok()?;
        let code = Some(read.trim().to_owned()).filter(|code| !code.is_empty());
        Some(Self { rows, code })
    }
}
