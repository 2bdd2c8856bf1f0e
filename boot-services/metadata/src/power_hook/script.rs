//! Shell script that installs the hook of one machine, with its key.

use std::fmt::Write as _;

use super::HookKey;

const INSTALL: &str = include_str!("install.sh");
const HOOK: &str = include_str!("hook.sh");

/// Maximum length of the host and port in a request, in characters.
const HOST_MAX: usize = 255;

/// Returns the URL of the box from the header `Host` of a request; `None` if it contains other
/// characters than a host name, an address and a port have.
pub(crate) fn base_url(host: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte);
    let is_valid = (1..=HOST_MAX).contains(&host.len()) && host.bytes().all(is_plain);
    is_valid.then(|| format!("http://{host}"))
}

/// Returns the script for the machine with this key. The hook polls the box at `url`.
pub(crate) fn install_script(url: &str, key: &HookKey) -> String {
    let [inner, outer] = key.pads().map(|pad| {
        pad.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "\\{byte:03o}");
            text
        })
    });
    let parts = [("@INNER@", inner.as_str()), ("@OUTER@", &outer), ("@URL@", url)];
    let script =
        parts.iter().fold(INSTALL.to_owned(), |text, (name, part)| text.replace(name, part));
    script.replace("@HOOK@", HOOK.trim_end())
}
