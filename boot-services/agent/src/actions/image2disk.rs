//! `image2disk` and `qemuimg2disk`, which are equivalent here: IMG_URL, DEST_DISK, COMPRESSED,
//! RETRY_DURATION_MINUTES. Beyond upstream: VERIFY_READ_BACK, and a checksum of the image as served
//! (IMG_SHA256, IMG_SHA512, IMG_MD5, IMG_CHECKSUM as `algorithm:hex`, or IMG_CHECKSUM_URL, the URL
//! of a file of checksums). The first bytes of an image determine its format. Settings of
//! upstream's programs for output and conversion (PROGRESS_INTERVAL_SECONDS, TEXT_LOGGING,
//! RETRY_ENABLED, FORMAT) have no effect.

use std::sync::Arc;
use std::time::{Duration, Instant};

use imaging::Meter;
use imaging::stream::{self, Algorithm, Checksum, Image, Proof};

use super::Limits;
use super::environment::Environment;
use crate::Error;

/// Settings that contain a checksum, and their algorithms.
const SUMS: [(&str, Algorithm); 3] = [
    ("IMG_SHA512", Algorithm::Sha512),
    ("IMG_SHA256", Algorithm::Sha256),
    ("IMG_MD5", Algorithm::Md5),
];

pub(super) fn parse(environment: &Environment<'_>, limits: Limits) -> Result<Image, Error> {
    let mut timeouts = limits.timeouts;
    if let Some(minutes) = environment.minutes("RETRY_DURATION_MINUTES")? {
        timeouts.silence = Duration::from_secs(minutes * 60);
    }
    if environment.optional("EXTRA_ARGS").is_some() {
        let reason = "arguments are not supported: the agent does not run qemu-img";
        return Err(environment.bad("EXTRA_ARGS", reason));
    }
    Ok(Image {
        url: environment.required("IMG_URL")?.parse()?,
        proof: proof(environment)?,
        compressed: environment.flag("COMPRESSED")?,
        read_back: environment.flag("VERIFY_READ_BACK")?,
        disk: environment.device("DEST_DISK")?,
        accept: limits.accept,
        timeouts,
    })
}

fn proof(environment: &Environment<'_>) -> Result<Option<Proof>, Error> {
    let mut proofs = Vec::new();
    for (name, algorithm) in SUMS {
        if let Some(text) = environment.optional(name) {
            let (sum, digits) = (Checksum::parse(algorithm, text), algorithm.digits());
            let bad = || {
                let spelled = algorithm.name();
                let reason = "hexadecimal digits, with or without";
                environment.bad(name, format!("it is not {digits} {reason} {spelled}:"))
            };
            proofs.push((name, Proof::Sum(sum.ok_or_else(bad)?)));
        }
    }
    if let Some(text) = environment.optional("IMG_CHECKSUM") {
        proofs.push(("IMG_CHECKSUM", Proof::Sum(environment.checksum("IMG_CHECKSUM", text)?)));
    }
    if let Some(text) = environment.optional("IMG_CHECKSUM_URL") {
        proofs.push(("IMG_CHECKSUM_URL", Proof::Sums(text.parse()?)));
    }
    if let [_, (second, _), ..] = proofs.as_slice() {
        return Err(environment.bad(second, "only one checksum can be set, and another is set too"));
    }
    Ok(proofs.pop().map(|(_, proof)| proof))
}

/// Parses 64 hexadecimal digits, with or without the prefix `sha256:`.
pub fn parse_sha256(text: &str) -> Option<Checksum> {
    Checksum::parse(Algorithm::Sha256, text)
}

pub(super) async fn run(image: &Image, meter: &Arc<Meter>) -> Result<String, imaging::Error> {
    let begun = Instant::now();
    let summary = stream::write_image(image, meter).await?;
    let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let verified = summary.verified.map(|sum| format!(", {} verified", sum.algorithm().name()));
    let read_back = if image.read_back { ", read back and compared" } else { "" };
    Ok(format!(
        "wrote {} from {} in {} ({}){}{read_back}",
        stdx::bytes(summary.image),
        stdx::bytes(summary.fetched),
        stdx::seconds(millis),
        stdx::rate(summary.image, millis),
        verified.unwrap_or_default(),
    ))
}
