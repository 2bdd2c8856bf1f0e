//! Functions that Tinkerbell adds (`template_funcs.go`).

use std::net::IpAddr;

use crate::function::Type::{Any, Int, Text};
use crate::function::{Answer, Args, Function, exact};
use crate::yaml;

/// Tinkerbell functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    exact("formatPartition", &[Text, Int], format_partition),
    exact("netmaskToPrefixLength", &[Text], prefix_length),
    exact("toYaml", &[Any], |args| {
        let text =
            yaml::write(args.heap, args.any(0)).map_err(|error| format!("toYaml: {error}"))?;
        args.made(text.strip_suffix('\n').unwrap_or(&text))
    }),
    exact("fromYaml", &[Text], |args| {
        yaml::read(args.heap, args.text(0)).map_err(|error| format!("fromYaml: {error}"))
    }),
];

/// Returns the device file of a partition: `/dev/sda1`, `/dev/nvme0n1p1`.
fn format_partition(args: &Args) -> Answer {
    let (device, number) = (args.text(0), args.int(1));
    let infix = match device {
        _ if device.starts_with("/dev/disk/") => "-part",
        _ if device.ends_with(|c: char| c.is_ascii_digit()) => "p",
        _ => "",
    };
    args.made(format!("{device}{infix}{number}"))
}

/// Returns the number of set bits of an IPv4 mask; 0 for a mask with gaps, as upstream.
fn prefix_length(args: &Args) -> Answer {
    let text = args.text(0);
    let address: IpAddr = text.parse().map_err(|_| "invalid netmask format".to_owned())?;
    let IpAddr::V4(mask) = address.to_canonical() else {
        return Err("netmask must be IPv4".to_owned());
    };
    let bits = u32::from(mask);
    let is_whole = bits.leading_ones() + bits.trailing_zeros() >= 32;
    let length = if is_whole { bits.leading_ones() } else { 0 };
    args.made(length.to_string())
}
