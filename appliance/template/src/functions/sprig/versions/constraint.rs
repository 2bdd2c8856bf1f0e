//! Version constraints such as `>= 1.2, < 2 || ^3.1` (`Masterminds/semver` 3.3, constraints.go).
//! The regular expressions are upstream's, so that the same texts are accepted.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::limits::CONSTRAINT_BYTES_MAX;
use crate::version::{Version, order_of_pre};

/// Characters of the class `\s` in Go.
const SPACE: &str = "[\\t\\n\\x0c\\r ]";
const OPERATORS: &str = "=||!=|>|<|>=|=>|<=|=<|~|~>|\\^";
const VERSION: &str = "v?([0-9|x|X|*]+)(\\.[0-9|x|X|*]+)?(\\.[0-9|x|X|*]+)?\
    (-([0-9A-Za-z\\-]+(\\.[0-9A-Za-z\\-]+)*))?(\\+([0-9A-Za-z\\-]+(\\.[0-9A-Za-z\\-]+)*))?";

/// Regular expressions that find and split constraints.
struct Patterns {
    /// Splits a constraint into operator, version, numbers, and the text after `-`.
    one: Regex,
    /// Matches a range such as `1.2 - 3`. Group 1 is the lower version, group 11 the upper.
    range: Regex,
    /// Finds the constraints of a text.
    find: Regex,
    /// Matches a text that contains only constraints.
    valid: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let (s, ops, v) = (SPACE, OPERATORS, VERSION);
    let one = format!("(?:{ops}){s}*(?:{v}){s}*");
    Some(Patterns {
        one: Regex::new(&format!("^{s}*({ops}){s}*({v}){s}*$")).ok()?,
        range: Regex::new(&format!("{s}*({v}){s}+-{s}+({v}){s}*")).ok()?,
        find: Regex::new(&format!("({ops}){s}*({v})")).ok()?,
        valid: Regex::new(&format!("^{s}*{one}(?:(?:{s}+|,{s}*){one})*$")).ok()?,
    })
});

/// Constraint on a version.
struct Constraint {
    operator: Operator,
    version: Version,
    /// True if any number is missing or a wildcard.
    dirty: bool,
    /// True if the minor number is missing or a wildcard.
    minor_dirty: bool,
    /// True if the patch number is missing or a wildcard.
    patch_dirty: bool,
}

#[derive(Clone, Copy)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// Returns true if `version` satisfies all constraints of one of the lists separated by `||`.
///
/// # Errors
/// The text or the version is not valid, or the text is too long.
pub fn fits(text: &str, version: &str) -> Result<bool, String> {
    if text.len() > CONSTRAINT_BYTES_MAX {
        return Err(format!("a constraint of more than {CONSTRAINT_BYTES_MAX} bytes"));
    }
    let patterns = PATTERNS.as_ref().ok_or("constraints are not supported")?;
    let text = without_ranges(patterns, text);
    let lists = text.split("||").map(|list| read(patterns, list));
    let lists = lists.collect::<Result<Vec<_>, _>>()?;
    let version = Version::parse(version)?;
    Ok(lists.iter().any(|list| list.iter().all(|constraint| constraint.holds(&version))))
}

/// Replaces ranges: `1.2 - 3` becomes `>= 1.2, <= 3`.
fn without_ranges(patterns: &Patterns, text: &str) -> String {
    let mut out = text.to_owned();
    for found in patterns.range.captures_iter(text) {
        let (least, most) = (part(&found, 1), part(&found, 11));
        out = out.replacen(part(&found, 0), &format!(">= {least}, <= {most} "), 1);
    }
    out
}

fn read(patterns: &Patterns, list: &str) -> Result<Vec<Constraint>, String> {
    let improper = || format!("improper constraint: {list}");
    if !patterns.valid.is_match(list) {
        return Err(improper());
    }
    let found = patterns.find.find_iter(list).map(|found| {
        let captures = patterns.one.captures(found.as_str()).ok_or_else(improper)?;
        Constraint::of(&captures)
    });
    found.collect()
}

fn part<'t>(captures: &Captures<'t>, at: usize) -> &'t str {
    captures.get(at).map_or("", |found| found.as_str())
}

fn is_open(number: &str) -> bool {
    matches!(number.strip_prefix('.').unwrap_or(number), "" | "x" | "X" | "*")
}

impl Constraint {
    fn of(captures: &Captures<'_>) -> Result<Self, String> {
        let [major, minor, patch, pre] = [3, 4, 5, 6].map(|at| part(captures, at));
        let (minor_dirty, patch_dirty, text) = if is_open(major) {
            (false, false, format!("0.0.0{pre}"))
        } else if is_open(minor) {
            (true, false, format!("{major}.0.0{pre}"))
        } else if is_open(patch) {
            (false, true, format!("{major}{minor}.0{pre}"))
        } else {
            (false, false, part(captures, 2).to_owned())
        };
        let dirty = minor_dirty || patch_dirty || is_open(major);
        let version = Version::parse(&text).map_err(|_| "constraint Parser Error".to_owned())?;
        let operator = match part(captures, 1) {
            "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            ">=" | "=>" => Operator::GreaterOrEqual,
            "<=" | "=<" => Operator::LessOrEqual,
            "~" | "~>" => Operator::Tilde,
            "^" => Operator::Caret,
            _ => Operator::Equal,
        };
        Ok(Self { operator, version, dirty, minor_dirty, patch_dirty })
    }

    fn holds(&self, version: &Version) -> bool {
        // A prerelease matches only if the constraint itself names a prerelease.
        let is_hidden = !version.pre.is_empty() && self.version.pre.is_empty();
        let order = version.order(&self.version);
        match self.operator {
            Operator::NotEqual if self.dirty => !is_hidden && self.differs(version),
            Operator::NotEqual => order.is_ne(),
            _ if is_hidden => false,
            Operator::Greater if self.dirty => self.is_beyond(version),
            Operator::Greater => order.is_gt(),
            Operator::Less => order.is_lt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::LessOrEqual if self.dirty => self.reaches(version),
            Operator::LessOrEqual => order.is_le(),
            Operator::Equal if !self.dirty => order.is_eq(),
            Operator::Equal | Operator::Tilde => order.is_ge() && self.is_near(version),
            Operator::Caret => order.is_ge() && self.is_compatible(version),
        }
    }

    /// Returns true if `version` satisfies `!=` with a wildcard.
    fn differs(&self, version: &Version) -> bool {
        let own = &self.version;
        if own.major != version.major {
            return true;
        }
        if self.minor_dirty {
            return false;
        }
        if own.minor != version.minor {
            return true;
        }
        match (own.patch != version.patch, self.patch_dirty) {
            (true, false) => true,
            (_, true) => order_of_pre(&version.pre, &own.pre).is_ne(),
            (false, false) => version.order(own).is_ne(),
        }
    }

    /// Returns true if `version` satisfies `>` with a wildcard: 11.1 does not satisfy `>11`.
    fn is_beyond(&self, version: &Version) -> bool {
        let own = &self.version;
        match version.major.cmp(&own.major) {
            std::cmp::Ordering::Equal if self.minor_dirty => false,
            std::cmp::Ordering::Equal if self.patch_dirty => version.minor > own.minor,
            std::cmp::Ordering::Equal => version.order(own).is_gt(),
            order => order.is_gt(),
        }
    }

    /// Returns true if `version` satisfies `<=` with a wildcard: 11.9 satisfies `<=11`.
    fn reaches(&self, version: &Version) -> bool {
        let own = &self.version;
        version.major < own.major
            || (version.major == own.major && (version.minor <= own.minor || self.minor_dirty))
    }

    /// Returns true if `version` satisfies `~`. The caller checked that it is not lower.
    fn is_near(&self, version: &Version) -> bool {
        let own = &self.version;
        let is_zero = (own.major, own.minor, own.patch) == (0, 0, 0);
        if is_zero && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        version.major == own.major && (version.minor == own.minor || self.minor_dirty)
    }

    /// Returns true if `version`, which is not lower, satisfies `^`: equal first nonzero number.
    fn is_compatible(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.major != own.major {
            return false;
        }
        if own.major > 0 || self.minor_dirty {
            return true;
        }
        if own.minor > 0 || self.patch_dirty {
            return version.minor == own.minor;
        }
        version.minor == 0 && version.patch == own.patch
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_version_is_held_against_constraints() {
        for (constraint, version, want) in [
            (">= 1.2, < 2", "1.9.9", true),
            (">= 1.2 < 2", "2.0.0", false),
            ("1.2 - 1.4.5", "1.4.5", true),
            ("1.2 - 1.4.5", "1.4.6", false),
            ("^0.2.3", "0.2.9", true),
            ("^0.2.3", "0.3.0", false),
            ("^0.0.3", "0.0.4", false),
            ("~1.2.3 || 3.x", "3.9.0", true),
            ("~1", "1.9.0", true),
            ("1.2.x", "1.2.7", true),
            ("!=1.2.x", "1.2.7", false),
            (">11", "11.1.0", false),
            ("<=11", "11.9.0", true),
            ("*", "1.0.0-rc.1", false),
            (">=1.0.0-0", "1.0.0-rc.1", true),
            ("=v1", "1.0.3", true),
        ] {
            assert_eq!(fits(constraint, version), Ok(want), "{constraint} {version}");
        }
        for constraint in ["", "a", ">=", "1.2.3.4", "1x", "> 1 || "] {
            assert!(fits(constraint, "1.0.0").is_err(), "{constraint:?}");
        }
        assert!(fits(&"1 ".repeat(4000), "1").unwrap_err().contains("4096 bytes"));
    }
}
