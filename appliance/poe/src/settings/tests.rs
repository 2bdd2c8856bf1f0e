use stdx::Secret;

use super::Settings;
use crate::{Authentication, Error, ExpectedName, Login, Options, User};

type Keys<'a> = &'a [(&'a str, &'a str)];

const USER: Keys<'_> = &[("username", "tinbox"), ("password", "authenticate")];
const COMMUNITY: Keys<'_> = &[("community", "write-here")];

fn settings() -> Settings {
    Settings { outlet: "1.3".to_owned(), ..Settings::default() }
}

fn options(settings: &Settings, keys: Keys<'_>) -> Result<Options, Error> {
    let find = |name: &str| keys.iter().find(|(key, _)| *key == name);
    settings.options("10.0.0.9", |name| find(name).map(|(_, value)| Secret::from(*value)))
}

#[test]
fn version_three_with_sha_256_is_the_default() {
    let user = User {
        name: "tinbox".to_owned(),
        authentication: Authentication::Sha256,
        password: "authenticate".into(),
        privacy_password: "authenticate".into(),
    };
    let found = options(&settings(), USER).unwrap();
    assert_eq!((found.udp_port, found.port.to_string().as_str()), (161, "1.3"));
    assert_eq!((&found.login, &found.name), (&Login::User(user.clone()), &None));

    let three = Settings {
        version: "3".to_owned(),
        authentication: "sha1".to_owned(),
        port_name: " nuc-3 ".to_owned(),
        port: 1161,
        ..settings()
    };
    let keys = [USER, &[("privacyPassword", "encryption")]].concat();
    let found = options(&three, &keys).unwrap();
    let authentication = Authentication::Sha1;
    let user = User { authentication, privacy_password: "encryption".into(), ..user };
    assert_eq!((found.login, found.udp_port), (Login::User(user), 1161));
    assert_eq!(found.name, Some(ExpectedName { text: "nuc-3".to_owned(), interface: 3 }));
}

#[test]
fn a_community_string_needs_its_version() {
    let two = Settings { version: "2c".to_owned(), ..settings() };
    let found = options(&two, COMMUNITY).unwrap();
    assert_eq!(found.login, Login::Community("write-here".into()));
    let named = Settings { port_name: "a".to_owned(), interface: 1004, ..two };
    assert_eq!(options(&named, COMMUNITY).unwrap().name.map(|name| name.interface), Some(1004));
}

#[test]
fn a_mistake_is_an_error_with_its_field() {
    let with = |version: &str, authentication: &str| Settings {
        version: version.to_owned(),
        authentication: authentication.to_owned(),
        ..settings()
    };
    let outlet = |text: &str| Settings { outlet: text.to_owned(), ..settings() };
    for (settings, keys, expected) in [
        (settings(), COMMUNITY, "username"),
        (settings(), &USER[..1], "password"),
        (with("2c", ""), USER, "community"),
        (with("2c", "sha1"), COMMUNITY, "authentication"),
        (with("", "md5"), USER, "authentication"),
        (with("1", ""), COMMUNITY, "version"),
        (outlet(""), USER, "outlet"),
        (outlet("3"), USER, "outlet"),
        (settings(), &[("username", "tinbox"), ("password", "short")], "password"),
    ] {
        let error = options(&settings, keys).unwrap_err();
        let Error::Invalid { field, .. } = error else { panic!("{error:?}") };
        assert_eq!(field, expected, "{settings:?}");
    }
}
