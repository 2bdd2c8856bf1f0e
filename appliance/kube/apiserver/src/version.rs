//! Version of Kubernetes whose API is followed, and of this server.

use serde_json::{Value, json};

/// The Kubernetes version whose API behaviour is followed; `+tinbox` says whose server it is.
const MAJOR: &str = "1";
const MINOR: &str = "35";

/// `/version`
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

/// The Kubernetes version that is followed, and whose server this is.
pub(crate) fn text() -> String {
    format!("v{MAJOR}.{MINOR}.0+tinbox.{}", env!("CARGO_PKG_VERSION"))
}

/// The architecture by the name Go gives it, which is what clients expect here.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
