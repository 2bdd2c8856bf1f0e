//! Parses the form that cloud-init's `phone_home` module posts (`cc_phone_home`).

use std::net::IpAddr;

use percent_encoding::percent_decode_str;

/// Maximum bytes of a form; four host keys fill about two kilobytes.
pub(crate) const MAX_FORM: usize = 64 << 10;
/// Maximum fields of a form that are read; further ones are ignored.
const MAX_FIELDS: usize = 64;
/// Value that cloud-init sends for an unknown field.
const ABSENT: &str = "N/A";

/// Report of a machine that its operating system is up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PhoneHome {
    /// Address of the sender.
    pub peer: IpAddr,
    /// `namespace/name` of the hardware that has this address.
    pub hardware: String,
    /// Instance id that the machine reports; an old system on the disk reports an old id.
    pub instance_id: Option<String>,
    /// Host name of the machine.
    pub hostname: Option<String>,
    /// Fully qualified host name.
    pub fqdn: Option<String>,
    /// SSH host keys of the machine, by the form's field name: `pub_key_ed25519`.
    pub host_keys: Vec<(String, String)>,
}

impl PhoneHome {
    /// Parses the form. Unknown fields are ignored; of two equal fields, the first counts.
    pub(crate) fn read(peer: IpAddr, hardware: String, form: &[u8]) -> Self {
        let mut news = Self {
            peer,
            hardware,
            instance_id: None,
            hostname: None,
            fqdn: None,
            host_keys: Vec::new(),
        };
        let form = String::from_utf8_lossy(form);
        for field in form.split('&').take(MAX_FIELDS) {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            let (name, value) = (decoded(name), decoded(value).trim().to_owned());
            if value.is_empty() || value == ABSENT {
                continue;
            }
            match name.as_str() {
                "instance_id" => news.instance_id = news.instance_id.or(Some(value)),
                "hostname" => news.hostname = news.hostname.or(Some(value)),
                "fqdn" => news.fqdn = news.fqdn.or(Some(value)),
                _ if name.starts_with("pub_key_") => news.host_keys.push((name, value)),
                _ => {}
            }
        }
        news
    }
}

/// Decodes a value of `application/x-www-form-urlencoded` (the URL standard, section 5.1).
fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::PhoneHome;
    use proptest::prelude::{any, proptest};

    fn read(form: &[u8]) -> PhoneHome {
        PhoneHome::read("10.77.0.11".parse().unwrap(), "default/nuc-1".to_owned(), form)
    }

    #[test]
    fn reads_what_cloud_init_posts() {
        let form = b"pub_key_rsa=ssh-rsa+AAAA%2B%2F%3D+root%40nuc-1%0A&pub_key_dsa=N%2FA&\
                     instance_id=i-1&hostname=nuc-1&fqdn=nuc-1.lab&instance_id=second&other=1&&=";
        let news = read(form);
        assert_eq!(news.instance_id.as_deref(), Some("i-1"));
        assert_eq!(news.hostname.as_deref(), Some("nuc-1"));
        assert_eq!(news.fqdn.as_deref(), Some("nuc-1.lab"));
        let key = ("pub_key_rsa".to_owned(), "ssh-rsa AAAA+/= root@nuc-1".to_owned());
        assert_eq!(news.host_keys, [key]);
        assert_eq!(read(b"").instance_id, None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(form in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&form);
        }
    }
}
