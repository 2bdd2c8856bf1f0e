//! `image2disk`: IMG_URL, DEST_DISK, COMPRESSED and, beyond upstream's, IMG_SHA256.

use std::sync::Arc;
use std::time::Instant;

use super::Limits;
use super::environment::Environment;
use crate::stream::{self, Image};
use crate::{Error, Meter};

pub(super) fn parse(environment: &Environment<'_>, limits: Limits) -> Result<Image, Error> {
    let sha256 = environment.optional("IMG_SHA256").map(|text| {
        parse_sha256(text).ok_or_else(|| {
            environment
                .bad("IMG_SHA256", "it is not 64 hexadecimal digits, with or without sha256:")
        })
    });
    Ok(Image {
        url: environment.required("IMG_URL")?.parse()?,
        sha256: sha256.transpose()?,
        compressed: environment.flag("COMPRESSED")?,
        disk: environment.device("DEST_DISK")?,
        accept: limits.accept,
        patience: limits.patience,
    })
}

/// 64 hexadecimal digits, with or without `sha256:` before them.
pub fn parse_sha256(text: &str) -> Option<[u8; 32]> {
    let text = text.trim();
    stdx::unhex(text.strip_prefix("sha256:").unwrap_or(text))?.try_into().ok()
}

pub(super) async fn run(image: &Image, meter: &Arc<Meter>) -> Result<String, Error> {
    let begun = Instant::now();
    let summary = stream::write_image(image, meter).await?;
    let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let verified = if image.sha256.is_some() { ", sha256 verified" } else { "" };
    Ok(format!(
        "wrote {} from {} in {} ({}){verified}",
        stdx::bytes(summary.image),
        stdx::bytes(summary.fetched),
        stdx::seconds(millis),
        stdx::rate(summary.image, millis),
    ))
}
