//! The metadata service: any method, path and body, from a machine that the box knows or not.

#![no_main]

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::Method;
use fuzz::{Input, KNOWN, STRANGER, ask, block_on, request};
use libfuzzer_sys::fuzz_target;
use metadata::{Instance, Instances, Observer, PhoneHome, router};

/// The longest form that may come through.
const FORM_MAX: usize = 64 << 10;

struct One;

impl Instances for One {
    fn by_address(&self, address: IpAddr) -> Option<Instance> {
        let instance = Instance {
            id: "i-1".to_owned(),
            hardware: "default/nuc-1".to_owned(),
            hostname: "nuc-1".to_owned(),
            public_keys: vec!["ssh-ed25519 AAAA owner".to_owned()],
            user_data: Some("#cloud-config\n".into()),
            ..Instance::default()
        };
        (address == KNOWN).then_some(instance)
    }
}

impl Observer for One {
    fn asked(&self, _: IpAddr, path: &str, _: u16) {
        assert!(path.chars().count() <= 200);
    }

    fn phoned_home(&self, news: PhoneHome) {
        let keys: usize = news.host_keys.iter().map(|(name, key)| name.len() + key.len()).sum();
        // A byte that is no UTF-8 becomes three.
        assert!(keys <= 3 * FORM_MAX && news.host_keys.len() <= 64);
    }
}

static SITE: LazyLock<Router> = LazyLock::new(|| router(Arc::new(One), Arc::new(One)));

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let choice = input.byte();
    let method =
        [Method::GET, Method::POST, Method::PUT, Method::HEAD][usize::from(choice % 4)].clone();
    let peer = if choice & 4 == 0 { KNOWN } else { STRANGER };
    let (target, header) = (input.line(), input.line());
    let headers =
        [("x-aws-ec2-metadata-token", header), ("x-aws-ec2-metadata-token-ttl-seconds", header)];
    let headers = match choice & 0x18 {
        0 => &headers[..0],
        8 => &headers[..1],
        _ => &headers[1..],
    };
    let Some(request) = request(method, target, headers, input.0, peer) else { return };
    let (status, _) = block_on(ask(&SITE, request));
    assert!(!status.is_server_error(), "{status}");
    assert!(peer == KNOWN || !status.is_success(), "a stranger was told something");
});
