//! Summary of a choice, as the message of a condition. The summary contains no score and no time,
//! so that an unchanged choice has an unchanged message.

use api::meta::ObjectKey;

use super::{RequestError, Verdict};

/// Maximum length of a summary in characters. Kubernetes allows 32,768.
pub const SUMMARY_CHARS_MAX: usize = 1024;
/// Maximum number of Hardware that a summary lists by name.
pub const SUMMARY_HOSTS_MAX: usize = 4;
/// Maximum number of different values in the group of one reason.
const VALUES_MAX: usize = 3;

/// Returns the summary for a Hardware that the machine owns already.
pub fn owned(host: &ObjectKey) -> String {
    limited(format!("{host} belongs to this machine"))
}

/// Returns the summary for a chosen Hardware.
pub fn taken(host: &ObjectKey, verdicts: &[Verdict]) -> String {
    let usable = verdicts.iter().filter(|verdict| verdict.result.is_ok()).count();
    let number = verdicts.len();
    limited(format!("{host} was chosen; {usable} of {number} Hardware can be used"))
}

/// Returns the summary for an invalid request.
pub fn invalid(error: &RequestError) -> String {
    limited(error.to_string())
}

/// Returns the summary if no Hardware can be used: the number for each reason, largest first, then
/// some Hardware by name. Hardware in use is listed last, because its owner cannot correct it.
pub fn refused(verdicts: &[Verdict]) -> String {
    match verdicts {
        [] => return "there is no Hardware".to_owned(),
        [verdict] => return limited(verdict.sentence()),
        _ => {}
    }
    let mut groups: Vec<Vec<&Verdict>> = Vec::new();
    for verdict in verdicts {
        match groups.iter_mut().find(|group| group[0].reason() == verdict.reason()) {
            Some(group) => group.push(verdict),
            None => groups.push(vec![verdict]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let counted: Vec<String> = groups.iter().map(|group| counted(group)).collect();
    let mut listed: Vec<&Verdict> = groups.into_iter().flatten().collect();
    listed.sort_by_key(|verdict| verdict.reason() == "InUse");
    let hosts: Vec<String> =
        listed.iter().take(SUMMARY_HOSTS_MAX).map(|verdict| verdict.sentence()).collect();
    let more = match listed.len().saturating_sub(SUMMARY_HOSTS_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    limited(format!(
        "0 of {} Hardware can be used: {}. {}{more}",
        verdicts.len(),
        counted.join(", "),
        hosts.join("; "),
    ))
}

/// Returns the number of Hardware with one reason, such as `2 have another manufacturer (Acme)`.
fn counted(group: &[&Verdict]) -> String {
    let count = group.len();
    let refusals = group.iter().filter_map(|verdict| verdict.result.as_ref().err());
    let (mut predicate, mut values) = ("", Vec::new());
    for refusal in refusals {
        let (text, value) = refusal.group(count);
        predicate = text;
        let value = status::plain(value);
        if !value.is_empty() && !values.contains(&value) {
            values.push(value);
        }
    }
    if values.len() > VALUES_MAX {
        values.truncate(VALUES_MAX);
        values.push("…".to_owned());
    }
    if values.is_empty() {
        return format!("{count} {predicate}");
    }
    format!("{count} {predicate} ({})", values.join(", "))
}

/// Returns the text, cut to [`SUMMARY_CHARS_MAX`] characters.
fn limited(text: String) -> String {
    if text.chars().count() <= SUMMARY_CHARS_MAX {
        return text;
    }
    text.chars().take(SUMMARY_CHARS_MAX - 1).chain(['…']).collect()
}
