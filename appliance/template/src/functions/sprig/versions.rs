//! Semantic versions, and the methods that a template can call on a version.

mod constraint;

use crate::function::Type::{Text, Version as Pointer};
use crate::function::{Answer, Args, Function, exact};
use crate::limits::STEP_BYTES;
use crate::value::Value;
use crate::version::{Version, check_metadata, check_pre};

/// Cost of parsing a constraint, in steps, in addition to one step per byte.
const COMPARE_STEPS: usize = 50;

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    exact("semver", &[Text], |args| args.heap.version(Version::parse(args.text(0))?, true)),
    exact("semverCompare", &[Text, Text], |args| {
        let (constraint, version) = (args.text(0), args.text(1));
        args.heap.step(COMPARE_STEPS + constraint.len() + version.len() / STEP_BYTES)?;
        constraint::fits(constraint, version).map(Value::Bool)
    }),
];

/// Methods of every version; the first argument is the version.
pub static METHODS: &[Function] = &[
    exact("String", &[Pointer], |args| args.made(own(args)?.to_string())),
    exact("Value", &[Pointer], |args| args.made(own(args)?.to_string())),
    exact("Major", &[Pointer], |args| Ok(Value::Word(own(args)?.major))),
    exact("Minor", &[Pointer], |args| Ok(Value::Word(own(args)?.minor))),
    exact("Patch", &[Pointer], |args| Ok(Value::Word(own(args)?.patch))),
    exact("Prerelease", &[Pointer], |args| args.made(own(args)?.pre.as_str())),
    exact("Metadata", &[Pointer], |args| args.made(own(args)?.metadata.as_str())),
    exact("IncPatch", &[Pointer], |args| {
        raised(args, |next, before| {
            // The next version after a prerelease is its release, so the patch number stays.
            let step = u64::from(before.pre.is_empty());
            next.patch = before.patch.wrapping_add(step);
        })
    }),
    exact("IncMinor", &[Pointer], |args| {
        raised(args, |next, before| {
            (next.minor, next.patch) = (before.minor.wrapping_add(1), 0);
        })
    }),
    exact("IncMajor", &[Pointer], |args| {
        raised(args, |next, before| {
            (next.major, next.minor, next.patch) = (before.major.wrapping_add(1), 0, 0);
        })
    }),
    exact("SetPrerelease", &[Pointer, Text], |args| {
        check_pre(args.text(1))?;
        changed(args, |next| next.pre = args.text(1).to_owned())
    }),
    exact("SetMetadata", &[Pointer, Text], |args| {
        check_metadata(args.text(1))?;
        changed(args, |next| next.metadata = args.text(1).to_owned())
    }),
];

/// Methods of `*semver.Version`, the result of `semver`. Versions from methods lack them.
pub static POINTER_METHODS: &[Function] = &[
    exact("Original", &[Pointer], |args| args.made(own(args)?.original.as_str())),
    exact("Compare", &[Pointer, Pointer], |args| Ok(Value::Int(order(args)? as i64))),
    exact("LessThan", &[Pointer, Pointer], |args| Ok(Value::Bool(order(args)?.is_lt()))),
    exact("LessThanEqual", &[Pointer, Pointer], |args| Ok(Value::Bool(order(args)?.is_le()))),
    exact("GreaterThan", &[Pointer, Pointer], |args| Ok(Value::Bool(order(args)?.is_gt()))),
    exact("GreaterThanEqual", &[Pointer, Pointer], |args| Ok(Value::Bool(order(args)?.is_ge()))),
    exact("Equal", &[Pointer, Pointer], |args| match args.version(1) {
        Some(other) => Ok(Value::Bool(own(args)?.order(other).is_eq())),
        None => Ok(Value::Bool(false)),
    }),
];

fn own<'a>(args: &Args<'a>) -> Result<&'a Version, String> {
    args.version(0).ok_or_else(|| "nil pointer".to_owned())
}

fn order(args: &Args) -> Result<std::cmp::Ordering, String> {
    let other = args.version(1).ok_or("nil pointer")?;
    Ok(own(args)?.order(other))
}

fn changed(args: &Args, change: impl FnOnce(&mut Version)) -> Answer {
    args.heap.version(own(args)?.changed(change), false)
}

/// Returns the version with a number increased by `raise`, without pre-release and metadata.
fn raised(args: &Args, raise: fn(&mut Version, &Version)) -> Answer {
    let before = own(args)?;
    changed(args, |next| {
        next.pre.clear();
        next.metadata.clear();
        raise(next, before);
    })
}
