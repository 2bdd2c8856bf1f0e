//! Comparison with Tootles for the same Hardware: `tootles.json` is a transcript of Tinkerbell
//! 0.25.0's own service over `tests/peers/tootles/hardware.json`. Each line has the client, the
//! path, and the response's status, content type and body. `tests/peers` records it again.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, header};
use http_body_util::BodyExt;
use metadata::fake::{Events, Machines};
use metadata::{Config, Instance, Interface, OperatingSystem, PowerHooks, UserData, router};
use serde_json::Value;
use tower::ServiceExt;

const TRANSCRIPT: &str = include_str!("../tootles.json");
const HARDWARE: &str = include_str!("../../../../tests/peers/tootles/hardware.json");

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn instance(hardware: &Value) -> Instance {
    let (spec, metadata) = (&hardware["spec"], &hardware["spec"]["metadata"]);
    let (from, system) = (&metadata["instance"], &metadata["instance"]["operating_system"]);
    let ip = |family: u64, public: Option<bool>| {
        let mut ips = from["ips"].as_array().into_iter().flatten();
        let found = ips.find(|ip| {
            ip["family"] == family
                && public.is_none_or(|public| ip["public"] == public)
                && ip["address"] != ""
        });
        found.map_or_else(String::new, |ip| text(&ip["address"]))
    };
    let interfaces = spec["interfaces"].as_array().unwrap().iter().map(|it| {
        let dhcp = &it["dhcp"];
        let address = format!("{}/8", dhcp["ip"]["address"].as_str().unwrap());
        Interface {
            hostname: text(&dhcp["hostname"]),
            address: Some(address.parse().unwrap()),
            ..Interface::new(dhcp["mac"].as_str().unwrap().parse().unwrap())
        }
    });
    Instance {
        id: text(&from["id"]),
        hardware: text(&hardware["metadata"]["name"]),
        name: text(&hardware["metadata"]["name"]),
        uuid: "c0ffee".to_owned(),
        hostname: text(&from["hostname"]),
        public_keys: texts(&from["ssh_keys"]),
        user_data: spec["userData"].as_str().map(Into::into),
        vendor_data: spec["vendorData"].as_str().map(Into::into),
        interfaces: interfaces.collect(),
        tags: texts(&from["tags"]),
        plan: text(&metadata["facility"]["plan_slug"]),
        facility: text(&metadata["facility"]["facility_code"]),
        public_ipv4: ip(4, Some(true)),
        local_ipv4: ip(4, Some(false)),
        public_ipv6: ip(6, None),
        operating_system: OperatingSystem {
            slug: text(&system["slug"]),
            distro: text(&system["distro"]),
            version: text(&system["version"]),
            image_tag: text(&system["image_tag"]),
        },
        storage: from.get("storage").cloned(),
        ..Instance::default()
    }
}

#[tokio::test]
async fn every_answer_is_that_of_tootles() {
    let list: Value = serde_json::from_str(HARDWARE).unwrap();
    let machines = Machines::of(list["items"].as_array().unwrap().iter().map(instance));
    let user_data = UserData::Address;
    let config = Config { instance_endpoint: true, user_data, ..Config::default() };
    let site = router(
        config,
        Arc::new(machines),
        Arc::new(Events::default()),
        Arc::new(PowerHooks::new(&[0; 32])),
    );
    let transcript: Vec<(IpAddr, String, u16, String, String)> =
        serde_json::from_str(TRANSCRIPT).unwrap();
    assert!(transcript.len() > 190, "{} answers", transcript.len());
    for (client, path, status, kind, body) in transcript {
        let mut request = Request::get(&path).body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from((client, 1024))));
        let response = site.clone().oneshot(request).await.unwrap();
        let ours_kind = response.headers().get(header::CONTENT_TYPE);
        let ours_kind = ours_kind.map_or_else(String::new, |it| it.to_str().unwrap().to_owned());
        let ours = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&bytes).unwrap();
        let wanted = (status, kind.as_str(), body.as_str());
        assert_eq!((ours, ours_kind.as_str(), text), wanted, "{client} asks for {path}");
    }
}
