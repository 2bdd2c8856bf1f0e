//! Functions that rules may call, with their signatures: the functions of CEL and of the libraries
//! of Kubernetes 1.34 (cel-go `common/stdlib`, `ext`; apiserver `pkg/cel/environment/base.go`,
//! `pkg/cel/library`).

use std::rc::Rc;

use super::kind::{Bindings, Kind};

/// Functions with their overloads: `(arguments)->result`, or `receiver.(arguments)->result`.
const FUNCTIONS: [(&str, &str); 136] = [
    ("_==_", "(A,A)->bool"),
    ("_!=_", "(A,A)->bool"),
    ("_<_", ORDER),
    ("_<=_", ORDER),
    ("_>_", ORDER),
    ("_>=_", ORDER),
    (
        "_+_",
        "(int,int)->int (uint,uint)->uint (double,double)->double (string,string)->string \
         (bytes,bytes)->bytes (list(A),list(A))->list(A) (timestamp,duration)->timestamp \
         (duration,timestamp)->timestamp (duration,duration)->duration",
    ),
    (
        "_-_",
        "(int,int)->int (uint,uint)->uint (double,double)->double \
         (timestamp,timestamp)->duration (timestamp,duration)->timestamp \
         (duration,duration)->duration",
    ),
    ("_*_", "(int,int)->int (uint,uint)->uint (double,double)->double"),
    ("_/_", "(int,int)->int (uint,uint)->uint (double,double)->double"),
    ("_%_", "(int,int)->int (uint,uint)->uint"),
    ("-_", "(int)->int (double)->double"),
    ("!_", "(bool)->bool"),
    ("_&&_", "(bool,bool)->bool"),
    ("_||_", "(bool,bool)->bool"),
    ("_?_:_", "(bool,A,A)->A"),
    ("@not_strictly_false", "(bool)->bool"),
    ("@in", "(A,list(A))->bool (A,map(A,B))->bool"),
    (
        "_[_]",
        "(list(A),int)->A (map(A,B),A)->B (optional(list(A)),int)->optional(A) \
         (optional(map(A,B)),A)->optional(B)",
    ),
    (
        "_[?_]",
        "(list(A),int)->optional(A) (map(A,B),A)->optional(B) \
         (optional(list(A)),int)->optional(A) (optional(map(A,B)),A)->optional(B)",
    ),
    (
        "size",
        "(string)->int (bytes)->int (list(A))->int (map(A,B))->int string.()->int bytes.()->int \
         list(A).()->int map(A,B).()->int",
    ),
    ("type", "(A)->type"),
    ("dyn", "(A)->dyn"),
    ("int", "(int)->int (uint)->int (double)->int (string)->int (timestamp)->int"),
    ("uint", "(uint)->uint (int)->uint (double)->uint (string)->uint"),
    ("double", "(double)->double (int)->double (uint)->double (string)->double"),
    ("bool", "(bool)->bool (string)->bool"),
    (
        "string",
        "(string)->string (bool)->string (int)->string (uint)->string (double)->string \
         (bytes)->string (timestamp)->string (duration)->string (net.IP)->string \
         (net.CIDR)->string",
    ),
    ("bytes", "(bytes)->bytes (string)->bytes"),
    ("timestamp", "(timestamp)->timestamp (string)->timestamp (int)->timestamp"),
    ("duration", "(duration)->duration (string)->duration (int)->duration"),
    ("matches", "(string,string)->bool string.(string)->bool"),
    ("contains", "string.(string)->bool"),
    ("startsWith", "string.(string)->bool"),
    ("endsWith", "string.(string)->bool"),
    ("getFullYear", DATE),
    ("getMonth", DATE),
    ("getDayOfYear", DATE),
    ("getDayOfMonth", DATE),
    ("getDate", DATE),
    ("getDayOfWeek", DATE),
    ("getHours", TIME),
    ("getMinutes", TIME),
    ("getSeconds", TIME),
    ("getMilliseconds", TIME),
    ("optional.of", "(A)->optional(A)"),
    ("optional.none", "()->optional(A)"),
    ("optional.ofNonZeroValue", "(A)->optional(A)"),
    ("hasValue", "optional(A).()->bool"),
    ("value", "optional(A).()->A"),
    ("or", "optional(A).(optional(A))->optional(A)"),
    ("orValue", "optional(A).(A)->A"),
    ("charAt", "string.(int)->string"),
    ("indexOf", "string.(string)->int string.(string,int)->int list(A).(A)->int"),
    ("lastIndexOf", "string.(string)->int string.(string,int)->int list(A).(A)->int"),
    ("lowerAscii", "string.()->string"),
    ("upperAscii", "string.()->string"),
    ("replace", "string.(string,string)->string string.(string,string,int)->string"),
    ("split", "string.(string)->list(string) string.(string,int)->list(string)"),
    ("substring", "string.(int)->string string.(int,int)->string"),
    ("trim", "string.()->string"),
    ("join", "list(string).()->string list(string).(string)->string"),
    ("format", "string.(list(dyn))->string"),
    ("strings.quote", "(string)->string"),
    ("isSorted", "list(A).()->bool"),
    ("sum", "list(A).()->A"),
    ("min", "list(A).()->A"),
    ("max", "list(A).()->A"),
    ("slice", "list(A).(int,int)->list(A)"),
    ("flatten", "list(A).()->list(dyn) list(A).(int)->list(dyn)"),
    ("distinct", "list(A).()->list(A)"),
    ("reverse", "list(A).()->list(A)"),
    ("sort", "list(A).()->list(A)"),
    ("first", "list(A).()->optional(A)"),
    ("last", "list(A).()->optional(A)"),
    ("lists.range", "(int)->list(int)"),
    ("sets.contains", "(list(A),list(A))->bool"),
    ("sets.equivalent", "(list(A),list(A))->bool"),
    ("sets.intersects", "(list(A),list(A))->bool"),
    ("find", "string.(string)->string"),
    ("findAll", "string.(string)->list(string) string.(string,int)->list(string)"),
    ("url", "(string)->kubernetes.URL"),
    ("isURL", "(string)->bool"),
    ("getScheme", URL),
    ("getHost", URL),
    ("getHostname", URL),
    ("getPort", URL),
    ("getEscapedPath", URL),
    ("getQuery", "kubernetes.URL.()->map(string,list(string))"),
    ("ip", "(string)->net.IP net.CIDR.()->net.IP"),
    ("isIP", "(string)->bool"),
    ("ip.isCanonical", "(string)->bool"),
    ("family", "net.IP.()->int"),
    ("isUnspecified", IP),
    ("isLoopback", IP),
    ("isLinkLocalMulticast", IP),
    ("isLinkLocalUnicast", IP),
    ("isGlobalUnicast", IP),
    ("cidr", "(string)->net.CIDR"),
    ("isCIDR", "(string)->bool"),
    ("containsIP", "net.CIDR.(string)->bool net.CIDR.(net.IP)->bool"),
    ("containsCIDR", "net.CIDR.(string)->bool net.CIDR.(net.CIDR)->bool"),
    ("prefixLength", "net.CIDR.()->int"),
    ("masked", "net.CIDR.()->net.CIDR"),
    ("quantity", "(string)->kubernetes.Quantity"),
    ("isQuantity", "(string)->bool"),
    ("isInteger", "kubernetes.Quantity.()->bool"),
    ("asInteger", "kubernetes.Quantity.()->int"),
    ("asApproximateFloat", "kubernetes.Quantity.()->double"),
    ("sign", "kubernetes.Quantity.()->int"),
    ("add", QUANTITY_SUM),
    ("sub", QUANTITY_SUM),
    ("isLessThan", COMPARED_BOOL),
    ("isGreaterThan", COMPARED_BOOL),
    (
        "compareTo",
        "kubernetes.Quantity.(kubernetes.Quantity)->int \
         kubernetes.Semver.(kubernetes.Semver)->int",
    ),
    ("semver", "(string)->kubernetes.Semver (string,bool)->kubernetes.Semver"),
    ("isSemver", "(string)->bool (string,bool)->bool"),
    ("major", "kubernetes.Semver.()->int"),
    ("minor", "kubernetes.Semver.()->int"),
    ("patch", "kubernetes.Semver.()->int"),
    ("format.named", "(string)->optional(kubernetes.NamedFormat)"),
    ("format.dns1123Label", FORMAT),
    ("format.dns1123Subdomain", FORMAT),
    ("format.dns1035Label", FORMAT),
    ("format.qualifiedName", FORMAT),
    ("format.dns1123LabelPrefix", FORMAT),
    ("format.dns1123SubdomainPrefix", FORMAT),
    ("format.dns1035LabelPrefix", FORMAT),
    ("format.labelValue", FORMAT),
    ("format.uri", FORMAT),
    ("format.uuid", FORMAT),
    ("format.byte", FORMAT),
    ("format.date", FORMAT),
    ("format.datetime", FORMAT),
    ("validate", "kubernetes.NamedFormat.(string)->optional(list(string))"),
    ("jsonpatch.escapeKey", "(string)->string"),
];

const ORDER: &str = "(bool,bool)->bool (int,int)->bool (uint,uint)->bool (double,double)->bool \
     (string,string)->bool (bytes,bytes)->bool (timestamp,timestamp)->bool \
     (duration,duration)->bool (int,uint)->bool (int,double)->bool (uint,int)->bool \
     (uint,double)->bool (double,int)->bool (double,uint)->bool";
const DATE: &str = "timestamp.()->int timestamp.(string)->int";
const TIME: &str = "timestamp.()->int timestamp.(string)->int duration.()->int";
const URL: &str = "kubernetes.URL.()->string";
const IP: &str = "net.IP.()->bool";
const FORMAT: &str = "()->kubernetes.NamedFormat";
const QUANTITY_SUM: &str = "kubernetes.Quantity.(kubernetes.Quantity)->kubernetes.Quantity \
     kubernetes.Quantity.(int)->kubernetes.Quantity";
const COMPARED_BOOL: &str = "kubernetes.Quantity.(kubernetes.Quantity)->bool \
     kubernetes.Semver.(kubernetes.Semver)->bool";

/// Overload of a function.
#[derive(Debug, Clone)]
pub(super) struct Overload<'a> {
    receiver: Option<Kind<'a>>,
    args: Vec<Kind<'a>>,
    result: Kind<'a>,
}

impl<'a> Overload<'a> {
    /// Returns the type of the result; `None` if the overload does not accept the values.
    pub fn call(&self, receiver: Option<&Kind<'a>>, args: &[&Kind<'a>]) -> Option<Kind<'a>> {
        let mut bindings = Bindings::new();
        let receiver_fits = match (&self.receiver, receiver) {
            (Some(wanted), Some(given)) => wanted.accepts(given, &mut bindings),
            (None, None) => true,
            _ => false,
        };
        let fits = receiver_fits
            && self.args.len() == args.len()
            && self
                .args
                .iter()
                .zip(args)
                .all(|(wanted, given)| wanted.accepts(given, &mut bindings));
        fits.then(|| self.result.filled(&bindings))
    }
}

/// Returns the overloads of a function; `None` if the function does not exist.
pub(super) fn overloads<'a>(name: &str) -> Option<Vec<Overload<'a>>> {
    let (_, text) = FUNCTIONS.iter().find(|(known, _)| *known == name)?;
    Some(text.split_whitespace().filter_map(overload).collect())
}

fn overload<'a>(text: &str) -> Option<Overload<'a>> {
    let (left, result) = text.split_once("->")?;
    // The arguments are in the last parentheses: the receiver may have parentheses of its own.
    let (receiver, args) = match left.find(".(") {
        Some(at) => (Some(kind(&left[..at])), &left[at + 2..left.len() - 1]),
        None => (None, &left[1..left.len() - 1]),
    };
    let args = split_args(args).into_iter().map(kind).collect();
    Some(Overload { receiver, args, result: kind(result) })
}

/// Splits a list of parameters at the commas outside of parentheses.
fn split_args(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < text.len() {
        parts.push(&text[start..]);
    }
    parts
}

fn kind<'a>(text: &str) -> Kind<'a> {
    let inside = |name: &str| {
        let rest = text.strip_prefix(name)?.strip_prefix('(')?;
        rest.strip_suffix(')')
    };
    if let Some(item) = inside("list") {
        return Kind::List(Rc::new(kind(item)));
    }
    if let Some(inner) = inside("optional") {
        return Kind::Optional(Rc::new(kind(inner)));
    }
    if let Some(both) = inside("map") {
        let parts = split_args(both);
        let part = |index: usize| Rc::new(parts.get(index).map_or(Kind::Dyn, |part| kind(part)));
        return Kind::Map(part(0), part(1));
    }
    match text {
        "A" => Kind::Any('A'),
        "B" => Kind::Any('B'),
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "uint" => Kind::Uint,
        "double" => Kind::Double,
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        "duration" => Kind::Duration,
        "timestamp" => Kind::Timestamp,
        "type" => Kind::Type,
        "net.IP" => Kind::Library("net.IP"),
        "net.CIDR" => Kind::Library("net.CIDR"),
        "kubernetes.URL" => Kind::Library("kubernetes.URL"),
        "kubernetes.Quantity" => Kind::Library("kubernetes.Quantity"),
        "kubernetes.Semver" => Kind::Library("kubernetes.Semver"),
        "kubernetes.NamedFormat" => Kind::Library("kubernetes.NamedFormat"),
        _ => Kind::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_is_read() {
        for (name, text) in FUNCTIONS {
            let read = overloads(name).expect("a known function");
            assert_eq!(read.len(), text.split_whitespace().count(), "{name}");
        }
        let found = overloads("containsCIDR").expect("a known function");
        let cidr = Kind::Library("net.CIDR");
        assert_eq!(found[0].call(Some(&cidr), &[&Kind::Text]), Some(Kind::Bool));
        assert_eq!(found[0].call(Some(&cidr), &[&Kind::Int]), None);
        let at = overloads("_[_]").expect("a known function");
        let map = Kind::Map(Rc::new(Kind::Text), Rc::new(Kind::Int));
        assert_eq!(at[1].call(None, &[&map, &Kind::Text]), Some(Kind::Int));
    }
}
