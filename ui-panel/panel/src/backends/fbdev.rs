//! Monitor or TFT as a framebuffer of the kernel. The geometry is read from sysfs, pixels are
//! written to the device. Only changed rows are written.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use embedded_graphics::pixelcolor::raw::{RawData, RawU16};
use embedded_graphics::pixelcolor::{Rgb565, Rgb888};
use embedded_graphics::prelude::{OriginDimensions, RgbColor, Size};
use thiserror::Error;

use crate::draw::Sheet;

/// Maximum width and height in pixels that are accepted from a framebuffer.
const SIDE_MAX: u32 = 16_384;

/// Errors of a framebuffer.
#[derive(Debug, Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("could not {what} {}", path.display())]
    File {
        /// Verb: `read`, `open` or `write to`.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A sysfs file does not contain numbers.
    #[error("{}: expected {wanted}, found {text:?}", path.display())]
    Text {
        /// Path of the file.
        path: PathBuf,
        /// Content of the file.
        text: String,
        /// Content that was expected.
        wanted: &'static str,
    },
    /// The pixel depth is neither 16 nor 32 bits; holds the depth.
    #[error("the framebuffer has {0} bits per pixel, expected 16 or 32")]
    Depth(u32),
}

/// Layout of the pixels in the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Width and height in pixels.
    pub size: Size,
    /// Bytes from one row to the next.
    pub stride: u32,
    /// Bits per pixel: 16 (5-6-5) or 32 (blue first, the last byte unused).
    pub bits_per_pixel: u32,
}

impl Geometry {
    /// Reads the layout from `/sys/class/graphics/fb0`.
    ///
    /// # Errors
    /// A file is missing or malformed.
    pub fn read(sys: &Path) -> Result<Self, Error> {
        let path = sys.join("virtual_size");
        let text = read(&path)?;
        let side = |text: &str| text.parse().ok().filter(|side| (1..=SIDE_MAX).contains(side));
        let size = text.split_once(',').and_then(|(x, y)| Some(Size::new(side(x)?, side(y)?)));
        let size = size.ok_or(Error::Text { path, text, wanted: "size like 1024,768" })?;
        let bits_per_pixel = number(&sys.join("bits_per_pixel"))?;
        if !matches!(bits_per_pixel, 16 | 32) {
            return Err(Error::Depth(bits_per_pixel));
        }
        let path = sys.join("stride");
        let stride = number(&path)?;
        if stride < size.width * bits_per_pixel / 8 || stride > SIDE_MAX * 8 {
            let text = stride.to_string();
            return Err(Error::Text { path, text, wanted: "length of such a row" });
        }
        Ok(Self { size, stride, bits_per_pixel })
    }

    fn row(self, row: &[Rgb565]) -> Vec<u8> {
        let pixel = |color: &Rgb565| match self.bits_per_pixel {
            16 => RawU16::from(*color).into_inner().to_le_bytes().to_vec(),
            _ => {
                let color = Rgb888::from(*color);
                vec![color.b(), color.g(), color.r(), 0]
            }
        };
        let mut bytes: Vec<u8> = row.iter().flat_map(pixel).collect();
        bytes.resize(self.stride as usize, 0);
        bytes
    }
}

/// Framebuffer device of Linux, opened.
#[derive(Debug)]
pub struct Framebuffer {
    device: File,
    path: PathBuf,
    geometry: Geometry,
    rows: Vec<Vec<u8>>,
}

impl Framebuffer {
    /// Opens the device with the layout in `sys`: `/sys/class/graphics/fb0` and `/dev/fb0`.
    ///
    /// # Errors
    /// A file cannot be read or opened.
    pub fn open(sys: &Path, device: &Path) -> Result<Self, Error> {
        let geometry = Geometry::read(sys)?;
        let path = device.to_owned();
        let opened = OpenOptions::new().write(true).open(device);
        let device =
            opened.map_err(|source| Error::File { what: "open", path: path.clone(), source })?;
        let rows = vec![Vec::new(); geometry.size.height as usize];
        Ok(Self { device, path, geometry, rows })
    }

    /// Returns the size of the screen in pixels.
    pub fn size(&self) -> Size {
        self.geometry.size
    }

    /// Shows a page in the center; a larger page is cropped. Returns the number of changed rows.
    ///
    /// # Errors
    /// The device cannot be written. The next call writes all rows again.
    pub fn show(&mut self, sheet: &Sheet<Rgb565>) -> Result<usize, Error> {
        let size = self.geometry.size;
        let row = |y| self.geometry.row(&row_of(sheet, size, y));
        let rows: Vec<_> = (0..size.height).map(row).collect();
        let changed: Vec<_> = rows.iter().zip(&self.rows).map(|(new, old)| new != old).collect();
        for run in runs(&changed) {
            let bytes: Vec<u8> = rows[run.clone()].concat();
            let offset = run.start as u64 * u64::from(self.geometry.stride);
            if let Err(source) = self.device.write_all_at(&bytes, offset) {
                self.rows.iter_mut().for_each(Vec::clear);
                return Err(Error::File { what: "write to", path: self.path.clone(), source });
            }
        }
        self.rows = rows;
        Ok(changed.into_iter().filter(|changed| *changed).count())
    }
}

/// Returns the ranges of rows to write, of at least two rows each. The kernel treats a write of
/// exactly one row as empty and does not show the row (drivers/gpu/drm/drm_fb_helper.c,
/// `drm_fb_helper_memory_range_to_clip`).
fn runs(changed: &[bool]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in changed.iter().enumerate().filter(|(_, changed)| **changed) {
        match runs.last_mut() {
            Some(run) if run.end >= at => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    for run in runs.iter_mut().filter(|run| run.len() == 1) {
        run.start = run.start.saturating_sub(1);
        run.end = (run.start + 2).min(changed.len());
    }
    runs
}

/// Returns row `y` of a screen of `size` with the sheet in its center.
fn row_of(sheet: &Sheet<Rgb565>, size: Size, y: u32) -> Vec<Rgb565> {
    let page = sheet.size();
    let from = |screen: u32, page: u32| (i64::from(screen) - i64::from(page)) / 2;
    let (left, top) = (from(size.width, page.width), from(size.height, page.height));
    let pixel = |x: u32| {
        let x = u32::try_from(i64::from(x) - left).ok().filter(|x| *x < page.width)?;
        let y = u32::try_from(i64::from(y) - top).ok().filter(|y| *y < page.height)?;
        sheet.pixels().get(y as usize * page.width as usize + x as usize).copied()
    };
    (0..size.width).map(|x| pixel(x).unwrap_or(Rgb565::BLACK)).collect()
}

fn read(path: &Path) -> Result<String, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(Error::File { what: "read", path: path.to_owned(), source }),
    }
}

fn number(path: &Path) -> Result<u32, Error> {
    let text = read(path)?;
    let number = text.parse();
    number.map_err(|_| Error::Text { path: path.to_owned(), text, wanted: "number" })
}
