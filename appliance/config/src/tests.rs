use api::network::Mode;

use super::{Config, SystemKind, mistakes};

const GOOD: &str = "[network]\ninterface = 'eth0'\naddress = '10.77.0.1'\n\
    [boot]\nartifacts = '/'\n";

fn parse(text: &str) -> Result<Config, String> {
    Config::read(text, SystemKind::Guest).map_err(|problems| problems.join("\n"))
}

#[test]
fn the_nearest_address_is_named() {
    let text = "[[network]]\ninterface = 'eth0'\naddress = '10.77.0.1'\n\
        [[network]]\ninterface = 'eth1'\naddress = '10.78.0.1/16'\n[boot]\nartifacts = '/'\n";
    let config = parse(text).unwrap();
    let near = |octets: [u8; 4]| config.address_near(Some(octets.into())).to_string();
    assert_eq!(near([10, 77, 0, 9]), "10.77.0.1");
    assert_eq!(near([10, 78, 9, 9]), "10.78.0.1");
    assert_eq!(near([10, 79, 0, 9]), "10.77.0.1", "behind a relay");
    assert_eq!(config.address_near(None).to_string(), "10.77.0.1");
}

#[test]
fn the_least_configuration_answers_no_dhcp() {
    let config = parse(GOOD).unwrap();
    assert_eq!(config.networks[0].mode, Mode::Off);
    assert!(!config.agents.permissive);
    assert!(!config.agents.enrollment);
    assert!(config.images.is_none());
    assert_eq!(config.api_url(), "https://10.77.0.1:6443");
}

#[test]
fn rules_of_references_are_patterns() {
    let with = |rule: &str| parse(&format!("{GOOD}[templates]\nreferences = ['{rule}']\n"));
    assert!(parse(GOOD).unwrap().templates.rules().is_empty(), "nothing is given by default");
    assert_eq!(
        with(r#"{"reference": {"resource": ["lvms"]}}"#).unwrap().templates.rules().len(),
        1
    );
    let error = with(r#"{"reference": {"resource": "lvms"}}"#).unwrap_err();
    assert!(
        error.starts_with("templates.references[0]: \"reference.resource\": expected an array"),
        "{error}"
    );
}

#[test]
fn a_box_of_its_own_needs_no_word() {
    let read = |text| {
        let config = Config::read(text, SystemKind::Firmware).map_err(|them| them.join("\n"));
        // It is not there where this test runs.
        config.unwrap_err().replace("boot.artifacts: /run/tinbox/artifacts is not a folder", "")
    };
    assert_eq!(read(""), "");
    assert_eq!(read("\u{feff}[management]\r\ninterface = 'eth0'  \r\nvlan = 7\r\n"), "");
    let error = read(
        "[[management]]\ninterface = 'eth0'\naddress = '10.0.0.1'\n\
         [[management]]\ninterface = 'eth1'\nvlan = 4095\n\
         [network]\ninterface = 'eth0'\naddress = '10.77.0.1'\n",
    );
    let lines: Vec<_> = error.trim().lines().collect();
    assert_eq!(
        lines,
        [
            "management[0].address: expected an address such as 192.168.1.5/24, found \"10.0.0.1\"",
            "management[0].interface: eth0 is already used by a provisioning network",
            "management[1].vlan: expected a VLAN ID from 1 to 4094, found 4095",
        ]
    );
    assert_eq!(read("name = 'cellar'\n[time]\nservers = ['10.0.0.1']\n"), "");
    assert!(read("name = 'the cellar'\n").contains("\"the cellar\" is not a valid host name"));
    assert!(parse(&format!("{GOOD}[management]\ninterface = 'eth9'\n")).is_err());
    assert!(
        parse(&format!("{GOOD}[time]\nservers = []\n")).unwrap_err().contains("time: set this")
    );
}

#[test]
fn unknown_keys_are_refused_by_name() {
    let error = parse(&format!("{GOOD}speed = 1\n")).unwrap_err();
    assert!(error.contains("speed"), "{error}");
}

#[test]
fn every_mistake_is_told_at_once() {
    let text = "[network]\ninterface = 'a b'\naddress = '0.0.0.0'\n\
        [boot]\nartifacts = '/nope'\n\
        [agents]\nsilence_secs = 1\n[bmc]\npoll_secs = 0\n\
        [images]\ncache = 'here'\nbudget_percent = 100\nauthorities = '/nope'\n\
        plain_registries = ['http://a']\n\
        [metadata]\ntrusted_proxies = ['::/0']\n";
    let error = parse(text).unwrap_err();
    assert_eq!(error.lines().count(), 10, "{error}");
    assert!(error.contains("images.budget_percent: 100 % is not between 10 % and 85 %"));
    assert!(error.contains("agents.silence_secs: 1 s is not between 20 s and 3600 s"));
}

#[test]
fn zone_hours_and_unused_cards_are_for_a_box_of_its_own() {
    let read = |text: &str| {
        let text = format!("[boot]\nartifacts = '/'\n{text}");
        Config::read(&text, SystemKind::Firmware).map_err(|them| them.join("\n"))
    };
    let text = "[time]\nzone = 'Europe/Berlin'\n[update]\nhours = '22:00-5:00'\nhold = '1.5.0'\n\
        restart = 'ask'\n[[management]]\ninterface = 'eth2'\nunused = true\n\
        [network]\ninterface = 'eth0'\nmode = 'proxy'\n";
    let config = read(text).unwrap();
    assert_eq!(config.update.hours().unwrap().to_string(), "22:00-05:00");
    assert!(config.networks.is_empty() && config.network[0].is_shared());
    let wrong = read(
        "[time]\nzone = 'Berlin'\n[update]\nhours = 'late'\n[[management]]\n\
         interface = 'eth0'\nunused = true\naddress = '10.0.0.1/8'\n\
         [network]\ninterface = 'eth0'\nmode = 'pool'\n",
    );
    let wrong = wrong.unwrap_err();
    for part in [
        "time.zone: \"Berlin\" is not a time zone",
        "update.hours: expected hours such as",
        "management[0].unused: an unused interface cannot have",
        "management[0].unused: eth0 is used by a provisioning network",
        "network.mode: without a static address",
    ] {
        assert!(wrong.contains(part), "{part}: {wrong}");
    }
    for text in ["[time]\nzone = 'UTC'\n", "[update]\nrestart = 'ask'\n"] {
        let refused = parse(&format!("{GOOD}{text}")).unwrap_err();
        assert!(refused.contains("set this in the operating system"), "{refused}");
    }
    let shared = "[network]\ninterface = 'eth0'\n[boot]\nartifacts = '/'\n";
    assert!(parse(shared).unwrap_err().contains("eth0 has no address, and only a flashed box"));
}

#[test]
fn a_section_may_have_its_older_name() {
    let read = |text: &str| {
        let text = format!("[boot]\nartifacts = '/'\n{text}");
        (Config::read(&text, SystemKind::Firmware), mistakes::checked(&text, SystemKind::Firmware))
    };
    let hours = |name: &str| format!("[{name}]\nhours = '22:00-5:00'\n");
    for name in ["update", "upgrade"] {
        let (config, checked) = read(&hours(name));
        assert_eq!(config.unwrap().update.hours().unwrap().to_string(), "22:00-05:00");
        assert_eq!(checked.unwrap().update.hours, Some("22:00-5:00".to_owned()));
        let wrong = read(&format!("[{name}]\nhold = '1.5.0'\nhours = 'late'\n")).1.unwrap_err();
        assert_eq!(wrong[0].line, Some(5), "{wrong:?}");
    }
    let why = "upgrade: the older name of [update], which is there too: keep one of them";
    let orders =
        [(hours("update") + &hours("upgrade"), 5), ("[upgrade]\n[update]\n".to_owned(), 3)];
    for (both, line) in orders {
        let (config, checked) = read(&both);
        assert_eq!(config.unwrap_err(), [why]);
        let mistakes = checked.unwrap_err();
        assert_eq!((mistakes[0].what.as_str(), mistakes[0].line), (why, Some(line)));
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    }
}
