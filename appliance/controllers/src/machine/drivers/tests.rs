use api::bmc::{Connection, MACHINE};
use api::core::SECRET;
use api::meta::ObjectKey;
use bmc::{
    CipherSuite, Endpoint, Fingerprint, PoeLogin, Protocol, RedfishOptions, RedfishSecurity,
    Security, Tls, Trust,
};
use objects::fake::Memory;
use serde_json::{Value, json};

use super::login;

/// Returns the endpoint for a connection with `fields`, and Secrets of the names `bmc` and `hmac`.
async fn endpoint(fields: Value) -> Result<Endpoint, String> {
    let objects = Memory::default();
    let secret = |name: &str, data: Value| {
        let metadata = json!({ "name": name, "namespace": "default" });
        objects.put(SECRET, json!({ "kind": "Secret", "metadata": metadata, "data": data }));
    };
    secret("bmc", json!({ "username": "YWRtaW4=", "password": "eA==" }));
    // 32 times `2a`, in base64: a unit of six bytes, ten times, and the rest.
    let pin = format!("{}{}", "MmEyYTJh".repeat(10), "MmEyYQ==");
    secret(
        "pinned",
        json!({ "username": "YQ==", "password": "eA==", "certificateFingerprint": pin }),
    );
    secret("hmac", json!({ "secret": "czNjcmV0" }));
    secret("snmp", json!({ "username": "dGluYm94", "password": "YXV0aGVudGljYXRl" }));
    secret("community", json!({ "community": "d3JpdGUtaGVyZQ==" }));
    secret("wake", json!({ "secureOn": "YWE6YmI6Y2M6ZGQ=" }));
    let mut connection = json!({ "host": "10.0.0.9", "authSecretRef": { "name": "bmc" } });
    connection.as_object_mut().unwrap().append(&mut fields.as_object().unwrap().clone());
    let connection: Connection = serde_json::from_value(connection).unwrap();
    login(&objects, &connection, &ObjectKey::new("default", MACHINE.kind)).await
}

async fn with(options: Value) -> Result<Endpoint, String> {
    endpoint(json!({ "port": 623, "providerOptions": options })).await
}

#[tokio::test]
async fn provider_options_come_first() {
    let found = with(json!({ "ipmitool": { "port": 6230, "cipherSuite": "3" } })).await.unwrap();
    assert_eq!(found.address.to_string(), "10.0.0.9:6230");
    assert_eq!(found.cipher_suite(), Some(CipherSuite::Three));
    assert_eq!(found.credentials.username, "admin");
}

#[tokio::test]
async fn unset_means_the_standard_port_and_the_best_suite() {
    let found = endpoint(json!({})).await.unwrap();
    assert_eq!((found.address.port, found.cipher_suite()), (623, None));
}

#[tokio::test]
async fn intel_amt_has_its_own_ports_and_needs_a_word_for_plain_http() {
    for (scheme, port, expected, security) in [
        ("http", 0, "10.0.0.9:16992", Security::Plain),
        ("https", 0, "10.0.0.9:16993", Security::Tls(Trust::FirstUse)),
        ("", 0, "10.0.0.9:16993", Security::Tls(Trust::FirstUse)),
        ("http", 8080, "10.0.0.9:8080", Security::Plain),
    ] {
        let options = json!({ "intelAMT": { "port": port, "hostScheme": scheme } });
        let found = with(options).await.unwrap();
        assert_eq!(found.address.to_string(), expected, "{scheme}");
        assert_eq!(found.protocol, Protocol::Amt(security.into()), "{scheme}");
    }
}

#[tokio::test]
async fn a_fingerprint_in_the_secret_pins_the_certificate_and_needs_tls() {
    let pinned = |scheme: &str| {
        json!({
            "authSecretRef": { "name": "pinned" },
            "providerOptions": { "intelAMT": { "hostScheme": scheme } },
        })
    };
    let found = endpoint(pinned("https")).await.unwrap();
    let pin = Fingerprint([0x2a; 32]);
    assert_eq!(found.protocol, Protocol::Amt(Security::Tls(Trust::Pinned(pin)).into()));
    // The pin of the Secret precedes `insecureTLS`, which without a pin trusts any certificate.
    let mut insecure = pinned("https");
    insecure["insecureTLS"] = true.into();
    let found = endpoint(insecure.clone()).await.unwrap();
    assert_eq!(found.protocol, Protocol::Amt(Security::Tls(Trust::Pinned(pin)).into()));
    insecure["authSecretRef"]["name"] = "bmc".into();
    let found = endpoint(insecure).await.unwrap();
    assert_eq!(found.protocol, Protocol::Amt(Security::Tls(Trust::Any).into()));
    assert!(endpoint(pinned("http")).await.unwrap_err().contains("needs hostScheme https"));
}

#[tokio::test]
async fn redfish_trusts_the_certificate_as_the_machine_says() {
    let pin = Fingerprint([0x2a; 32]);
    for (secret, insecure, security, expected) in [
        ("bmc", false, RedfishSecurity::Tls(Trust::FirstUse), "10.0.0.9:443"),
        ("bmc", true, RedfishSecurity::Tls(Trust::Any), "10.0.0.9:443"),
        ("pinned", true, RedfishSecurity::Tls(Trust::Pinned(pin)), "10.0.0.9:443"),
    ] {
        let fields = json!({
            "port": 623, "authSecretRef": { "name": secret }, "insecureTLS": insecure,
            "providerOptions": { "redfish": { "systemName": "node-2", "useBasicAuth": true } },
        });
        let found = endpoint(fields).await.unwrap();
        assert_eq!(found.address.to_string(), expected);
        let system = "node-2".to_owned();
        let options = RedfishOptions { system, is_basic: true, security };
        assert_eq!(found.protocol, Protocol::Redfish(options));
    }
    let plain = json!({ "redfish": { "scheme": "http", "port": 8000 } });
    let found = with(plain.clone()).await.unwrap();
    assert_eq!(found.address.to_string(), "10.0.0.9:8000");
    let pinned = json!({ "authSecretRef": { "name": "pinned" }, "providerOptions": plain });
    assert!(endpoint(pinned).await.unwrap_err().contains("needs scheme https"));
}

#[tokio::test]
async fn a_webhook_has_the_defaults_of_rufio_and_its_own_secrets() {
    let connection = json!({
        "authSecretRef": {}, "insecureTLS": true,
        "providerOptions": { "rpc": {
            "consumerURL": "https://power.example/v1",
            "request": { "staticHeaders": { "X-Site": ["a", "b"] } },
            "hmac": { "secrets": { "sha256": [{ "name": "hmac" }, { "name": "hmac" }] } },
        } },
    });
    let found = endpoint(connection).await.unwrap();
    let Protocol::Rpc(options, Tls::Unverified) = found.protocol else { panic!("{found:?}") };
    assert_eq!(options.timestamp_header, "X-Rufio-Timestamp");
    assert_eq!(options.signed_headers, ["X-Rufio-Timestamp"]);
    assert_eq!((options.secrets.len(), options.static_headers.len()), (2, 2));
    assert_eq!(found.address.to_string(), "10.0.0.9");
}

#[tokio::test]
async fn a_plug_needs_no_login_and_home_assistant_a_token() {
    let plug = json!({
        "authSecretRef": {},
        "providerOptions": { "plug": { "preset": "shelly", "outlet": "1", "port": 8080 } },
    });
    let found = endpoint(plug).await.unwrap();
    assert_eq!(found.address.to_string(), "10.0.0.9:8080");
    let Protocol::Plug(plug) = found.protocol else { panic!("{found:?}") };
    assert_eq!((plug.address.base.as_str(), plug.off_below_watts), ("http://10.0.0.9:8080", 3));
    let own = json!({ "plug": { "requests": {
        "on": { "path": "/on" }, "off": { "path": "/off" }, "state": { "path": "/state" },
    } } });
    assert!(with(own).await.is_ok());
    let options = json!({ "homeassistant": {
        "switchEntityID": "switch.nuc1", "powerOperationDelaySeconds": 2,
    } });
    let switch = json!({ "host": "http://10.0.0.5:8123", "providerOptions": options });
    let found = endpoint(switch).await.unwrap();
    assert_eq!(found.address.to_string(), "http://10.0.0.5:8123");
    assert_eq!(found.credentials.password.expose(), "x");
}

#[tokio::test]
async fn wake_on_lan_needs_no_login_and_takes_the_password_of_the_nic_from_a_secret() {
    let plain = json!({ "authSecretRef": {}, "providerOptions": { "wakeOnLAN": {} } });
    let Protocol::WakeOnLan(options) = endpoint(plain).await.unwrap().protocol else { panic!() };
    assert_eq!((options.macs.len(), options.port, options.secure_on), (0, 9, None));
    let set = json!({
        "authSecretRef": { "name": "wake" },
        "providerOptions": { "wakeOnLAN": { "macs": ["52:54:00:77:00:01"], "port": 7 } },
    });
    let Protocol::WakeOnLan(options) = endpoint(set).await.unwrap().protocol else { panic!() };
    assert_eq!((options.macs.len(), options.port), (1, 7));
    assert_eq!(options.secure_on.unwrap().expose(), "aa:bb:cc:dd");
    let missing = with(json!({ "wakeOnLAN": {} })).await.unwrap_err();
    assert!(missing.contains("secureOn"), "{missing}");
    let wrong = with(json!({ "wakeOnLAN": { "macs": ["x"] } })).await.unwrap_err();
    assert!(wrong.contains("hardware address"), "{wrong}");
}

#[tokio::test]
async fn a_switch_port_has_a_login_of_its_own() {
    let poe = |secret: &str, options: Value| {
        let reference = json!({ "name": secret });
        json!({ "authSecretRef": reference, "port": 623, "providerOptions": { "poe": options } })
    };
    let found = endpoint(poe("snmp", json!({ "outlet": "1.3" }))).await.unwrap();
    assert_eq!(found.address.to_string(), "10.0.0.9:161");
    assert_eq!(found.switch_port().map(|port| port.to_string()).as_deref(), Some("1.3"));
    let Protocol::Poe(options) = found.protocol else { panic!("{found:?}") };
    assert_eq!(options.login.user(), Some("tinbox"));

    let set = json!({ "outlet": "2.4", "version": "2c", "port": 1161 });
    let found = endpoint(poe("community", set)).await.unwrap();
    assert_eq!(found.address.to_string(), "10.0.0.9:1161");
    let Protocol::Poe(options) = found.protocol else { panic!("{found:?}") };
    assert_eq!(options.login, PoeLogin::Community("write-here".into()));
    for (secret, options, word) in [
        ("community", json!({ "outlet": "1.3" }), "secret default/community: username"),
        ("absent", json!({ "outlet": "1.3" }), "absent"),
        ("snmp", json!({ "outlet": "3" }), "outlet is not valid"),
        ("snmp", json!({ "outlet": "1.3", "portname": "a" }), "portname"),
    ] {
        let why = endpoint(poe(secret, options.clone())).await.unwrap_err();
        assert!(why.contains(word), "{options}: {why}");
    }
}

#[tokio::test]
async fn a_mistake_in_the_options_is_named() {
    for (options, word) in [
        (json!({ "ipmitool": { "cipherSuite": "99" } }), "cipher suite"),
        (json!({ "intelAMT": { "hostScheme": "ftp" } }), "hostScheme"),
        (json!({ "redfish": { "scheme": "ftp" } }), "scheme"),
        (json!({ "redfish": { "port": "x" } }), "redfish"),
        (json!({ "preferredOrder": ["dell"] }), "needs the driver dell"),
        (json!({ "rpc": { "consumerURL": "power" } }), "consumerURL"),
        (
            json!({ "rpc": { "consumerURL": "http://a", "hmac": { "secrets": { "md5": [] } } } }),
            "sha256 or sha512",
        ),
        (
            json!({ "rpc": {
                "consumerURL": "http://a", "experimental": { "customRequestPayload": "{}" },
            } }),
            "experimental",
        ),
        (json!({ "homeassistant": { "switchEntityID": "switch.nuc1" } }), "host is not valid"),
        (json!({ "plug": {} }), "esphome, shelly, shelly-gen1, tasmota"),
        (json!({ "plug": { "preset": "shelly", "requests": {} } }), "remove one"),
        (json!({ "plug": { "requests": { "on": {} } } }), "requests"),
        (json!({ "plug": { "preset": "shelly", "outlet": "0&on=true" } }), "outlet"),
        (json!({ "plug": { "preset": "shelly", "scheme": "coap" } }), "scheme"),
    ] {
        let why = with(options.clone()).await.unwrap_err();
        assert!(why.contains(word), "{options}: {why}");
    }
    let missing = json!({ "providerOptions": { "rpc": {
        "consumerURL": "http://a", "hmac": { "secrets": { "sha256": [{ "name": "absent" }] } },
    } } });
    assert!(endpoint(missing).await.unwrap_err().contains("absent"));
}
