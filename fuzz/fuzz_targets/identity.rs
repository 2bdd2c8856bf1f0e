//! Identity of a client: certificates, tokens, impersonation headers. Also the permissions of a
//! user by roles of any form.

#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fuzz::Input;
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use rbac::certificate::{self, MAX_GROUPS};
use rbac::impersonation::{self, MAX_ASKED};
use rbac::jwt::{self, Claims, Unverified};
use rbac::{
    AUTHENTICATED, Action, MASTERS, PolicyRule, Roles, User, aggregated, covers, escalation,
    only_bookkeeping,
};
use serde_json::Value;

fn certificate(bytes: &[u8]) {
    if let Some(user) = certificate::user(bytes) {
        assert!(!user.name.is_empty() && user.is_in(AUTHENTICATED));
        assert!(user.groups.len() <= MAX_GROUPS + 1);
    }
}

fn claims(claims: &Claims) {
    let audiences = [jwt::ISSUER.to_owned()];
    if let Ok(common) = claims.check(Timestamp::UNIX_EPOCH, &audiences) {
        assert_eq!(common, audiences);
    }
    let user = claims.user();
    assert!(user.is_in(AUTHENTICATED) && user.name == claims.sub);
    let input = jwt::signing_input("key", claims);
    let token = jwt::token(&input, &[7; 64]);
    assert!(jwt::is_token(&token));
    let again = Unverified::parse(&token).expect("a token that was made");
    assert_eq!((again.key_id.as_str(), again.signature.len()), ("key", 64));
    assert_eq!(&again.verified(), claims);
}

fn token(text: &str) {
    if let Ok(unverified) = Unverified::parse(text) {
        assert!(text.starts_with(unverified.signing_input));
        claims(&unverified.verified());
    }
}

fn headers(mut input: Input<'_>) {
    let mut lines = Vec::new();
    while !input.is_empty() {
        lines.push(String::from_utf8_lossy(input.line()).into_owned());
    }
    let pairs = lines.iter().filter_map(|line| line.split_once(':'));
    let asked = impersonation::read(pairs.clone());
    let is_asked = pairs.clone().any(|(name, _)| impersonation::is_header(name));
    match asked {
        Ok(None) => assert!(!is_asked, "headers went unseen"),
        Ok(Some(asked)) => {
            assert!(is_asked && !asked.user.name.is_empty());
            assert!((1..=MAX_ASKED).contains(&asked.needs.len()), "{:?}", asked.needs);
            assert!(asked.needs.iter().all(|need| need.verb == "impersonate"));
        }
        Err(why) => assert!(is_asked && !why.is_empty()),
    }
}

/// Authorizes an action with a role and a binding, all of any form.
fn roles(mut input: Input<'_>) {
    let mut next = || serde_json::from_slice::<Value>(input.line()).unwrap_or_default();
    let (role, binding, asked) = (next(), next(), next());
    let mut roles = Roles::default();
    for (plural, object) in
        [("clusterroles", &role), ("roles", &role), ("clusterrolebindings", &binding)]
    {
        roles.put(plural, object);
    }
    roles.put("rolebindings", &binding);
    let text = |field: &str| asked[field].as_str().unwrap_or_default();
    let user = User::known(text("user"), [text("userGroup").to_owned()]);
    let (namespace, name) = (text("namespace"), text("name"));
    let action = Action::on(text("verb"), text("group"), text("resource"), namespace, name);
    let decision = roles.authorize(&user, &action);
    let (rules, _) = roles.rules_for(&user, namespace);
    let is_master = user.is_in(MASTERS);
    assert_eq!(decision.allowed, is_master || rules.iter().any(|rule| rule.allows(&action)));
    // A stored rule never has both paths and names.
    let is_stored =
        |rule: &PolicyRule| rule.non_resource_urls.is_empty() || rule.resource_names.is_empty();
    if let Err(why) = covers(&rules, &rules)
        && rules.iter().all(is_stored)
    {
        assert!(why.contains("permissions"), "a user may not pass on what they have: {why}");
    }
    let _ = escalation(&roles, &user, "clusterroles", ("", name), &role, Some(&binding));
    let _ = (aggregated(&role, &[binding.clone()]), only_bookkeeping(&role, &binding));
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.byte() % 5 {
        0 => certificate(input.0),
        1 => token(&String::from_utf8_lossy(input.0)),
        2 => {
            let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            let (header, claims, signature) = (input.line(), input.line(), input.0);
            token(&format!("{}.{}.{}", part(header), part(claims), part(signature)));
        }
        3 => headers(input),
        _ => roles(input),
    }
});
