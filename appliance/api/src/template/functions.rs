//! The functions templates may call: Go's builtins, the common hermetic ones of Sprig, and
//! upstream's own (tink `internal/workflow/template_funcs.go`).

use base64::Engine as _;
use serde_json::{Map, Value, json};
use sha2::Digest as _;

use super::eval::{kind, print, truth};
use super::printf;
use super::weight::may_make;

type Answer = Result<Value, String>;

/// The longest list `until` makes.
const UNTIL_MAX: i64 = 10_000;
/// The longest text a pattern is held against, in bytes: how long that takes grows with both.
const SEARCHED_BYTES_MAX: usize = 64 << 10;
/// The largest pattern, compiled, in bytes.
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// What a pattern costs, in steps: fifty of them are what one rendering can pay.
const PATTERN_STEPS: usize = 4000;

/// What calling a function costs besides the bytes it handles, in steps.
pub fn cost(name: &str) -> usize {
    if name.starts_with("regex") { PATTERN_STEPS } else { 0 }
}

/// Call a function by name.
///
/// # Errors
/// Go's or Sprig's words: an unknown function, a wrong number or kind of arguments.
pub fn call(name: &str, arguments: Vec<Value>) -> Answer {
    let mut groups = [logic, text, number, collection, encoding, tinkerbell].into_iter();
    groups
        .find_map(|group| group(name, &arguments))
        .unwrap_or_else(|| Err(format!("function {name:?} not defined")))
}

fn wrong(name: &str, arguments: &[Value]) -> Answer {
    let given: Vec<&str> = arguments.iter().map(kind).collect();
    Err(format!("{name}: cannot be called with ({})", given.join(", ")))
}

fn logic(name: &str, arguments: &[Value]) -> Option<Answer> {
    let pair = |test: fn(std::cmp::Ordering) -> bool| match arguments {
        [a, b] => compare(a, b).map_or_else(|| wrong(name, arguments), |it| Ok(test(it).into())),
        _ => wrong(name, arguments),
    };
    Some(match name {
        "and" | "or" => match arguments.last() {
            Some(last) => Ok(last.clone()),
            None => wrong(name, arguments),
        },
        "not" => match arguments {
            [value] => Ok((!truth(value)).into()),
            _ => wrong(name, arguments),
        },
        "eq" => match arguments {
            [first, rest @ ..] if !rest.is_empty() => {
                Ok(rest.iter().any(|other| same(first, other)).into())
            }
            _ => wrong(name, arguments),
        },
        "ne" => match arguments {
            [a, b] => Ok((!same(a, b)).into()),
            _ => wrong(name, arguments),
        },
        "lt" => pair(std::cmp::Ordering::is_lt),
        "le" => pair(std::cmp::Ordering::is_le),
        "gt" => pair(std::cmp::Ordering::is_gt),
        "ge" => pair(std::cmp::Ordering::is_ge),
        "default" => match arguments {
            [fallback] => Ok(fallback.clone()),
            [fallback, given] => Ok(if truth(given) { given } else { fallback }.clone()),
            _ => wrong(name, arguments),
        },
        "empty" => Ok((!arguments.first().is_some_and(truth)).into()),
        "coalesce" => Ok(arguments.iter().find(|it| truth(it)).cloned().unwrap_or(Value::Null)),
        "ternary" => match arguments {
            [yes, no, Value::Bool(test)] => Ok(if *test { yes } else { no }.clone()),
            _ => wrong(name, arguments),
        },
        _ => return None,
    })
}

fn same(a: &Value, b: &Value) -> bool {
    compare(a, b).map_or(a == b, std::cmp::Ordering::is_eq)
}

fn compare(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        _ => None,
    }
}

fn text(name: &str, arguments: &[Value]) -> Option<Answer> {
    let words: Vec<String> = arguments.iter().map(print).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match (name, words.as_slice()) {
        ("print", _) => words.concat().into(),
        ("println", _) => format!("{}\n", words.join(" ")).into(),
        ("printf", [format, ..]) => return Some(printf::printf(format, &arguments[1..])),
        ("toString", [it]) => (*it).into(),
        ("quote", _) => quoted(arguments, '"').into(),
        ("squote", _) => quoted(arguments, '\'').into(),
        ("cat", _) => words.join(" ").into(),
        ("trim", [it]) => it.trim().into(),
        ("nospace", [it]) => it.split_whitespace().collect::<String>().into(),
        ("upper", [it]) => it.to_uppercase().into(),
        ("lower", [it]) => it.to_lowercase().into(),
        ("replace", [old, new, it]) => return Some(replace(old, new, it)),
        ("trimSuffix", [end, it]) => it.strip_suffix(end).unwrap_or(it).into(),
        ("trimPrefix", [start, it]) => it.strip_prefix(start).unwrap_or(it).into(),
        ("contains", [part, it]) => it.contains(part).into(),
        ("hasPrefix", [start, it]) => it.starts_with(start).into(),
        ("hasSuffix", [end, it]) => it.ends_with(end).into(),
        ("splitList", [mark, it]) => it.split(mark).collect::<Vec<_>>().into(),
        ("indent", [count, it]) => return Some(indent(count, it)),
        ("nindent", [count, it]) => {
            return Some(indent(count, it).map(|text| format!("\n{}", print(&text)).into()));
        }
        ("regexMatch", [pattern, it]) => {
            return Some(regex(pattern, it).map(|pattern| pattern.is_match(it).into()));
        }
        ("regexReplaceAll", [pattern, it, with]) => {
            return Some(regex(pattern, it).and_then(|pattern| replace_all(&pattern, it, with)));
        }
        (
            "printf" | "toString" | "trim" | "nospace" | "upper" | "lower" | "replace"
            | "trimSuffix" | "trimPrefix" | "contains" | "hasPrefix" | "hasSuffix" | "splitList"
            | "indent" | "nindent" | "regexMatch" | "regexReplaceAll",
            _,
        ) => return Some(wrong(name, arguments)),
        _ => return None,
    };
    Some(Ok(result))
}

fn quoted(arguments: &[Value], mark: char) -> String {
    let texts: Vec<String> = arguments
        .iter()
        .filter(|it| !it.is_null())
        .map(|it| match mark {
            '"' => Value::String(print(it)).to_string(),
            mark => format!("{mark}{}{mark}", print(it)),
        })
        .collect();
    texts.join(" ")
}

fn indent(count: &str, text: &str) -> Answer {
    let count: usize = count.parse().map_err(|_| format!("indent: bad width {count:?}"))?;
    let pad = " ".repeat(count.min(200));
    may_make(text.len() + pad.len() * (text.matches('\n').count() + 1))?;
    Ok(format!("{pad}{}", text.replace('\n', &format!("\n{pad}"))).into())
}

fn replace(old: &str, new: &str, text: &str) -> Answer {
    may_make(text.len() + new.len() * text.matches(old).count())?;
    Ok(text.replace(old, new).into())
}

fn replace_all(pattern: &regex::Regex, text: &str, with: &str) -> Answer {
    let (mut made, mut end) = (String::new(), 0);
    for found in pattern.captures_iter(text) {
        let whole = found.get_match();
        made.push_str(&text[end..whole.start()]);
        // At worst every `$1` is the whole match.
        may_make(made.len() + with.len() + with.matches('$').count() * whole.len())?;
        found.expand(with, &mut made);
        end = whole.end();
    }
    made.push_str(&text[end..]);
    Ok(made.into())
}

fn regex(pattern: &str, text: &str) -> Result<regex::Regex, String> {
    if text.len() > SEARCHED_BYTES_MAX {
        return Err(format!("a pattern is held against {SEARCHED_BYTES_MAX} bytes at most"));
    }
    regex::RegexBuilder::new(pattern)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| format!("bad pattern {pattern:?}: {error}"))
}

fn number(name: &str, arguments: &[Value]) -> Option<Answer> {
    let int = |value: &Value| match value {
        Value::Number(number) => number.as_i64().or(number.as_f64().map(|it| it as i64)),
        Value::String(text) => text.parse().ok(),
        Value::Bool(bool) => Some(i64::from(*bool)),
        _ => None,
    };
    let numbers: Vec<i64> = arguments.iter().map(|it| int(it).unwrap_or(0)).collect();
    let fold = |op: fn(i64, i64) -> Option<i64>| {
        let mut numbers = numbers.iter().copied();
        let first = numbers.next();
        let result = first.and_then(|first| numbers.try_fold(first, op));
        result.map_or_else(|| wrong(name, arguments), |it| Ok(it.into()))
    };
    Some(match name {
        "int" | "int64" | "atoi" => Ok(numbers.first().copied().unwrap_or(0).into()),
        "add" => fold(i64::checked_add),
        "sub" => fold(i64::checked_sub),
        "mul" => fold(i64::checked_mul),
        "div" => fold(i64::checked_div),
        "mod" => fold(i64::checked_rem),
        "add1" => numbers
            .first()
            .and_then(|it| it.checked_add(1))
            .map_or_else(|| wrong(name, arguments), |it| Ok(it.into())),
        "max" => Ok(numbers.iter().max().copied().unwrap_or(0).into()),
        "min" => Ok(numbers.iter().min().copied().unwrap_or(0).into()),
        "until" => match numbers.as_slice() {
            [count] if (0..=UNTIL_MAX).contains(count) => {
                Ok((0..*count).collect::<Vec<_>>().into())
            }
            _ => wrong(name, arguments),
        },
        _ => return None,
    })
}

fn collection(name: &str, arguments: &[Value]) -> Option<Answer> {
    Some(match (name, arguments) {
        ("len", [Value::String(text)]) => Ok(text.len().into()),
        ("len", [Value::Array(items)]) => Ok(items.len().into()),
        ("len", [Value::Object(fields)]) => Ok(fields.len().into()),
        ("index", [first, keys @ ..]) => index(first, keys),
        ("list", items) => Ok(items.to_vec().into()),
        ("first", [Value::Array(items)]) => Ok(items.first().cloned().unwrap_or(Value::Null)),
        ("last", [Value::Array(items)]) => Ok(items.last().cloned().unwrap_or(Value::Null)),
        ("join", [mark, Value::Array(items)]) => {
            let (items, mark) = (items.iter().map(print).collect::<Vec<_>>(), print(mark));
            let bytes: usize = items.iter().map(|item| item.len() + mark.len()).sum();
            may_make(bytes).map(|()| items.join(&mark).into())
        }
        ("dict", pairs) if pairs.len() % 2 == 0 => {
            let pairs = pairs.chunks(2).map(|pair| (print(&pair[0]), pair[1].clone()));
            Ok(Value::Object(pairs.collect::<Map<_, _>>()))
        }
        ("get", [Value::Object(fields), key]) => {
            Ok(fields.get(&print(key)).cloned().unwrap_or_else(|| "".into()))
        }
        ("hasKey", [Value::Object(fields), key]) => Ok(fields.contains_key(&print(key)).into()),
        ("keys", [Value::Object(fields)]) => Ok(fields.keys().cloned().collect::<Vec<_>>().into()),
        ("has", [needle, Value::Array(items)]) => Ok(items.contains(needle).into()),
        (
            "len" | "index" | "first" | "last" | "join" | "dict" | "get" | "hasKey" | "keys"
            | "has",
            _,
        ) => wrong(name, arguments),
        _ => return None,
    })
}

fn index(value: &Value, keys: &[Value]) -> Answer {
    keys.iter().try_fold(value.clone(), |value, key| match (&value, key) {
        (Value::Array(items), Value::Number(at)) => at
            .as_u64()
            .and_then(|at| items.get(usize::try_from(at).ok()?))
            .cloned()
            .ok_or_else(|| format!("index out of range: {at}")),
        // Go gives the zero value for a key that a map lacks; for our data that is nil.
        (Value::Object(fields), Value::String(key)) => {
            Ok(fields.get(key).cloned().unwrap_or(Value::Null))
        }
        (value, key) => Err(format!("can't index {} with {}", kind(value), kind(key))),
    })
}

fn encoding(name: &str, arguments: &[Value]) -> Option<Answer> {
    let [argument] = arguments else { return None };
    let base64 = base64::engine::general_purpose::STANDARD;
    Some(match name {
        "b64enc" => Ok(base64.encode(print(argument)).into()),
        "b64dec" => match base64.decode(print(argument)) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned().into()),
            // Sprig gives the decoder's words as the value, not an error.
            Err(error) => Ok(error.to_string().into()),
        },
        "sha256sum" => Ok(stdx::hex(&sha2::Sha256::digest(print(argument))).into()),
        "toJson" => Ok(argument.to_string().into()),
        "fromJson" => Ok(serde_json::from_str(&print(argument)).unwrap_or(Value::Null)),
        "toYaml" => serde_saphyr::to_string(argument)
            .map(|text| text.trim_end_matches('\n').into())
            .map_err(|error| format!("toYaml: {error}")),
        "fromYaml" => serde_saphyr::from_str::<Value>(&print(argument))
            .or_else(|error| Ok(json!({ "Error": error.to_string() }))),
        _ => return None,
    })
}

fn tinkerbell(name: &str, arguments: &[Value]) -> Option<Answer> {
    Some(match (name, arguments) {
        ("formatPartition", [device, partition]) => {
            Ok(format_partition(&print(device), &print(partition)).into())
        }
        ("netmaskToPrefixLength", [mask]) => prefix_length(&print(mask)),
        ("formatPartition" | "netmaskToPrefixLength", _) => wrong(name, arguments),
        _ => return None,
    })
}

fn format_partition(device: &str, partition: &str) -> String {
    if device.starts_with("/dev/disk/") {
        format!("{device}-part{partition}")
    } else if device.ends_with(|c: char| c.is_ascii_digit()) {
        format!("{device}p{partition}")
    } else {
        format!("{device}{partition}")
    }
}

fn prefix_length(mask: &str) -> Answer {
    let address: std::net::Ipv4Addr =
        mask.parse().map_err(|_| format!("netmaskToPrefixLength: {mask:?} is no netmask"))?;
    let bits = u32::from(address);
    if bits.leading_ones() + bits.trailing_zeros() < 32 {
        return Err(format!("netmaskToPrefixLength: {mask:?} has holes"));
    }
    Ok(bits.leading_ones().into())
}
