use super::reading::Reader;
use super::{OFF_BELOW_WATTS, Outlet, PRESETS, Plug, PlugAddress, Preset};
use crate::client::Tls;
use crate::{Error, Power};

fn plug(preset: &str, outlet: &str) -> Result<Plug, Error> {
    let address = PlugAddress { base: "http://192.0.2.7".into(), outlet: outlet.into() };
    Plug::new(Preset::named(preset).unwrap(), address, None, Tls::Verified)
}

fn read(preset: &str, body: &str) -> Option<bool> {
    let preset = Preset::named(preset).unwrap();
    Reader::new(&preset.state, &preset.outlet).unwrap().read(body.as_bytes()).unwrap().is_on
}

#[test]
fn each_preset_can_be_used() {
    for (name, text) in PRESETS {
        let preset: Preset = serde_json::from_str(text).unwrap();
        assert!(preset.source.starts_with("https://"), "{name}");
        plug(name, "").unwrap();
    }
    assert_eq!(Preset::named("unknown"), None);
    assert!(Preset::named("Tasmota").is_some());
}

#[test]
fn requests_are_those_of_the_makers() {
    let path = |preset: &str, outlet: &str| {
        let plug = plug(preset, outlet).unwrap();
        let cycle = plug.preset.cycle.clone().unwrap();
        plug.call(&cycle, "cycle").unwrap().uri.to_string()
    };
    let shelly = "http://192.0.2.7/rpc/Switch.Set?id=2&on=false&toggle_after=10";
    assert_eq!(path("shelly", "2"), shelly);
    assert_eq!(path("shelly-gen1", ""), "http://192.0.2.7/relay/0?turn=off&timer=10");
    let tasmota =
        "http://192.0.2.7/cm?cmnd=Backlog%20Power1%20Off%3B%20Delay%20100%3B%20Power1%20On";
    assert_eq!(path("tasmota", ""), tasmota);
}

#[test]
fn states_are_read_from_the_documented_answers() {
    let shelly = r#"{"id":0,"source":"HTTP_in","output":true,"apower":11.8,"voltage":230.1}"#;
    let preset = Preset::named("shelly").unwrap();
    let outlet = Reader::new(&preset.state, "0").unwrap().read(shelly.as_bytes()).unwrap();
    assert_eq!(outlet, Outlet { is_on: Some(true), watts: Some(11.8) });
    let gen1 = r#"{"relays":[{"ison":false}],"meters":[{"power":0.0,"is_valid":true}]}"#;
    assert_eq!(read("shelly-gen1", gen1), Some(false));
    for (body, is_on) in [
        (r#"{"POWER":"ON"}"#, Some(true)),
        (r#"{"POWER1":"OFF"}"#, Some(false)),
        (r#"{"Command":"Unknown"}"#, None),
    ] {
        assert_eq!(read("tasmota", body), is_on, "{body}");
    }
    assert_eq!(read("esphome", r#"{"id":"switch-relay","state":"ON","value":true}"#), Some(true));
    let preset = Preset::named("esphome").unwrap();
    let reader = Reader::new(&preset.state, "relay").unwrap();
    for wrong in ["", "<html>", "{}", r#"{"state":[]}"#] {
        assert!(reader.read(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn a_machine_that_draws_nothing_is_off_although_its_outlet_is_on() {
    for (is_on, watts, power) in [
        (Some(true), Some(1.4), Power::Off),
        (Some(true), Some(9.0), Power::On),
        (Some(true), None, Power::On),
        (Some(false), Some(9.0), Power::Off),
        (None, Some(9.0), Power::Unknown),
    ] {
        assert_eq!(Outlet { is_on, watts }.power(OFF_BELOW_WATTS), power, "{is_on:?} {watts:?}");
    }
}

#[test]
fn an_outlet_cannot_change_the_request() {
    for outlet in ["0&on=true", "../x", "a b", "0#"] {
        assert!(matches!(plug("shelly", outlet), Err(Error::Invalid { .. })), "{outlet}");
    }
    let mut preset = Preset::named("shelly").unwrap();
    preset.on.path = "relay".to_owned();
    let address = PlugAddress { base: "http://192.0.2.7".into(), outlet: String::new() };
    assert!(Plug::new(preset, address, None, Tls::Verified).is_err());
}
