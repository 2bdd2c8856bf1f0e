//! Cost of a function call, computed before the call runs.

use super::texts;
use super::val::Val;
use super::weight::weight;
use super::{CHARACTERS_PER_UNIT, Evaluator, LIST_COST, Stop};

/// Number of characters of a regular expression that count as one state.
const PATTERN_FACTOR: u64 = 4;

/// Number of characters whose counting costs one unit.
const COUNTED_PER_UNIT: u64 = 1_000;

/// Cost of each part of a split text, because each part is a separate value.
const PART_COST: u64 = 4;

fn size(value: Option<&Val<'_>>) -> u64 {
    value.and_then(Val::size).unwrap_or_default() as u64
}

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn charge(
        &mut self,
        name: &str,
        target: Option<&Val<'a>>,
        args: &[Val<'a>],
    ) -> Result<(), Stop> {
        let first = target.or(args.first());
        match (name, first) {
            ("size", Some(Val::Text(text))) => {
                return self.spend(1 + text.len() as u64 / COUNTED_PER_UNIT);
            }
            ("size" | "type" | "dyn" | "first" | "last", _) => return self.spend(1),
            _ => {}
        }
        let all = target.into_iter().chain(args).map(weight).fold(0, u64::saturating_add);
        let units = all.div_ceil(CHARACTERS_PER_UNIT);
        self.spend(1 + units)?;
        let count = size(first);
        let more = match name {
            "matches" | "find" | "findAll" | "validate" => {
                let pattern = args.first().map_or(1, weight).div_ceil(PATTERN_FACTOR).max(1);
                (1 + units).saturating_mul(pattern)
            }
            // Each separator may be inserted between every two items.
            "join" => units,
            "format" => units.saturating_add(match first {
                Some(Val::Text(format)) => texts::formatted(format)?,
                _ => 0,
            }),
            "split" => match (first, args) {
                (Some(Val::Text(text)), [Val::Text(separator), ..]) => {
                    texts::parts(text, separator).saturating_mul(PART_COST)
                }
                _ => 0,
            },
            // The result of a replacement can be much longer than its input.
            "replace" => match (first, args) {
                (Some(Val::Text(text)), [_, Val::Text(with), ..]) => {
                    let most = (text.len() as u64 + 1).saturating_mul(with.len() as u64 + 1);
                    units.saturating_add(most.div_ceil(CHARACTERS_PER_UNIT * CHARACTERS_PER_UNIT))
                }
                _ => 0,
            },
            "lists.range" => match args {
                [Val::Int(end)] => LIST_COST + u64::try_from(*end).unwrap_or_default(),
                _ => 0,
            },
            "slice" | "reverse" => LIST_COST + count,
            "flatten" => {
                let levels = match args {
                    [Val::Int(levels)] => u64::try_from(*levels).unwrap_or_default(),
                    _ => 1,
                };
                all.saturating_add(LIST_COST).saturating_add(count.saturating_mul(levels))
            }
            "distinct" | "sort" => {
                let pairs = count.saturating_mul(count).saturating_mul(2);
                // Each item is compared several times, independent of its length.
                let times = u64::from(count.max(1).ilog2());
                pairs.saturating_add(LIST_COST).saturating_add(units.saturating_mul(times))
            }
            "sets.contains" | "sets.intersects" => count.saturating_mul(size(args.get(1))),
            "sets.equivalent" => count.saturating_mul(size(args.get(1))).saturating_mul(2),
            _ => 0,
        };
        self.spend(more)
    }
}
