//! Access rule: decision if a rule allows an action, and comparison with other rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Action, Target};

/// Maximum number of single permissions (one verb, one resource) of a written role that are
/// compared with its author's permissions. A larger role is refused.
pub const MAX_PATTERNS: usize = 10_000;

/// Maximum number of words that one comparison of wanted with held permissions processes, because
/// all other writes wait for the comparison.
pub const MAX_COMPARED: usize = 20_000_000;

/// Rule of a role. A list matches if any of its entries matches; `*` matches every value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// Verbs, such as `get`; `*` for all.
    #[serde(deserialize_with = "nullable")]
    pub verbs: Vec<String>,
    /// API groups; the empty string is the core group.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub api_groups: Vec<String>,
    /// Resources: `PLURAL`, `PLURAL/SUBRESOURCE`, `*/SUBRESOURCE` or `*`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub resources: Vec<String>,
    /// Names of the permitted objects; an empty list permits all objects.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub resource_names: Vec<String>,
    /// URL paths without API objects; a `*` at the end matches any suffix.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "nullable")]
    pub non_resource_urls: Vec<String>,
}

/// Parses a list; `null`, which some clients write, is an empty list.
fn nullable<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Returns rules that allow every action. To write an aggregated role, whose permissions are not
/// known beforehand, a user needs these rules.
pub fn full_authority() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    let none = PolicyRule::default;
    [
        PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..none() },
        PolicyRule { verbs: all(), non_resource_urls: all(), ..none() },
    ]
}

fn has(set: &[String], one: &str) -> bool {
    set.iter().any(|element| element == one)
}

/// Returns true if `set` contains `one` or `*`.
fn takes(set: &[String], one: &str) -> bool {
    has(set, "*") || has(set, one)
}

/// Returns true if `owner` equals `path`, or is a prefix of `path` followed by `*`.
fn path_matches(owner: &str, path: &str) -> bool {
    owner == path || (owner.ends_with('*') && path.starts_with(owner.trim_end_matches('*')))
}

impl PolicyRule {
    /// Returns true if this rule allows `action`.
    pub fn allows(&self, action: &Action) -> bool {
        if !takes(&self.verbs, &action.verb) {
            return false;
        }
        match &action.target {
            Target::Path(path) => {
                self.non_resource_urls.iter().any(|url| url == "*" || path_matches(url, path))
            }
            Target::Resource { group, resource, subresource, name, .. } => {
                takes(&self.api_groups, group)
                    && self.takes_resource(resource, subresource)
                    && (self.resource_names.is_empty() || has(&self.resource_names, name))
            }
        }
    }

    fn takes_resource(&self, resource: &str, subresource: &str) -> bool {
        if subresource.is_empty() {
            return takes(&self.resources, resource);
        }
        self.resources.iter().any(|one| match one.split_once('/') {
            None => one == "*",
            Some((of, part)) => part == subresource && (of == "*" || of == resource),
        })
    }

    /// Returns the number of rules that [`Self::breakdown`] returns.
    fn size(&self) -> usize {
        let names = self.resource_names.len().max(1);
        let objects =
            self.api_groups.len().saturating_mul(self.resources.len()).saturating_mul(names);
        objects.saturating_add(self.non_resource_urls.len()).saturating_mul(self.verbs.len())
    }

    /// Returns the number of list entries in this rule.
    fn words(&self) -> usize {
        let lists = [
            &self.verbs,
            &self.api_groups,
            &self.resources,
            &self.resource_names,
            &self.non_resource_urls,
        ];
        lists.into_iter().map(Vec::len).sum()
    }

    /// Splits the rule into single permissions: rules whose lists have at most one entry.
    fn breakdown(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let mut single = Vec::new();
        let names: Vec<Vec<String>> = match self.resource_names.as_slice() {
            [] => vec![Vec::new()],
            names => names.iter().map(one).collect(),
        };
        for verb in &self.verbs {
            for group in &self.api_groups {
                for resource in &self.resources {
                    for name in &names {
                        single.push(Self {
                            verbs: one(verb),
                            api_groups: one(group),
                            resources: one(resource),
                            resource_names: name.clone(),
                            non_resource_urls: Vec::new(),
                        });
                    }
                }
            }
            for url in &self.non_resource_urls {
                single.push(Self {
                    verbs: one(verb),
                    non_resource_urls: one(url),
                    ..Self::default()
                });
            }
        }
        single
    }

    /// Returns true if this rule includes the permission `single`, a rule from [`Self::breakdown`].
    fn covers(&self, single: &Self) -> bool {
        let all = |set: &[String], wanted: &[String]| wanted.iter().all(|one| takes(set, one));
        if !(all(&self.verbs, &single.verbs) && all(&self.api_groups, &single.api_groups)) {
            return false;
        }
        let resources = single.resources.iter().all(|one| {
            takes(&self.resources, one)
                || one.split_once('/').is_some_and(|(_, part)| {
                    let any = |own: &String| own.strip_prefix("*/") == Some(part);
                    self.resources.iter().any(any)
                })
        });
        let paths = single
            .non_resource_urls
            .iter()
            .all(|url| self.non_resource_urls.iter().any(|owner| path_matches(owner, url)));
        let names = self.resource_names.is_empty()
            || (!single.resource_names.is_empty()
                && single.resource_names.iter().all(|one| has(&self.resource_names, one)));
        resources && paths && names
    }

    /// Returns the rule in Go's compact form: `{APIGroups:["a"], Resources:["b"], Verbs:["get"]}`.
    fn compact(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts.into_iter().filter(|(_, list)| !list.is_empty());
        let parts: Vec<String> =
            parts.map(|(title, list)| format!("{title}:{}", quoted(list))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// Formats a list of strings as Go does: `["a" "b"]`.
pub(super) fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Checks that the rules `owned` include all permissions in `wanted`.
///
/// # Errors
/// Returns the missing permissions, one line for each group, resource and name with all verbs.
pub fn covers(owned: &[PolicyRule], wanted: &[PolicyRule]) -> Result<(), String> {
    let size = wanted.iter().fold(0_usize, |sum, rule| sum.saturating_add(rule.size()));
    if size > MAX_PATTERNS {
        return Err(format!("{size} permissions in one role, more than {MAX_PATTERNS}"));
    }
    let words: usize = owned.iter().map(PolicyRule::words).sum();
    if words.saturating_mul(size) > MAX_COMPARED {
        return Err(format!(
            "{size} permissions in one role are too many to compare with the {words} words of the \
             rules held; write smaller roles"
        ));
    }
    // Missing permissions by group, resource and name.
    let mut compact: BTreeMap<[Vec<String>; 3], PolicyRule> = BTreeMap::new();
    let mut lines = Vec::new();
    for single in wanted.iter().flat_map(PolicyRule::breakdown) {
        if owned.iter().any(|rule| rule.covers(&single)) {
            continue;
        }
        if !single.non_resource_urls.is_empty() {
            lines.push(single.compact());
            continue;
        }
        let key =
            [single.api_groups.clone(), single.resources.clone(), single.resource_names.clone()];
        match compact.get_mut(&key) {
            Some(known) => known.verbs.extend(single.verbs),
            None => {
                compact.insert(key, single);
            }
        }
    }
    lines.extend(compact.values().map(PolicyRule::compact));
    lines.sort();
    lines.dedup();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

#[cfg(test)]
mod tests;
