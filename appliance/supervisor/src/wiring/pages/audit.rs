//! Records of the audit log for their page.

use std::io;

use audit_log::AuditLog;
use rbac::AuditRecord;
use status::log::AuditLine;

/// Returns the latest records that contain `filter` in user, request or address, newest first, at
/// most `most`. Blocks: it reads from disk.
///
/// # Errors
/// The log cannot be read.
pub fn latest(log: &AuditLog, filter: &str, most: usize) -> io::Result<Vec<AuditLine>> {
    let filter = filter.to_lowercase();
    let contains = |text: &str| text.to_lowercase().contains(&filter);
    let is_wanted = |it: &AuditRecord| {
        [&it.user, &it.impersonated, &it.from].into_iter().any(|text| contains(text))
            || contains(&it.request())
    };
    Ok(log.latest(is_wanted, most)?.iter().map(line).collect())
}

fn line(record: &AuditRecord) -> AuditLine {
    let user = match record.impersonated.as_str() {
        "" => record.user.clone(),
        other => format!("{} as {other}", record.user),
    };
    AuditLine {
        at: record.at.parse().unwrap_or_default(),
        user,
        request: record.request(),
        from: record.from.clone(),
        code: record.code,
        failed: record.code >= 400,
    }
}
