//! Boot by UEFI HTTPS (one-click recovery): conditions, parameters, and Intel's client beside ours.

use amt_sim::{AmtSim, Behavior, HttpsBoot};
use bmc::{
    AmtOptions, Driver, Feature, PowerAction, Protocol, RootCertificate, Security, Trust, registry,
};
use peers::Tinboxd;
use serde_json::Value;

use super::clients::{run, value};
use super::objects::{SETTINGS, apply, job, machine, wait};

const URL: &str = "https://192.0.2.1/b.efi";

fn engine(https_boot: HttpsBoot) -> (AmtSim, Box<dyn Driver>) {
    let sim = AmtSim::start_with_tls(Behavior { https_boot, ..Behavior::default() }).unwrap();
    let driver = registry::open(sim.endpoint());
    (sim, driver)
}

/// Reason for which the machine has no UEFI HTTP boot, in its capabilities.
fn reason(driver: &dyn Driver) -> Option<&'static str> {
    let offered = driver.capabilities();
    let found = offered.missing.iter().find(|(feature, _)| *feature == Feature::HttpBoot);
    let reason = found.map(|(_, reason)| *reason);
    assert_ne!(offered.features.contains(&Feature::HttpBoot), reason.is_some());
    reason
}

#[tokio::test]
async fn the_next_boot_is_from_the_url_and_only_the_next() {
    let (sim, driver) = engine(HttpsBoot::Enabled);
    let unknown = driver.capabilities();
    assert!(unknown.missing.is_empty() && !unknown.features.contains(&Feature::HttpBoot));
    driver.power().await.unwrap();
    assert_eq!(reason(driver.as_ref()), None);
    let seen = sim.executed().len();
    driver.set_http_boot(URL).await.unwrap();
    let expected = [
        "AMT_BootCapabilities.Get",
        "AMT_BootSettingData.Get",
        "CIM_BootConfigSetting.ChangeBootOrder",
        "AMT_BootSettingData.Put",
        "CIM_BootService.SetBootConfigRole 1",
        "CIM_BootConfigSetting.ChangeBootOrder OCR UEFI HTTPS Boot",
    ];
    assert_eq!(sim.executed()[seen..], expected);
    for (name, expected) in [
        ("ForcedProgressEvents", "true"),
        ("UefiBootNumberOfParams", "2"),
        ("UseIDER", "false"),
        ("UseSOL", "false"),
        ("UserPasswordBypass", "false"),
    ] {
        assert_eq!(sim.boot_setting(name), expected, "{name}");
    }
    assert_eq!(driver.boot_device().await.unwrap(), None, "no device of a Task");
    driver.set_power(PowerAction::On).await.unwrap();
    driver.set_power(PowerAction::Reset).await.unwrap();
    assert_eq!(sim.boots(), [URL, "default"]);
}

#[tokio::test]
async fn a_boot_that_is_not_available_is_refused_with_its_reason_and_changes_nothing() {
    for (state, expected) in [
        (HttpsBoot::Absent, "does not offer it (AMT_BootCapabilities)"),
        (HttpsBoot::SwitchedOff, "switched off in the firmware setup"),
    ] {
        let (sim, driver) = engine(state);
        driver.power().await.unwrap();
        assert!(reason(driver.as_ref()).unwrap().contains(expected), "{expected}");
        let seen = sim.executed().len();
        let error = driver.set_http_boot(URL).await.unwrap_err();
        assert!(error.sentence().contains(expected), "{}", error.sentence());
        assert!(!error.is_transient());
        assert!(sim.executed()[seen..].iter().all(|it| it.ends_with(".Get")), "nothing is set");
    }
    let (sim, driver) = engine(HttpsBoot::Enabled);
    let error = driver.set_http_boot("http://192.0.2.1/b.efi").await.unwrap_err();
    assert!(error.sentence().contains("https:// only"), "{}", error.sentence());
    assert_eq!(sim.executed(), [""; 0]);

    let behavior = Behavior { https_boot: HttpsBoot::Enabled, ..Behavior::default() };
    let (sim, driver) = super::start(behavior);
    assert!(reason(driver.as_ref()).unwrap().contains("over TLS only"), "known without a request");
    let error = driver.set_http_boot(URL).await.unwrap_err();
    assert!(error.sentence().contains("hostScheme https"), "{}", error.sentence());
    assert_eq!(sim.executed(), [""; 0]);
}

/// A switch that is set in the firmware setup is known at the next request for a boot.
#[tokio::test]
async fn a_switch_of_the_firmware_setup_is_read_again() {
    let (sim, driver) = engine(HttpsBoot::SwitchedOff);
    driver.set_http_boot(URL).await.unwrap_err();
    sim.behave(|behavior| behavior.https_boot = HttpsBoot::Enabled);
    driver.set_http_boot(URL).await.unwrap();
    assert_eq!(reason(driver.as_ref()), None);
}

#[tokio::test]
async fn intels_client_writes_the_same_parameters() {
    let (sim, driver) = engine(HttpsBoot::Enabled);
    driver.set_http_boot(URL).await.unwrap();
    let ours = sim.boot_parameters();
    let commands = ["boot=Intel(r) AMT: Force PXE Boot", &format!("https={URL}"), "power=2"];
    assert_eq!(run("intel", &sim, &commands[..1]), [value(Value::Null)]);
    assert_eq!(sim.boot_parameters(), "", "a boot from a device has no parameters");
    assert_eq!(run("intel", &sim, &commands[1..]), [value(Value::Null), value(0)]);
    assert_eq!(sim.boot_parameters(), ours);
    assert_eq!(sim.boots(), [URL]);
}

/// The machine trusts a server whose root certificate is in the Secret, and it is stored once.
#[tokio::test]
async fn a_root_certificate_is_stored_in_the_engine_once() {
    let (sim, _) = engine(HttpsBoot::Enabled);
    let made = rcgen::generate_simple_self_signed(["boot".to_owned()]).unwrap();
    let root: RootCertificate = made.cert.pem().parse().unwrap();
    let mut endpoint = sim.endpoint();
    let security = Security::Tls(Trust::FirstUse);
    endpoint.protocol = Protocol::Amt(AmtOptions { security, boot_root: Some(root) });
    let driver = registry::open(endpoint);
    for _ in 0..2 {
        driver.set_http_boot(URL).await.unwrap();
    }
    let added =
        sim.executed().iter().filter(|it| it.ends_with("AddTrustedRootCertificate")).count();
    assert_eq!(added, 1, "the second time the certificate is there; nothing repeats the method");
    let blob = sim.roots().remove(0);
    // Intel's client finds the same certificate, and cannot store it again.
    let answers = run("intel", &sim, &["roots", &format!("root={blob}")]);
    assert_eq!(answers[0], value(Value::from_iter([blob.as_str()])));
    assert!(answers[1]["error"].is_string(), "{answers:?}");
    assert_eq!(sim.roots(), [blob]);
}

#[test]
fn a_job_boots_a_machine_from_a_url_and_the_status_says_why_not() {
    let (able, _) = engine(HttpsBoot::Enabled);
    let (off, _) = engine(HttpsBoot::SwitchedOff);
    let tinboxd = Tinboxd::start_with(SETTINGS).unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    let boot = format!("{{virtualMediaAction: {{kind: UefiHttp, mediaURL: \"{URL}\"}}}}");
    let tasks = format!("{{powerAction: 'off'}}, {boot}, {{powerAction: 'on'}}");
    for (name, sim) in [("able", &able), ("disabled", &off)] {
        apply(&kubectl, &machine(name, sim, AmtSim::PASSWORD));
        apply(&kubectl, &job(name, name, &tasks));
    }
    let object = "machines.bmc.tinkerbell.org/able";
    wait(&kubectl, object, ".status.capabilities", "httpBoot");
    wait(&kubectl, "jobs.bmc.tinkerbell.org/able", ".status.conditions[*].type", "Completed");
    assert_eq!(able.boots(), [URL]);
    let object = "machines.bmc.tinkerbell.org/disabled";
    let reason = "switched off in the firmware setup";
    wait(&kubectl, object, ".status.missingCapabilities.httpBoot", reason);
    wait(&kubectl, "jobs.bmc.tinkerbell.org/disabled", ".status.conditions[*].type", "Failed");
    let task = "tasks.bmc.tinkerbell.org/disabled-task-1";
    wait(&kubectl, task, ".status.conditions[*].message", reason);
    assert_eq!((off.boots().len(), off.power()), (0, 8), "it is not switched on");
}
