//! Cache of a real server's transcripts: the output of an earlier run of the same script, program
//! and server. Another run would cost minutes and give the same result.

use std::fs;
use std::path::{Path, PathBuf};

use peers::built;
use sha2::{Digest as _, Sha256};

use super::script::{CUT_OFF, Script, Transcript};

/// Sources that a transcript depends on, beside script and kubectl.
const SOURCES: [&str; 4] = [
    include_str!("normal.rs"),
    include_str!("script.rs"),
    include_str!("../../../src/cluster.rs"),
    include_str!("../../../src/kubectl.rs"),
];
/// Output of a step that a slow machine interrupted; such a transcript is not cached.
const MISHAPS: [&str; 8] = [
    "no line with ",
    "never true: ",
    CUT_OFF,
    "connection refused",
    "connection reset",
    "Client.Timeout",
    "i/o timeout",
    "TLS handshake timeout",
];

/// The cached transcripts, beside the programs in the machine's cache folder.
pub struct Remembered {
    folder: PathBuf,
    base: Sha256,
}

impl Remembered {
    /// Opens the transcripts of the current real server with these definitions.
    pub fn open(definitions: &[PathBuf], scripts: &Path) -> Self {
        let names = ["etcd", "kube-apiserver", "kube-controller-manager"];
        let programs = built("kubernetes", &names).unwrap();
        // Layout: CACHE/kubernetes/HASH/etcd
        let folder = programs[0].ancestors().nth(3).unwrap().join("comparison");
        fs::create_dir_all(&folder).unwrap();
        let mut base = Sha256::new();
        for program in &programs {
            base.update(program.display().to_string());
        }
        SOURCES.iter().for_each(|source| base.update(source));
        for file in definitions.iter().chain(&[scripts.join("prelude.sh")]) {
            base.update(fs::read(file).unwrap());
        }
        Self { folder, base }
    }

    fn file(&self, script: &Script, kubectl: &Path) -> PathBuf {
        let mut hash = self.base.clone();
        hash.update(&script.text);
        hash.update(kubectl.display().to_string());
        let name: String = hash.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name + ".json")
    }

    /// Cached transcript of the script with this kubectl; `None` without an earlier run, or when
    /// `AGAIN` is set.
    pub fn find(&self, script: &Script, kubectl: &Path) -> Option<Transcript> {
        if std::env::var_os("AGAIN").is_some() {
            return None;
        }
        let text = fs::read(self.file(script, kubectl)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Stores a transcript for the next run.
    pub fn keep(&self, script: &Script, kubectl: &Path, transcript: &Transcript) {
        let mishap = |text: &str| MISHAPS.iter().any(|mishap| text.contains(mishap));
        if transcript.iter().any(|said| mishap(&said.out) || mishap(&said.err)) {
            return;
        }
        let file = self.file(script, kubectl);
        let part = file.with_extension("part");
        fs::write(&part, serde_json::to_vec(transcript).unwrap()).unwrap();
        fs::rename(part, file).unwrap();
    }
}
