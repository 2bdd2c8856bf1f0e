//! Search for Redfish services by SSDP (DMTF DSP0266, "Discovering Redfish services").

use std::net::Ipv4Addr;

/// Multicast group of SSDP.
pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 250);
/// UDP port of SSDP.
pub const PORT: u16 = 1900;
/// Hops that a search may take, as the standard demands.
pub const TTL: u32 = 2;
/// Maximum delay of an answer in seconds, which the search allows.
pub const DELAY_SECONDS: u64 = 2;
/// Service type of Redfish, without its version.
const SERVICE: &str = "urn:dmtf-org:service:redfish-rest:1";
/// Maximum size of an answer in bytes that is read.
const ANSWER_MAX: usize = 2048;

/// Returns the search for Redfish services.
pub fn search() -> Vec<u8> {
    format!(
        "M-SEARCH * HTTP/1.1\r\nHOST: {GROUP}:{PORT}\r\nMAN: \"ssdp:discover\"\r\n\
         MX: {DELAY_SECONDS}\r\nST: {SERVICE}\r\n\r\n"
    )
    .into_bytes()
}

/// Redfish service that answered a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedfishService {
    /// UUID of the service, in lower case. Often, but not always, that of the machine.
    pub uuid: String,
    /// URL of the service root.
    pub url: String,
}

impl RedfishService {
    /// Reads an answer; `None` for a datagram that is not the answer of a Redfish service.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(datagram.get(..datagram.len().min(ANSWER_MAX))?).ok()?;
        let mut lines = text.split("\r\n");
        let status = lines.next()?;
        if !status.starts_with("HTTP/1.1 200") {
            return None;
        }
        let header = |name: &str| {
            let find = |line: &str| {
                let (key, value) = line.split_once(':')?;
                key.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            };
            lines.clone().find_map(find)
        };
        let name = header("USN")?;
        let rest = name.strip_prefix("uuid:")?;
        let (uuid, service) = rest.split_once("::")?;
        let url = header("AL")?;
        let is_url = url.starts_with("https://") || url.starts_with("http://");
        let is_uuid =
            uuid.len() == 36 && uuid.chars().all(|it| it.is_ascii_hexdigit() || it == '-');
        let is_redfish = service.starts_with(SERVICE) && is_url && is_uuid;
        is_redfish.then(|| Self { uuid: uuid.to_ascii_lowercase(), url })
    }
}

#[cfg(test)]
mod tests {
    use super::{RedfishService, search};

    const ANSWER: &str = "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=1800\r\n\
        ST: urn:dmtf-org:service:redfish-rest:1:11\r\n\
        USN: uuid:92384634-2938-2342-8820-489239905423::urn:dmtf-org:service:redfish-rest:1:11\r\n\
        AL: https://10.0.0.9/redfish/v1/\r\nEXT:\r\n\r\n";

    #[test]
    fn a_search_ends_with_an_empty_line() {
        let text = String::from_utf8(search()).unwrap();
        assert!(
            text.starts_with("M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n"),
            "{text}"
        );
        assert!(text.ends_with("redfish-rest:1\r\n\r\n"), "{text}");
    }

    #[test]
    fn the_answer_of_a_service_is_read() {
        let found = RedfishService::parse(ANSWER.as_bytes()).unwrap();
        assert_eq!(found.uuid, "92384634-2938-2342-8820-489239905423");
        assert_eq!(found.url, "https://10.0.0.9/redfish/v1/");
    }

    #[test]
    fn other_datagrams_are_not_answers() {
        for (from, to) in [
            ("HTTP/1.1 200", "NOTIFY *"),
            ("dmtf-org", "schemas-upnp-org"),
            ("https://", "file://"),
            ("uuid:9238", "uuid:zz38"),
            ("USN:", "USM:"),
        ] {
            let other = ANSWER.replace(from, to);
            assert_eq!(RedfishService::parse(other.as_bytes()), None, "{other}");
        }
        assert_eq!(RedfishService::parse(&[0xff; 9]), None);
        assert_eq!(RedfishService::parse(b""), None);
    }
}
