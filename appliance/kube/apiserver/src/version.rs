//! Document `/version`: version of Kubernetes whose API this server follows, and of this server.

use serde_json::{Value, json};

/// Kubernetes version whose API behavior this server follows; the suffix `+tinbox` identifies this
/// server.
const MAJOR: &str = "1";
const MINOR: &str = "35";

/// Returns the document `/version`.
pub(crate) fn document() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": text(),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// Returns the Kubernetes version with this server's suffix: `v1.35.0+tinbox.VERSION`.
pub(crate) fn text() -> String {
    format!("v{MAJOR}.{MINOR}.0+tinbox.{}", env!("CARGO_PKG_VERSION"))
}

/// Returns Go's name of the CPU architecture, which clients expect, such as `amd64`.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
