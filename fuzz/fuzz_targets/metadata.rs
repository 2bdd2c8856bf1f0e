//! The metadata service: any method, path, header and body, from a known or an unknown machine,
//! directly or through a proxy.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::Method;
use fuzz::{Input, KNOWN, STRANGER, ask, block_on, request};
use libfuzzer_sys::fuzz_target;
use metadata::{
    Config, Instance, Instances, Interface, Observer, PhoneHome, PowerHooks, Provisioning,
    Unmatched, router,
};

/// Maximum size of a form that the service accepts, in bytes.
const FORM_MAX: usize = 64 << 10;

/// Content type of forms.
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// Trusted proxy, whose `X-Forwarded-For` names the machine.
const PROXY: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

struct One;

impl Instances for One {
    fn by_address(&self, address: IpAddr) -> Result<Instance, Unmatched> {
        let instance = Instance {
            id: "i-1".to_owned(),
            hardware: "default/nuc-1".to_owned(),
            hostname: "nuc-1".to_owned(),
            public_keys: vec!["ssh-ed25519 AAAA owner".to_owned()],
            user_data: Some("#cloud-config\n".into()),
            interfaces: vec![Interface::new(stdx::MacAddr([0x52, 0x54, 0, 0x77, 0, 1]))],
            extra: [("role".to_owned(), "storage".to_owned())].into(),
            provisioning: Provisioning::Underway,
            ..Instance::default()
        };
        (address == KNOWN).then_some(instance).ok_or(Unmatched::UnknownAddress)
    }

    fn by_instance_id(&self, _: &str) -> Option<Instance> {
        None
    }
}

impl Observer for One {
    fn answered(&self, _: IpAddr, path: &str, _: u16) {
        assert!(path.chars().count() <= 200);
    }

    fn withheld(&self, _: IpAddr, _: &str) {
        panic!("nothing is withheld within the window");
    }

    fn refused(&self, _: IpAddr, _: &str, _: stdx::MacAddr) {
        panic!("no address is used by another NIC");
    }

    fn phoned_home(&self, news: PhoneHome) {
        let keys: usize = news.host_keys.iter().map(|(name, key)| name.len() + key.len()).sum();
        // A byte that is not valid UTF-8 becomes a replacement character of three bytes.
        assert!(keys <= 3 * FORM_MAX && news.host_keys.len() <= 64);
    }
}

static SITE: LazyLock<Router> = LazyLock::new(|| {
    let proxies = vec![IpAddr::from(PROXY).into()];
    let config =
        Config { trusted_proxies: proxies, instance_endpoint: true, ..Config::default() };
    router(config, Arc::new(One), Arc::new(One), Arc::new(PowerHooks::new(&[0; 32])))
});

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let choice = input.byte();
    let method =
        [Method::GET, Method::POST, Method::PUT, Method::HEAD][usize::from(choice % 4)].clone();
    let peer = match choice & 0x24 {
        0 => KNOWN,
        4 => STRANGER,
        _ => PROXY,
    };
    let (target, header) = (input.line(), input.line());
    let name = match choice & 0x18 {
        0 => None,
        8 => Some("x-aws-ec2-metadata-token"),
        0x10 => Some("x-aws-ec2-metadata-token-ttl-seconds"),
        _ => Some("x-forwarded-for"),
    };
    // Without this type, the forms of power hooks are not read.
    let mut headers = vec![("content-type", FORM)];
    headers.extend(name.map(|name| (name, header)));
    let Some(request) = request(method, target, &headers, input.0, peer) else { return };
    let (status, _) = block_on(ask(&SITE, request));
    assert!(!status.is_server_error(), "{status}");
    // A request through the proxy counts as the machine's only if the list of addresses contains
    // the machine's address.
    let named = header.rsplit(|byte| *byte == b',').any(|hop| spells(hop, KNOWN));
    let known = peer == KNOWN || (peer == PROXY && choice & 0x18 == 0x18 && named);
    assert!(known || !status.is_success(), "a stranger was told something");
});

fn spells(hop: &[u8], address: Ipv4Addr) -> bool {
    let text = str::from_utf8(hop).ok().map(str::trim);
    let read = text.and_then(|text| text.parse::<IpAddr>().ok());
    read.is_some_and(|it| it.to_canonical() == IpAddr::from(address))
}
