//! Options of the providers that send HTTP requests.

use std::collections::BTreeMap;

use api::bmc::SecretRef;
use serde::Deserialize;
use serde_json::Value;

/// Options of a webhook, as upstream's `rpc`. An absent field has Rufio's value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RpcOptions {
    /// URL of the webhook.
    #[serde(rename = "consumerURL")]
    pub consumer_url: String,
    /// Form of the requests.
    pub request: RpcRequest,
    /// Header of the signature.
    pub signature: RpcSignature,
    /// Secrets of the signatures.
    pub hmac: RpcHmac,
    /// Form of the body that the box does not support.
    pub experimental: Option<RpcExperiment>,
}

/// Form of the requests to a webhook.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RpcRequest {
    /// Value of `Content-Type`; empty for JSON.
    pub http_content_type: String,
    /// HTTP method; empty for POST.
    pub http_method: String,
    /// Headers with their values.
    pub static_headers: BTreeMap<String, Vec<String>>,
    /// Layout of the timestamp, as Go writes it.
    pub timestamp_format: String,
    /// Header with the timestamp.
    pub timestamp_header: String,
}

/// Header of the signature of a request.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RpcSignature {
    /// Name of the header.
    pub header_name: String,
    /// True to leave `-256` and `-512` out of the name.
    pub append_algo_to_header_disabled: bool,
    /// Headers whose values are signed.
    pub included_payload_headers: Vec<String>,
}

/// Secrets of the signatures.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RpcHmac {
    /// True to leave `sha256=` out of the signature.
    pub prefix_sig_disabled: bool,
    /// Secrets with the key `secret`, by algorithm: `sha256` or `sha512`.
    pub secrets: BTreeMap<String, Vec<SecretRef>>,
}

/// Body of a request in a form of the owner.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RpcExperiment {
    /// JSON around the request.
    pub custom_request_payload: String,
    /// Place of the request in this JSON.
    pub dot_path: String,
}

/// Options of Home Assistant. `connection.host` is the URL of its API, and the password in the
/// Secret is an access token.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HomeAssistantOptions {
    /// Entity of the switch: `switch.nuc1`.
    #[serde(rename = "switchEntityID")]
    pub switch_entity_id: String,
    /// Wait in seconds after a power operation.
    pub power_operation_delay_seconds: u16,
}

/// Options of a smart plug, relay or switch port that `connection.host` names.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlugOptions {
    /// Name of the kind of plug: `shelly`.
    pub preset: String,
    /// Requests of a kind of plug that has no preset.
    pub requests: Option<Value>,
    /// Number or name of the outlet; empty for the first.
    pub outlet: String,
    /// `http` (default) or `https`.
    pub scheme: String,
    /// TCP port; 0 for that of the scheme.
    pub port: u16,
    /// Power in watts below which the machine is off; 0 for 3 W. Only for a plug with a meter.
    pub off_below_watts: u16,
}
