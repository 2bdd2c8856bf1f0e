//! Which of an image's bytes a disk is sent, and where zeros are enough.

use std::ops::Range;

/// Zeros are looked for in units of this.
const GRANULE: usize = 64 << 10;
static ZEROS: [u8; GRANULE] = [0; GRANULE];
/// A shorter run of zeros is cheaper to write than to punch.
const HOLE: u64 = 256 << 10;
/// A longer one is dealt with in parts, while what follows is still being made.
const HOLE_MAX: u64 = 16 << 20;

/// What is to be done to the disk. No two steps are about the same bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// These of the bytes belong there.
    Data {
        /// Of the bytes that were looked at.
        range: Range<usize>,
        /// On the disk.
        offset: u64,
    },
    /// Zeros that are cheaper to write.
    Zeros {
        /// On the disk.
        offset: u64,
        /// In bytes.
        length: u64,
    },
    /// Zeros that are cheaper to punch.
    Hole {
        /// On the disk.
        offset: u64,
        /// In bytes.
        length: u64,
    },
}

/// Looks at an image, buffer by buffer.
#[derive(Default)]
pub(super) struct Sparse {
    /// `(offset, length)` of zeros seen and not yet dealt with.
    zeros: Option<(u64, u64)>,
}

impl Sparse {
    /// What to do with the image's next bytes: `data` without its first `skipped`, which begins at
    /// `offset`. A short run of zeros between data is written with it; one at an edge may go on in
    /// the next bytes.
    pub(super) fn next(&mut self, data: &[u8], skipped: usize, offset: u64) -> Vec<Step> {
        let (mut at, mut unwritten, mut steps) = (skipped, skipped, Vec::new());
        while at < data.len() {
            let zeros = zero_run(&data[at..]);
            if zeros == 0 {
                at = (at + GRANULE).min(data.len());
                continue;
            }
            let end = at + zeros;
            let continues = (at == skipped && self.zeros.is_some()) || end == data.len();
            if continues || zeros as u64 >= HOLE {
                self.data(unwritten..at, offset, &mut steps);
                let (start, known) = self.zeros.unwrap_or((offset + at as u64, 0));
                self.zeros = Some((start, known + zeros as u64));
                if known + zeros as u64 >= HOLE_MAX {
                    steps.extend(self.end());
                }
                unwritten = end;
            }
            at = end;
        }
        self.data(unwritten..data.len(), offset, &mut steps);
        steps
    }

    /// The zeros at the end of what was looked at.
    pub(super) fn end(&mut self) -> Option<Step> {
        self.zeros.take().map(|(offset, length)| match length {
            0..HOLE => Step::Zeros { offset, length },
            HOLE.. => Step::Hole { offset, length },
        })
    }

    /// Data ends the zeros before it.
    fn data(&mut self, range: Range<usize>, offset: u64, steps: &mut Vec<Step>) {
        if !range.is_empty() {
            steps.extend(self.end());
            steps.push(Step::Data { offset: offset + range.start as u64, range });
        }
    }
}

/// How many bytes at the beginning of `data` are whole granules of zeros.
fn zero_run(data: &[u8]) -> usize {
    // Comparing with zeros is memcmp, which no loop of ours beats in any build.
    data.chunks(GRANULE)
        .take_while(|granule| **granule == ZEROS[..granule.len()])
        .map(<[u8]>::len)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1 << 20;

    /// Every byte is in one step, in order, and zeros are zeros.
    #[test]
    fn steps_make_the_image_again() {
        let mut image = vec![0xff_u8; 40 * SIZE];
        // Short at an edge, short inside, over an edge, longer than one part, to the end.
        for (from, to) in
            [(0, 65_536), (3 << 19, (3 << 19) + 65_536), (5 * SIZE - 70_000, 6 * SIZE)]
        {
            image[from..to].fill(0);
        }
        image[10 * SIZE..31 * SIZE].fill(0);
        image[39 * SIZE..].fill(0);
        let (mut sparse, mut made, mut zeros) = (Sparse::default(), Vec::new(), 0);
        let mut take = |step, data: &[u8]| match step {
            Step::Data { range, offset } => {
                assert_eq!(offset, made.len() as u64);
                made.extend_from_slice(&data[range]);
            }
            Step::Zeros { offset, length } => {
                assert_eq!(offset, made.len() as u64);
                assert!(length < HOLE, "{length}");
                made.resize(made.len() + usize::try_from(length).unwrap(), 0);
                zeros += length;
            }
            Step::Hole { offset, length } => {
                assert_eq!(offset, made.len() as u64);
                assert!((HOLE..HOLE_MAX + SIZE as u64).contains(&length), "{length}");
                made.resize(made.len() + usize::try_from(length).unwrap(), 0);
                zeros += length;
            }
        };
        for (number, data) in image.chunks(SIZE).enumerate() {
            for step in sparse.next(data, 0, (number * SIZE) as u64) {
                take(step, data);
            }
        }
        if let Some(step) = sparse.end() {
            take(step, &[]);
        }
        assert!(made == image, "another image");
        assert!(zeros >= 23 * SIZE as u64, "{zeros}");
    }

    #[test]
    fn what_is_skipped_is_in_no_step() {
        let mut sparse = Sparse::default();
        let steps = sparse.next(&[0; SIZE], SIZE, 7);
        assert_eq!((steps, sparse.end()), (vec![], None));
        let mut data = vec![1; SIZE];
        data[..SIZE / 2].fill(0);
        let half = SIZE / 2;
        let range = half..SIZE;
        let step = Step::Data { range, offset: (SIZE + half) as u64 };
        assert_eq!(sparse.next(&data, half, SIZE as u64), [step]);
    }
}
