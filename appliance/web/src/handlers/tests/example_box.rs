//! Box with files in memory and made-up data, for tests of the pages.

use image_catalog::CheckedImage;
use status::settings::{Revision, SettingsReport};

use super::super::FileBody;
use super::super::setup::settings::{SettingsRefusal, SettingsText};
use super::*;

#[derive(Default)]
pub struct Memory(Mutex<HashMap<String, Vec<u8>>>);

impl PrivateFiles for Memory {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().insert(name.to_owned(), content.to_vec());
        Ok(())
    }
}

/// Source that records the box actions and page requests it receives, with objects in memory.
pub struct Example {
    pub left: Arc<Mutex<Vec<BoxAction>>>,
    pub requests: Arc<Mutex<Vec<PageRequest>>>,
    pub objects: Arc<objects::fake::Memory>,
    pub actions: MachineActions,
    pub texts: Texts,
    pub is_firmware: bool,
}

/// Settings in memory: revisions, oldest first. The checksum of a text is its number.
pub struct Texts(pub Mutex<Vec<(String, String)>>);

impl SettingsText for Texts {
    fn report(&self) -> Result<SettingsReport, String> {
        let all = self.0.lock().unwrap();
        let (text, sum) = (all[all.len() - 1].0.clone(), all.len().to_string());
        Ok(SettingsReport { text, sum, ..SettingsReport::default() })
    }
    fn history(&self) -> Result<Vec<Revision>, String> {
        let all = self.0.lock().unwrap();
        let revision = |(at, (_, actor)): (usize, &(String, String))| Revision {
            number: u32::try_from(at + 1).unwrap(),
            actor: actor.clone(),
            current: at + 1 == all.len(),
            ..Revision::default()
        };
        Ok(all.iter().enumerate().map(revision).collect())
    }
    fn diff(&self, revision: u32) -> Result<String, String> {
        let all = self.0.lock().unwrap();
        let old = all.get(usize::try_from(revision).unwrap() - 1);
        old.map(|(text, _)| format!("-{text}")).ok_or("Revision does not exist.".to_owned())
    }
    fn replace(&self, based: &str, by: (&str, &str), text: &str) -> Result<(), SettingsRefusal> {
        let mut all = self.0.lock().unwrap();
        if based != all.len().to_string() {
            return Err(SettingsRefusal::Why("Another person saved meanwhile.".to_owned()));
        }
        if !text.starts_with("name") {
            let mistake = "line 1: the key <x> does not exist".to_owned();
            return Err(SettingsRefusal::Mistakes(vec![mistake]));
        }
        all.push((text.to_owned(), format!("{} ({})", by.0, by.1)));
        Ok(())
    }
    fn restore(&self, based: &str, actor: &str, revision: u32) -> Result<(), SettingsRefusal> {
        let at = usize::try_from(revision).unwrap() - 1;
        let text = self.0.lock().unwrap()[at].0.clone();
        self.replace(based, (actor, ""), &text)
    }
}

impl Default for Example {
    fn default() -> Self {
        let objects = Arc::<objects::fake::Memory>::default();
        let actions = MachineActions { objects: objects.clone() };
        let texts = Texts(Mutex::new(vec![("name = \"first\"".to_owned(), "setup".to_owned())]));
        let (left, requests) = (Arc::default(), Arc::default());
        Self { left, requests, objects, actions, texts, is_firmware: true }
    }
}

/// Machine that asked for an address and has no Hardware.
fn new_machine(mac: &str) -> Machine {
    let mac: stdx::MacAddr = mac.parse().unwrap();
    let (name, state) = (format!("{mac}").into(), MachineState::New);
    Machine { name, state, mac: Some(mac), ..Machine::default() }
}

impl Source for Example {
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>> {
        Box::pin(async {
            let mut view = example::working();
            view.system.flash_life_percent = Some(90);
            view.machines.extend(["54:b2:03:a1:4c:01", "54:b2:03:a1:4c:02"].map(new_machine));
            view
        })
    }
    fn rights<'a>(&'a self, user: &'a User) -> Pin<Box<dyn Future<Output = Rights> + Send + 'a>> {
        Box::pin(async { rights(user.role) })
    }
    fn settings(&self) -> Option<&dyn SettingsText> {
        self.is_firmware.then_some(&self.texts as _)
    }
    fn machine_tab<'a>(
        &'a self,
        machine: &'a str,
        tab: Tab,
    ) -> Pin<Box<dyn Future<Output = Vec<Section>> + Send + 'a>> {
        let content = SectionContent::Text(format!("{tab:?} of {machine}"));
        Box::pin(async { vec![Section { heading: "Example", content }] })
    }
    fn audit(&self, filter: &str, _: usize) -> Result<Vec<AuditLine>, String> {
        let records = self.requests.lock().unwrap();
        let line = |it: &PageRequest| AuditLine {
            at: jiff::Timestamp::UNIX_EPOCH,
            user: it.user.clone(),
            request: format!("{} {}", it.method, it.path),
            from: String::new(),
            code: it.code,
            failed: it.code >= 400,
        };
        let lines = records.iter().rev().map(line);
        Ok(lines.filter(|it| it.user.contains(filter)).collect())
    }
    fn panel(&self, _: &StatusView) -> Option<Vec<u8>> {
        None
    }
    fn kubeconfig(&self, host: &str) -> Option<String> {
        Some(format!("server: https://{host}:6443"))
    }
    fn rotate(&self) -> Result<(), String> {
        Ok(())
    }
    fn tokens(&self) -> Vec<AccessToken> {
        let (user, groups) = ("admin".to_owned(), vec!["system:masters".to_owned()]);
        vec![AccessToken { id: "9f86d081884c".to_owned(), user, groups, ..AccessToken::default() }]
    }
    fn create_token(&self, request: &TokenRequest, host: &str) -> Result<Secret, String> {
        match request.role.as_str() {
            "viewer" => Ok(Secret::from(format!("{} {} {host}", request.name, request.days))),
            role => Err(format!("there is no role {role}")),
        }
    }
    fn revoke_token(&self, id: &str) -> Result<(), String> {
        if id == "9f86d081884c" { Err("it is the last".to_owned()) } else { Ok(()) }
    }
    fn ca_pem(&self) -> String {
        "PEM".to_owned()
    }
    fn backup(&self, passphrase: Secret) -> SourceFuture<'_, Download> {
        let text = format!("sealed with {} letters", passphrase.expose().len());
        let (name, size) = ("box.boxbak".to_owned(), text.len() as u64);
        Box::pin(async move { Ok(Download { name, size, body: text.into() }) })
    }
    fn send_backup(&self) -> Result<(), String> {
        if self.is_firmware { Ok(()) } else { Err("No other server is configured.".to_owned()) }
    }
    fn restore(
        &self,
        mut pieces: Receiver<Bytes>,
        passphrase: Secret,
    ) -> SourceFuture<'_, BackupSummary> {
        Box::pin(async move {
            let mut file = Vec::new();
            while let Some(piece) = pieces.recv().await {
                file.extend(piece);
            }
            match (passphrase.expose(), file.as_slice()) {
                ("its own", b"a backup") => {
                    Ok(BackupSummary { name: "b".into(), ..BackupSummary::default() })
                }
                _ => Err("Wrong passphrase for this backup.".to_owned()),
            }
        })
    }
    fn install_update(&self, mut pieces: Receiver<Bytes>, at_once: bool) -> SourceFuture<'_, ()> {
        Box::pin(async move {
            let mut file = Vec::new();
            while let Some(piece) = pieces.recv().await {
                file.extend(piece);
            }
            match (file.as_slice(), at_once) {
                (b"signed", false) => Ok(()),
                _ => Err("The signature is not valid.".to_owned()),
            }
        })
    }
    fn update(&self, request: UpdateRequest) -> Result<(), String> {
        match request {
            UpdateRequest::RollBack => Ok(()),
            UpdateRequest::Restart => Err("No update waits for a restart.".to_owned()),
        }
    }
    fn upload_image(&self, image: CheckedImage, mut body: FileBody) -> SourceFuture<'_, ()> {
        Box::pin(async move {
            let mut file = Vec::new();
            while let Some(piece) = body.next().await {
                file.extend(piece?);
            }
            if file != b"disk" {
                return Err("The file is a web page or XML.".to_owned());
            }
            let url = format!("upload://box/{}.img", image.name);
            let object = serde_json::json!({
                "metadata": { "name": image.name, "namespace": "default" },
                "spec": { "url": url, "os": { "distro": "debian", "version": "13" } },
            });
            self.objects.put(api::os_image::OS_IMAGE, object);
            Ok(())
        })
    }
    fn image(&self, request: ImageRequest) -> SourceFuture<'_, String> {
        Box::pin(async move {
            match request.image.as_str() {
                "none" => Err("This box does not have this image.".to_owned()),
                _ => Ok("done".to_owned()),
            }
        })
    }
    fn restore_kept(&self, name: String) -> SourceFuture<'_, BackupSummary> {
        Box::pin(async move {
            match name.as_str() {
                "2026-11-25T02-30-00Z.boxbak" => {
                    Ok(BackupSummary { name: "b".into(), ..BackupSummary::default() })
                }
                _ => Err("There is none of that name.".to_owned()),
            }
        })
    }
    fn pair(&self, request: PairRequest) -> SourceFuture<'_, ()> {
        Box::pin(async move {
            match (request.name.as_str(), request.host.as_str()) {
                ("fleet", "10.0.0.9") => Ok(()),
                _ => Err("Nothing is known of this cluster.".to_owned()),
            }
        })
    }
    fn console<'a>(&'a self, machine: &'a str) -> SourceFuture<'a, ConsoleStream> {
        Box::pin(async move {
            // A machine that prints once, and is then silent.
            let output = stream::iter([Bytes::from_static(b"Booting\r\n")]);
            let console: ConsoleStream = Box::pin(output.chain(stream::pending()));
            (machine == "nuc-07").then_some(console).ok_or("No console.".to_owned())
        })
    }
    fn machine_actions(&self) -> &MachineActions {
        &self.actions
    }
    fn workflow<'a>(&'a self, name: &'a str) -> SourceFuture<'a, Option<WorkDetails>> {
        Box::pin(async move {
            let object = self.objects.peek(WORKFLOW, name);
            Ok(object.map(|it| WorkDetails::of(&serde_json::from_value(it).unwrap())))
        })
    }
    fn machine_log(&self, machine: &str) -> Vec<LogLine> {
        let text = format!("the agent of {machine} starts");
        vec![LogLine { program: "tinbox-agent".to_owned(), text, ..LogLine::default() }]
    }
    fn record(&self, request: PageRequest) {
        self.requests.lock().unwrap().push(request);
    }
    fn leave(&self, leaving: BoxAction) -> Result<(), String> {
        if leaving == BoxAction::PowerOff {
            return Err("the disk is full".to_owned());
        }
        self.left.lock().unwrap().push(leaving);
        Ok(())
    }
}
