//! Connection settings of the providers that send HTTP requests.

use std::time::Duration;

use api::bmc::{Connection, HOME_ASSISTANT, PLUG, RPC};
use bmc::{
    Address, Algorithm, PRESETS, PlugAddress, PlugProtocol, Preset, Protocol, RpcOptions, Tls,
};

use serde::de::DeserializeOwned;

use super::http_options::{HomeAssistantOptions, PlugOptions, RpcExperiment, RpcOptions as Set};
use super::{Secrets, Target};

/// Key of the secrets of signatures, as upstream.
const SECRET_KEY: &str = "secret";
/// Power in watts below which a machine is off by default. A NUC that is shut down draws 0.5 W to
/// 2 W.
const OFF_BELOW_WATTS: u16 = 3;

fn tls(connection: &Connection) -> Tls {
    if connection.insecure_tls { Tls::Unverified } else { Tls::Verified }
}

/// Reads the options of a provider.
pub(super) fn options<T: DeserializeOwned>(
    connection: &Connection,
    name: &str,
) -> Result<T, String> {
    let all = connection.provider_options.as_ref();
    let set = all.and_then(|all| all.rest.get(name)).cloned().unwrap_or_default();
    serde_json::from_value(set)
        .map_err(|error| format!("connection.providerOptions.{name}: {error}"))
}

/// Replaces the value by `set`, unless `set` is empty.
fn set_to(value: &mut String, set: &str) {
    if !set.is_empty() {
        set.clone_into(value);
    }
}

pub async fn rpc(connection: &Connection, secrets: &Secrets<'_>) -> Target {
    let set: Set = options(connection, RPC)?;
    if set.experimental.is_some_and(|it| it != RpcExperiment::default()) {
        return Err(
            "connection.providerOptions.rpc.experimental is not supported; remove it".into()
        );
    }
    let mut options = RpcOptions { consumer_url: set.consumer_url, ..RpcOptions::default() };
    set_to(&mut options.method, &set.request.http_method);
    set_to(&mut options.content_type, &set.request.http_content_type);
    set_to(&mut options.timestamp_format, &set.request.timestamp_format);
    set_to(&mut options.timestamp_header, &set.request.timestamp_header);
    set_to(&mut options.signature_header, &set.signature.header_name);
    options.signed_headers = match set.signature.included_payload_headers {
        names if names.is_empty() => vec![options.timestamp_header.clone()],
        names => names,
    };
    options.has_algorithm_in_header = !set.signature.append_algo_to_header_disabled;
    options.has_algorithm_prefix = !set.hmac.prefix_sig_disabled;
    let headers = set.request.static_headers.into_iter();
    options.static_headers = headers
        .flat_map(|(name, values)| values.into_iter().map(move |value| (name.clone(), value)))
        .collect();
    for (name, references) in &set.hmac.secrets {
        let algorithm = Algorithm::of(name).ok_or_else(|| {
            format!(
                "expected sha256 or sha512 in connection.providerOptions.rpc.hmac.secrets, found \
                 {name:?}"
            )
        })?;
        for reference in references {
            options.secrets.push((algorithm, secrets.value(reference, SECRET_KEY).await?));
        }
    }
    let address = Address { host: connection.host.clone(), port: 0 };
    Ok((address, Protocol::Rpc(Box::new(options), tls(connection))))
}

pub fn home_assistant(connection: &Connection) -> Target {
    let options: HomeAssistantOptions = options(connection, HOME_ASSISTANT)?;
    let protocol = Protocol::HomeAssistant {
        entity: options.switch_entity_id,
        delay: Duration::from_secs(options.power_operation_delay_seconds.into()),
        tls: tls(connection),
    };
    Ok((Address { host: connection.host.clone(), port: 0 }, protocol))
}

pub fn plug(connection: &Connection) -> Target {
    let options: PlugOptions = options(connection, PLUG)?;
    let preset = match (options.requests, options.preset.as_str()) {
        (Some(requests), "") => serde_json::from_value(requests)
            .map_err(|error| format!("connection.providerOptions.plug.requests: {error}"))?,
        (None, name) => Preset::named(name).ok_or_else(|| {
            let known: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
            format!(
                "expected one of {} in connection.providerOptions.plug.preset, found {name:?}",
                known.join(", ")
            )
        })?,
        (Some(_), _) => {
            return Err(
                "connection.providerOptions.plug has a preset and requests; remove one".to_owned()
            );
        }
    };
    let (scheme, standard) = match options.scheme.as_str() {
        "http" | "" => ("http", 80),
        "https" => ("https", 443),
        other => {
            return Err(format!(
                "expected http or https in connection.providerOptions.plug.scheme, found {other:?}"
            ));
        }
    };
    // The port of the connection is the one of IPMI.
    let port = if options.port == 0 { standard } else { options.port };
    let address = Address { host: connection.host.clone(), port };
    let protocol = PlugProtocol {
        preset,
        address: PlugAddress { base: format!("{scheme}://{address}"), outlet: options.outlet },
        off_below_watts: match options.off_below_watts {
            0 => OFF_BELOW_WATTS,
            watts => watts,
        },
        tls: tls(connection),
    };
    Ok((address, Protocol::Plug(Box::new(protocol))))
}
