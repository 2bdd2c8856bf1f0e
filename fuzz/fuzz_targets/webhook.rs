//! A webhook, Home Assistant or a smart plug that sends any response.

#![no_main]

use std::sync::LazyLock;

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use webhook::plug::{OFF_BELOW_WATTS, PRESETS, PlugAddress, Preset};
use webhook::{HomeAssistant, Plug, Power, Rpc, RpcOptions, Tls};

static RPC: LazyLock<Rpc> = LazyLock::new(|| {
    let consumer_url = "http://192.0.2.5/rpc".to_owned();
    let options = RpcOptions { consumer_url, ..RpcOptions::default() };
    Rpc::new(options, "192.0.2.1", Tls::Unverified).expect("valid options")
});

static PLUGS: LazyLock<Vec<Plug>> = LazyLock::new(|| {
    let plug = |(name, _): &(&str, &str)| {
        let preset = Preset::named(name).expect("a preset");
        let address = PlugAddress { base: "http://192.0.2.7".to_owned(), outlet: String::new() };
        Plug::new(preset, address, None, Tls::Unverified).expect("a valid preset")
    };
    PRESETS.iter().map(plug).collect()
});

fn webhook(response: &[u8]) {
    if let Err(error) = RPC.read_power(response) {
        let text = error.to_string();
        assert!(!text.contains('\n'), "an error is one line: {text}");
    }
}

fn plug(mut input: Input) {
    let number = usize::from(input.byte()) % PLUGS.len();
    let Ok(outlet) = PLUGS[number].read(input.0) else { return };
    if outlet.is_on.is_none() {
        assert_eq!(outlet.power(OFF_BELOW_WATTS), Power::Unknown, "a guess");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.byte() {
        b'p' => plug(input),
        b'h' => drop(HomeAssistant::read_power(input.0)),
        _ => webhook(input.0),
    }
});
