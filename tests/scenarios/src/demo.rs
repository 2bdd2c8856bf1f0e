//! Parts of `make demo` that both of its programs use: settings, commands and instructions.

mod arguments;
mod installation;

use std::path::Path;

pub use arguments::{DemoArguments, require_root};
pub use installation::{OWNER_KEY, USER_DATA, install_all, wait_for_enter};

/// Returns true for a value of `DEMO_KEEP` that leaves the rack running: neither empty nor `0`.
pub fn keeps_rack(value: &str) -> bool {
    !matches!(value, "" | "0")
}

/// Returns the arguments of `tinbox` that install Debian on a machine and wait for the end.
pub fn install_command(machine: &str) -> String {
    format!("workflow create --template debian --hardware {machine} --name debian-{machine} --wait")
}

/// Returns the certificate pin on the page that claims a box: four groups of four characters.
pub fn page_pin(page: &str) -> Option<&str> {
    let is_pin_char = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    let is_group = |part: &str| part.len() == 4 && part.chars().all(is_pin_char);
    let mut words = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.find(|word| word.split('-').count() == 4 && word.split('-').all(is_group))
}

/// Credentials of a person who opens the page of the box.
#[derive(Debug)]
pub enum Credentials<'a> {
    /// The box is not claimed yet.
    Unclaimed {
        /// File with the one-time code that claims the box.
        code: &'a Path,
        /// Certificate pin of the box; `None` if the page does not show a pin.
        pin: Option<&'a str>,
    },
    /// The box has an owner with this passphrase.
    Passphrase {
        /// Passphrase of the owner.
        passphrase: &'a str,
        /// Certificate pin of the box.
        pin: &'a str,
    },
}

/// Running rack after the demo, with the paths that a person needs.
#[derive(Debug)]
pub struct RunningRack<'a> {
    /// Network namespace from which the box is reached.
    pub namespace: &'a str,
    /// Address of the box's page in that namespace.
    pub address: &'a str,
    /// Folder of the programs, `tinbox` among them.
    pub programs: &'a Path,
    /// Path of the administrator's kubeconfig.
    pub kubeconfig: &'a Path,
    /// Folder with the console of each machine.
    pub consoles: &'a Path,
    /// Credentials for the page.
    pub credentials: Credentials<'a>,
}

impl RunningRack<'_> {
    /// Returns instructions to enter the rack, and to open the pages of the box.
    pub fn instructions(&self) -> String {
        let Self { namespace, address, .. } = self;
        let credentials = match &self.credentials {
            Credentials::Unclaimed { code, pin } => {
                let pin = pin.map(|pin| format!("  certificate pin: {pin}\n")).unwrap_or_default();
                format!("  one-time code: in {}\n{pin}", code.display())
            }
            Credentials::Passphrase { passphrase, pin } => {
                format!("  passphrase: {passphrase}\n  certificate pin: {pin}\n")
            }
        };
        format!(
            "The rack keeps running. To look at it, from another shell:\n\
             \x20 sudo ip netns exec {namespace} bash\n\
             \x20 export PATH={programs}:$PATH\n\
             \x20 export TINBOX_KUBECONFIG={kubeconfig}\n\
             \x20 tinbox hardware list; kubectl --kubeconfig $TINBOX_KUBECONFIG get hw,wf\n\
             \x20 consoles of the machines: {consoles}\n\
             The box's web page is https://{address} in its namespace. For a browser outside:\n\
             \x20 sudo systemd-socket-activate -l 127.0.0.1:8443 \\\n\
             \x20   ip netns exec {namespace} /lib/systemd/systemd-socket-proxyd {address}:443\n\
             \x20 then open https://127.0.0.1:8443\n\
             {credentials}",
            programs = self.programs.display(),
            kubeconfig = self.kubeconfig.display(),
            consoles = self.consoles.display(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Credentials, RunningRack, install_command, keeps_rack, page_pin};

    #[test]
    fn zero_and_empty_do_not_keep_the_rack() {
        for (value, keeps) in [("", false), ("0", false), ("1", true), ("yes", true)] {
            assert_eq!(keeps_rack(value), keeps, "{value:?}");
        }
    }

    #[test]
    fn the_shown_command_names_its_workflow() {
        let command = install_command("nuc2");
        assert!(command.contains("--hardware nuc2 --name debian-nuc2 --wait"), "{command}");
    }

    #[test]
    fn the_pin_is_read_from_the_page() {
        let page = "<p class=\"code\">some-text-like-this</p>\n<p>F3A9-1C20-8BQK-77TM</p>";
        assert_eq!(page_pin(page), Some("F3A9-1C20-8BQK-77TM"));
        assert_eq!(page_pin("<p>F3A9-1C20-8BQK</p>"), None);
    }

    #[test]
    fn instructions_lead_to_the_page_and_its_code() {
        let rack = |credentials| RunningRack {
            namespace: "tb7-box",
            address: "10.77.0.1",
            programs: Path::new("/p"),
            kubeconfig: Path::new("/s/admin.kubeconfig"),
            consoles: Path::new("/out/demo"),
            credentials,
        };
        let (code, pin) = (Path::new("/s/claim.json"), "F3A9-1C20-8BQK-77TM");
        let text = rack(Credentials::Unclaimed { code, pin: Some(pin) }).instructions();
        for part in [
            "\n  sudo ip netns exec tb7-box bash\n",
            "is https://10.77.0.1 in",
            "    ip netns exec tb7-box /lib/systemd/systemd-socket-proxyd 10.77.0.1:443\n",
            "  one-time code: in /s/claim.json\n",
            "  certificate pin: F3A9-1C20-8BQK-77TM\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = rack(Credentials::Unclaimed { code, pin: None }).instructions();
        assert!(!text.contains("certificate pin"), "{text}");
        let claimed = Credentials::Passphrase { passphrase: "correct horse", pin };
        let text = rack(claimed).instructions();
        assert!(text.contains("  passphrase: correct horse\n  certificate pin: F3A9-"), "{text}");
        assert!(!text.contains("one-time code"), "{text}");
    }
}
