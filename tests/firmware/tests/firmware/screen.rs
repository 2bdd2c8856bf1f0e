//! Monitor of a flashed box, as a person in front of it sees it.

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

/// Reads the claim URL `url` from the QR code on the monitor, as a phone does.
pub fn shows_code(board: &mut Board, url: &str) {
    let picture = kept("claim.png");
    let scan = || {
        let shown = Picture::shown(board, &picture)?;
        (shown.code.as_deref() == Some(url)).then_some(())
    };
    poll(&format!("the monitor to show {url}"), PATIENCE, scan).unwrap();
}

/// Compares the monitor with the box's own `/panel.png`. They are equal except for the dot that
/// moves along the lowest row of a monitor while its loop runs.
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
    // The two pictures are drawn at different moments, and a clock is part of them.
    poll("the monitor to be as it is drawn", PATIENCE, equal).unwrap();
}

/// A picture, and the text of its QR code.
pub struct Picture {
    /// Rows from the top, with red, green and blue of each pixel.
    pub rows: Vec<Vec<[u8; 3]>>,
    /// Text of a QR code in the picture.
    pub code: Option<String>,
}

impl Picture {
    /// Takes a screenshot of the monitor and saves it at `path`; `None` where that fails.
    pub fn shown(board: &mut Board, path: &Path) -> Option<Self> {
        board.screenshot(path).ok()?;
        Self::read(path)
    }

    /// Reads the PNG file at `path`; `None` where it is not a valid picture.
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
