//! Disk in memory. Loses unsynced sectors at a power cut, in any combination; can fail after a
//! number of operations.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

const SECTOR: usize = 512;

/// Handle of the disk; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Content that reads return.
    seen: Vec<u8>,
    /// Content that survives a power cut.
    durable: Vec<u8>,
    pending: Vec<Pending>,
    /// Number of writes and syncs that still succeed; `None`: all.
    budget: Option<u64>,
    syncs: u64,
}

#[derive(Debug)]
enum Pending {
    Write(usize, Vec<u8>),
    Resize(usize),
}

/// Pseudorandom numbers from a seed (xorshift64*).
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

impl Disk {
    /// Sets the number of writes and syncs that still succeed; `None`: all.
    pub fn allow(&self, budget: Option<u64>) {
        self.state().budget = budget;
    }

    /// Returns the number of completed syncs.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Returns the disk as it may be after a power cut at this time.
    pub fn cut(&self, random: &mut Seeded) -> Self {
        let state = self.state();
        let mut image = state.durable.clone();
        for pending in &state.pending {
            match (pending, random.below(3)) {
                (_, 0) => {}
                (Pending::Resize(length), _) => image.resize(*length, 0),
                (Pending::Write(at, bytes), 1) => write(&mut image, *at, bytes),
                (Pending::Write(at, bytes), _) => {
                    for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                        if random.below(2) == 0 {
                            write(&mut image, at + index * SECTOR, sector);
                        }
                    }
                }
            }
        }
        let state = State { seen: image.clone(), durable: image, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns a copy of the disk with one bit of the synced content inverted.
    pub fn flipped(&self, random: &mut Seeded) -> Self {
        let mut image = self.state().durable.clone();
        let at = index(random.below(image.len() as u64));
        image[at] ^= 1 << random.below(8);
        let state = State { seen: image.clone(), durable: image, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

impl State {
    fn spend(&mut self) -> io::Result<()> {
        match &mut self.budget {
            Some(0) => Err(io::Error::from(io::ErrorKind::StorageFull)),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn write(image: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if image.len() < at + bytes.len() {
        image.resize(at + bytes.len(), 0);
    }
    image[at..at + bytes.len()].copy_from_slice(bytes);
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("a disk that fits in memory")
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let at = index(offset);
        let state = self.state();
        let bytes = state.seen.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        state.seen.resize(index(len), 0);
        state.pending.push(Pending::Resize(index(len)));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        state.syncs += 1;
        for pending in std::mem::take(&mut state.pending) {
            match pending {
                Pending::Resize(length) => state.durable.resize(length, 0),
                Pending::Write(at, bytes) => write(&mut state.durable, at, &bytes),
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let spent = state.spend();
        // A write that fails may still have reached the disk, whole or in part.
        state.pending.push(Pending::Write(index(offset), data.to_vec()));
        spent?;
        write(&mut state.seen, index(offset), data);
        Ok(())
    }
}
