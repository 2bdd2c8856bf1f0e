mod settings;

use std::io::Write as _;

use api::tinkerbell::ActionState;
use box_owner::users::Role as UserRole;
use flate2::Compression;
use flate2::write::GzEncoder;
use image_catalog::{ImageForm, ImageSummary};
use machine_actions::{Action, DiskChoice, FieldError, InstallChoices, InstallForm, SystemChoice};
use printers::table::Table;
use status::access::AccessToken;
use status::log::AuditLine;
use status::log::LogLine;
use status::view::work::{WorkAction, WorkDetails};
use status::view::{Role, StatusView, example};

use super::{More, Page};
use crate::accounts::tokens::{self, NewToken};
use crate::accounts::users::{self, NewUser};
use crate::design::{CONSOLE_SCRIPT, SCRIPT, STYLE};
use crate::machine::forms::{InstallPage, confirm, install, machine};
use crate::machine::tabs::{Section, SectionContent, Tab};
use crate::os_images::{self, OsImagesPage};
use crate::rights::tests::{CSRF, visitor};
use crate::rights::{Rights, Visitor};
use crate::setup::{NicSetup, UpdateTimes, done, nics, times};
use crate::{claim, connect, login};

/// Maximum bytes of a page with style sheet and script, after compression (design, section 6).
const PAGE_BYTES_MAX: usize = 60_000;

fn owner() -> Visitor {
    let mut owner = visitor(UserRole::Admin);
    owner.rights = Rights::of(|_| true);
    owner
}

fn two_cards() -> [NicSetup; 2] {
    let people = NicSetup {
        name: "eth0".to_owned(),
        mac: "00:e0:4c:68:00:01".to_owned(),
        link: "1 Gb/s".to_owned(),
        address: "10.20.30.40/24".to_owned(),
        default_route: true,
        role: Role::Management,
        mode: "off".to_owned(),
        ..NicSetup::default()
    };
    let machines = NicSetup {
        name: "eth1".to_owned(),
        mac: "00:e0:4c:68:00:02".to_owned(),
        link: "no cable".to_owned(),
        role: Role::Provisioning,
        mode: "reserved".to_owned(),
        own: "10.99.0.1/24".to_owned(),
        ..NicSetup::default()
    };
    [people, machines]
}

fn night() -> UpdateTimes {
    let (from, to) = ("02:00".to_owned(), "05:00".to_owned());
    UpdateTimes { zone: "Europe/Berlin".to_owned(), from, to, ask: true }
}

fn clusters(view: &StatusView) -> String {
    let start = connect(view, "https://10.20.30.40", "PEM\n", &owner());
    Page::ClusterApi.html_with(view, &More::default(), &owner(), &start)
}

/// Returns a tab of a machine, with a table, a text, nothing and a failure.
fn tab(tab: Tab) -> String {
    let mut parts = Table::new(&["PART", "SIZE"]);
    parts.row(["disk".into(), "500 GiB".into()]);
    let contents = match tab {
        Tab::Hardware => vec![SectionContent::Table(parts)],
        Tab::Bmc => vec![
            SectionContent::Nothing("The BMC reports none.".to_owned()),
            SectionContent::Failed("10.0.0.7:623 did not answer.".to_owned()),
        ],
        _ => vec![SectionContent::Text("kind: Hardware\nspec: <b>\n".to_owned())],
    };
    let section = |content| Section { heading: "Parts", content };
    let more = More { sections: contents.into_iter().map(section).collect(), ..More::default() };
    let page = Page::Machine("nuc-07".to_owned(), tab);
    page.html_with(&example::working(), &more, &owner(), "")
}

/// Returns the page of a workflow with one action that succeeded and one that failed.
fn workflow(name: &str) -> String {
    let view = example::working();
    let work = view.workflows.iter().find(|it| it.name.as_str() == name).unwrap().clone();
    let action = |name: &str, state, message: &str| WorkAction {
        name: name.into(),
        state,
        message: message.into(),
        started: Some(view.now),
        ended: Some(view.now),
        ..WorkAction::default()
    };
    let failed = action("image2disk", ActionState::Failed, "checksum does not match");
    let first = action("wipe", ActionState::Success, "");
    let actions = vec![first, WorkAction { repeats: 2, ..failed }, WorkAction::default()];
    let line = LogLine {
        received: view.now,
        severity: "err".to_owned(),
        program: "image2disk".to_owned(),
        text: "the sum is <b>".to_owned(),
    };
    let more =
        More { log: vec![line], work: Some(WorkDetails { work, actions }), ..More::default() };
    Page::Workflow(name.to_owned()).html_with(&view, &more, &owner(), "")
}

fn confirmation(error: &str) -> String {
    let view = example::working();
    confirm(&view, &owner(), (Action::PowerOff, &view.machines[0]), ("0a1b2c3d", error))
}

fn mistakes() -> [FieldError; 2] {
    let mistake = |field, why: &str| FieldError { field, why: why.to_owned() };
    [mistake("name", "\"<b>\" is not a valid name."), mistake("disk", "\"a\" is not a disk.")]
}

/// Returns the form of a machine; a MAC address is that of a machine without Hardware.
fn installation(action: Action, name: &str, mistakes: &[FieldError]) -> String {
    let view = example::working();
    let machine = machine(&view, name).unwrap();
    let is_known = !name.contains(':');
    let system = |name: &str, about: &str| {
        let title = name.rsplit('/').next().unwrap_or_default().to_owned();
        SystemChoice { name: name.into(), title, about: about.into() }
    };
    let about = "Samsung · 512GB · S4".to_owned();
    let disk = DiskChoice { device: "/dev/nvme0n1".into(), about };
    let choices = InstallChoices {
        is_known,
        may_rename: !is_known,
        model: if is_known { "Intel NUC13ANHi5".into() } else { String::new() },
        systems: vec![system("debian", "Debian 12."), system("own", "A template on this box.")],
        disks: if is_known { vec![disk] } else { Vec::new() },
        has_bmc: is_known,
        ..InstallChoices::default()
    };
    let values = InstallForm {
        system: "debian".into(),
        name: if mistakes.is_empty() { String::new() } else { "<b>".into() },
        disk: "/dev/nvme0n1".into(),
        address: "10.99.0.11".into(),
        id: "0a1b2c3d".into(),
        ..InstallForm::default()
    };
    let preview = if is_known { "version: \"0.1\"\nname: debian\n" } else { "" };
    let (form, choices, machine) = (&values, &choices, &machine);
    let page = InstallPage { action, machine, choices, form, mistakes, error: "", preview };
    install(&view, &owner(), &page)
}

fn os_image_list() -> String {
    let image = |name: &str, url: &str, is_uploaded| ImageSummary {
        name: name.to_owned(),
        os: "debian-13".to_owned(),
        url: url.to_owned(),
        checksum: format!("SHA-256 {}", "ab".repeat(32)),
        is_uploaded,
    };
    let images = [
        image("mine", "upload://box/mine.qcow2", true),
        image("debian-13", "https://images.example/debian-13.qcow2", false),
    ];
    let mistakes =
        [image_catalog::FieldError { field: "name", why: "\"<b>\" is not valid.".to_owned() }];
    let form = ImageForm { name: "<b>".to_owned(), ..ImageForm::default() };
    let page = OsImagesPage {
        images: &images,
        form,
        is_upload: true,
        mistakes: &mistakes,
        error: "The file is <x>.",
    };
    os_images::list(&example::working(), &owner(), &page)
}

fn user_list() -> String {
    let all = [owner().user, visitor(UserRole::Viewer).user];
    let form = NewUser { name: "<b>".to_owned(), role: Some(UserRole::Operator) };
    users::list(&example::calm(), &owner(), &all, (&form, "The user name <b> is taken."))
}

fn token_list() -> String {
    let view = example::calm();
    let day = jiff::SignedDuration::from_hours(24);
    let token = |user: &str, group: &str, until| AccessToken {
        id: "9f86d081884c".to_owned(),
        user: user.to_owned(),
        groups: vec![group.to_owned()],
        until,
        used: until.map(|_| view.now),
    };
    let all = [
        token("admin", "system:masters", None),
        token("ci", "tinbox:operator", Some(view.now + day)),
        token("old", "tinbox:viewer", Some(view.now - day)),
    ];
    tokens::list(&view, &owner(), &all, (&NewToken::default(), "The role <b> does not exist."))
}

fn audit() -> String {
    let view = example::calm();
    let line = |user: &str, request: &str, code, failed| AuditLine {
        at: view.now,
        user: user.to_owned(),
        request: request.to_owned(),
        from: "10.0.0.9".to_owned(),
        code,
        failed,
    };
    let create = "create workflows.tinkerbell.org default/<b>";
    let lines = [line("jane", create, 201, false), line("joe", "post /users", 403, true)];
    users::audit(&view, &owner(), &lines, "j")
}

fn pages() -> Vec<(&'static str, String)> {
    let shown = |page: Page| page.html(&example::working(), &owner());
    vec![
        ("now", shown(Page::Now)),
        ("now-calm", Page::Now.html(&example::calm(), &owner())),
        ("now-stopped", Page::Now.html(&example::dhcp_stopped(), &owner())),
        ("machines", shown(Page::Machines)),
        ("machine", shown(Page::Machine("nuc-07".to_owned(), Tab::History))),
        ("machine-unknown", shown(Page::Machine("nuc-<b>".to_owned(), Tab::History))),
        ("console", shown(Page::Machine("nuc-07".to_owned(), Tab::Console))),
        ("machine-hardware", tab(Tab::Hardware)),
        ("machine-bmc", tab(Tab::Bmc)),
        ("machine-yaml", tab(Tab::Yaml)),
        ("workflows", shown(Page::Workflows)),
        ("workflow", workflow("wf-14")),
        ("workflow-unknown", shown(Page::Workflow("wf-<b>".to_owned()))),
        ("workflows-none", Page::Workflows.html(&StatusView::default(), &owner())),
        ("network", shown(Page::Network)),
        ("images", shown(Page::Images)),
        ("images-none", Page::Images.html(&StatusView::default(), &owner())),
        ("os-images", os_image_list()),
        ("cluster-api", clusters(&example::working())),
        ("cluster-api-none", clusters(&StatusView::default())),
        ("box", shown(Page::Box)),
        ("box-safe-mode", Page::Box.html(&example::safe_mode(), &owner())),
        ("confirm", confirmation("")),
        ("confirm-wrong", confirmation("This machine is called nuc-01, not <b>.")),
        ("install", installation(Action::Install, "nuc-12", &[])),
        ("install-new-wrong", installation(Action::Install, "54:b2:03:a1:4c:01", &mistakes())),
        ("add", installation(Action::Add, "54:b2:03:a1:4c:01", &[])),
        ("now-viewer", Page::Now.html(&example::working(), &visitor(UserRole::Viewer))),
        ("box-viewer", Page::Box.html(&example::working(), &visitor(UserRole::Viewer))),
        ("users", user_list()),
        ("user", users::one(&example::calm(), &owner(), &visitor(UserRole::Viewer).user, "")),
        ("user-admin", users::one(&example::calm(), &owner(), &visitor(UserRole::Admin).user, "")),
        ("account", users::account(&example::calm(), &visitor(UserRole::Operator))),
        ("audit", audit()),
        ("tokens", token_list()),
        ("settings", settings::page(&[])),
        ("settings-wrong", settings::page(&["line 1: name <b> is too long".to_owned()])),
        ("settings-revision", settings::revision_page()),
        ("help", shown(Page::Help)),
        ("claim", claim(&example::unclaimed(), true, ("7KQ4M2", "10.20.30.40"), "")),
        ("claim-process", claim(&example::unclaimed(), false, ("7KQ4M2", "10.20.30.40"), "")),
        ("claim-wrong", claim(&example::unclaimed(), true, ("", "10.20.30.40"), "Wrong code.")),
        ("login", login(&example::calm(), "", "")),
        ("setup-network", nics(&example::calm(), &two_cards(), CSRF, "")),
        ("setup-network-wrong", nics(&example::calm(), &two_cards(), CSRF, "Not <here>.")),
        ("setup-time", times(&example::calm(), (&night(), &["Europe/Berlin", "UTC"]), CSRF, "")),
        ("setup-done", done(&example::calm(), &two_cards(), true, CSRF)),
        ("setup-done-skipped", done(&example::calm(), &[], false, CSRF)),
    ]
}

#[test]
fn every_page_is_as_it_should_be() {
    let mut wrong = Vec::new();
    for (name, html) in pages() {
        wrong.extend(golden::compare(&format!("{name}.html"), &html).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_page_is_heavy_or_brings_script_or_style_of_its_own() {
    for (name, html) in pages() {
        assert!(!html.contains("style="), "{name}");
        let attributes = html.split(['<', '>']).flat_map(str::split_whitespace);
        let handlers = attributes.filter(|it| it.starts_with("on") && it.contains('='));
        assert!(!html.contains("<style") && handlers.count() == 0, "{name}");
        assert_eq!(html.matches("<script").count(), html.matches("<script src=\"/").count());
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        let console = if html.contains("/console.js") { CONSOLE_SCRIPT } else { "" };
        for text in [&html, STYLE, SCRIPT, console] {
            packed.write_all(text.as_bytes()).unwrap();
        }
        let bytes = packed.finish().unwrap().len();
        assert!(bytes <= PAGE_BYTES_MAX, "{name} weighs {bytes} bytes");
    }
}

#[test]
fn names_of_others_are_only_text() {
    let html = pages().into_iter().find(|(name, _)| *name == "machine-unknown").unwrap().1;
    assert!(html.contains("nuc-&#60;b&#62;") && !html.contains("nuc-<b>"));
}

#[test]
fn the_manual_is_below_help() {
    let page = Page::at("/help/how-to/networks").unwrap();
    let html = page.html(&example::calm(), &owner());
    assert!(html.contains("<h1 id=\"serve-a-network\">Serve a network</h1>"), "{html}");
    assert!(html.contains("aria-current=\"page\">Help</a>"), "{html}");
    assert_eq!(Page::at("/help/how-to/none"), None);
    let start = Page::Help.html(&example::calm(), &owner());
    for link in start.split("href=\"/help/").skip(1).filter_map(|it| it.split('"').next()) {
        assert!(help::page(link).is_some(), "{link}");
    }
    assert!(start.contains(&format!("/help/{}", help::MAP)));
}

#[test]
fn every_page_of_safe_mode_says_so() {
    let view = example::safe_mode();
    let message =
        "This box is in safe mode, without its settings: somebody chose it in the boot menu";
    let here =
        [Page::Now, Page::Machines, Page::Box, Page::Help].map(|page| page.html(&view, &owner()));
    let before = [login(&view, "", ""), claim(&view, true, ("", "10.0.0.9"), "")];
    for html in here.into_iter().chain(before) {
        assert!(html.contains(message), "{html}");
    }
}

#[test]
fn a_guest_s_page_has_no_form_that_leaves_it() {
    let form = "action=\"/box/leave\"";
    assert!(Page::Box.html(&example::working(), &owner()).contains(form));
    assert!(!Page::Box.html(&StatusView::default(), &owner()).contains(form));
}

#[test]
fn a_machine_has_its_own_path() {
    for name in ["nuc-07", "a b/c", "ä"] {
        let path = crate::link(name);
        let found = Page::at(&path);
        match name.contains('/') {
            false => {
                assert_eq!(found, Some(Page::Machine(name.to_owned(), Tab::History)), "{path}")
            }
            true => assert_eq!(found, None, "{path}"),
        }
    }
    assert_eq!(Page::at("/machines/"), None);
    assert_eq!(Page::at("/nowhere"), None);
}

#[test]
fn a_viewer_s_pages_have_no_button_that_changes_anything() {
    let viewer = visitor(UserRole::Viewer);
    let (view, more) = (example::working(), More::default());
    for page in [
        Page::Now,
        Page::Machine("nuc-07".into(), Tab::History),
        Page::Images,
        Page::Network,
        Page::Box,
    ] {
        let html = page.html_with(&view, &more, &viewer, "");
        let forms = html.split("method=\"post\" action=\"").skip(1);
        let paths: Vec<&str> = forms.filter_map(|it| it.split('"').next()).collect();
        assert_eq!(paths, ["/logout", "/theme"], "{page:?}");
    }
    let html = Page::Now.html(&view, &visitor(UserRole::Operator));
    assert!(html.contains("action=\"/machines/nuc-07/retry\""), "{html}");
}
