//! State of the engine and its machine, and the execution of requests.

mod https_boot;
mod log;
mod methods;

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::Arc;

use roxmltree::Document;

use super::Behavior;
use super::chassis::Chassis;
use super::http::{Answer, HttpRequest};
use super::instances::{Instance, class_uri};
use super::login::{Logins, Verdict};
use super::redirection::SerialPort;
use super::soap::{self, ADDRESSING, ENUMERATION, Reply, Request};

/// Values of `PowerState`: on, and off (soft).
pub const ON: u32 = 2;
pub const OFF: u32 = 8;
/// Fields of AMT_BootSettingData that a client must not write.
const READ_ONLY: [&str; 8] = [
    "BIOSLastStatus",
    "BootguardStatus",
    "OptionsCleared",
    "RPEEnabled",
    "SecureBootControlEnabled",
    "UEFIHTTPSBootEnabled",
    "UEFILocalPBABootEnabled",
    "WinREBootEnabled",
];
/// Fields of AMT_BootSettingData, in the order of the schema.
const BOOT_SETTINGS: [(&str, &str); 27] = [
    ("BIOSLastStatus", "0"),
    ("BIOSPause", "false"),
    ("BIOSSetup", "false"),
    ("BootMediaIndex", "0"),
    ("BootguardStatus", "127"),
    ("ConfigurationDataReset", "false"),
    ("ElementName", "Intel(r) AMT Boot Configuration Settings"),
    ("EnforceSecureBoot", "false"),
    ("FirmwareVerbosity", "0"),
    ("ForcedProgressEvents", "false"),
    ("IDERBootDevice", "0"),
    ("InstanceID", "Intel(r) AMT:BootSettingData 0"),
    ("LockKeyboard", "false"),
    ("LockPowerButton", "false"),
    ("LockResetButton", "false"),
    ("LockSleepButton", "false"),
    ("OptionsCleared", "true"),
    ("OwningEntity", "Intel(r) AMT"),
    ("ReflashBIOS", "false"),
    ("SecureBootControlEnabled", "false"),
    ("SecureErase", "false"),
    ("UEFIHTTPSBootEnabled", "false"),
    ("UefiBootNumberOfParams", "0"),
    ("UseIDER", "true"),
    ("UseSOL", "false"),
    ("UseSafeMode", "false"),
    ("UserPasswordBypass", "true"),
];

/// Reaction to a request.
#[derive(Debug)]
pub enum Outcome {
    /// The engine sends an answer.
    Answer(Answer),
    /// The engine ends the connection without an answer.
    Cut,
    /// The engine does not answer.
    Silence,
}

/// Result of an executed request.
enum Executed {
    Done {
        action: String,
        uri: String,
        inner: String,
        body: String,
    },
    Fault(&'static str, &'static str),
    /// Page in HTML with status 400.
    Page(&'static str),
    Cut,
}

/// State of the engine and its machine.
#[derive(Debug)]
pub struct Firmware {
    pub behavior: Behavior,
    pub login: Logins,
    pub power: u32,
    /// Machine that the engine controls; `None` for a simulated one.
    pub chassis: Option<Arc<dyn Chassis>>,
    /// State that readings still show, and their number.
    shown: (u32, u32),
    pub standby: u32,
    pub redirection: u32,
    pub listens: bool,
    pub serial: Arc<SerialPort>,
    pub boots: Vec<String>,
    /// Records of the event log, oldest first.
    pub records: Vec<[u8; 21]>,
    pub executed: Vec<String>,
    /// Every connection since the start.
    pub streams: Vec<TcpStream>,
    source: Option<String>,
    is_next: bool,
    /// True if the listeners have TLS.
    pub has_tls: bool,
    /// URL of the next boot by UEFI HTTPS; the engine does not show it.
    boot_url: Option<String>,
    /// Trusted root certificates, in Base64.
    pub roots: Vec<String>,
    /// Last parameters of a boot by UEFI HTTPS, in Base64; empty without.
    pub boot_parameters: String,
    boot_settings: Vec<(String, String)>,
    /// Class, mode and position of the open enumerations.
    contexts: HashMap<String, (String, bool, usize)>,
    messages: u64,
}

impl Firmware {
    pub fn new(behavior: Behavior, serial: Arc<SerialPort>) -> Self {
        let settings = BOOT_SETTINGS.iter().map(|(name, value)| (*name, *value));
        Self {
            behavior,
            login: Logins::default(),
            power: OFF,
            chassis: None,
            shown: (OFF, 0),
            standby: 2,
            redirection: 32_771,
            listens: true,
            serial,
            boots: Vec::new(),
            records: Vec::new(),
            executed: Vec::new(),
            streams: Vec::new(),
            source: None,
            is_next: false,
            has_tls: false,
            boot_url: None,
            roots: Vec::new(),
            boot_parameters: String::new(),
            boot_settings: settings.map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
            contexts: HashMap::new(),
            messages: 0,
        }
    }

    /// Answers one HTTP request.
    pub fn answer(&mut self, request: &HttpRequest) -> Outcome {
        if self.behavior.asleep {
            return Outcome::Silence;
        }
        if let Some(chassis) = &self.chassis {
            self.power = if chassis.is_on() { ON } else { OFF };
        }
        let uses = self.behavior.nonce_uses;
        let verdict = self.login.verify(request.authorization.as_deref(), uses);
        if let Verdict::Challenged { is_stale } = verdict {
            let page = Answer::page(401, "Unauthorized. The account may be temporarily locked.");
            let challenge = Some(self.login.challenge(is_stale));
            return Outcome::Answer(Answer { challenge, ..page });
        }
        if let Some(status) = self.behavior.page {
            return Outcome::Answer(Answer::page(status, "This page cannot be shown."));
        }
        let text = String::from_utf8_lossy(&request.body);
        let document = Document::parse(&text);
        let Some(request) = document.as_ref().ok().and_then(Request::read) else {
            return Outcome::Answer(Answer::page(400, "Bad Request. Missing required parameter"));
        };
        self.messages += 1;
        let content_type = match self.behavior.octet_stream {
            true => "application/octet-stream",
            false => "application/soap+xml; charset=UTF-8",
        };
        let (status, reply) = match self.execute(&request) {
            Executed::Cut => return Outcome::Cut,
            Executed::Page(text) => return Outcome::Answer(Answer::page(400, text)),
            Executed::Done { action, uri, inner, body } => {
                (200, Reply { action, uri, inner, body })
            }
            Executed::Fault(subcode, reason) => {
                let action = format!("{ADDRESSING}/fault");
                let body = soap::fault(subcode, reason);
                let (uri, inner) = (request.uri.clone(), request.uri.clone());
                (400, Reply { action, uri, inner, body })
            }
        };
        let mut body = soap::envelope(&reply, &request, self.messages);
        if let Some(garbled) = self.behavior.garbled.clone().filter(|_| status == 200) {
            body = garbled;
        }
        let closes = status != 200;
        Outcome::Answer(Answer { status, content_type, challenge: None, closes, body })
    }

    fn execute(&mut self, request: &Request<'_>) -> Executed {
        let unreachable = Executed::Fault("b:DestinationUnreachable", "No route to the resource.");
        let class = request.class.as_str();
        if self.behavior.absent.contains(&class) {
            return unreachable;
        }
        if request.uri != class_uri(class) {
            return unreachable;
        }
        self.note(request);
        if self.behavior.redirection_denied && class == "AMT_RedirectionService" {
            return Executed::Fault("b:AccessDenied", "The sender was not authorized.");
        }
        match request.verb() {
            "Get" => self.get(request).unwrap_or(unreachable),
            "Enumerate" => self.enumerate(request),
            "Pull" => self.pull(request),
            "Put" if class == "AMT_BootSettingData" => self.put(request),
            "Put" if class == "AMT_RedirectionService" => {
                self.listens = request.parameter("ListenerEnabled").as_deref() == Some("true");
                self.get(request).unwrap_or(unreachable)
            }
            method => {
                let output = format!("{method}_OUTPUT");
                let done = match class {
                    "AMT_MessageLog" => self.read_log(request, method),
                    _ => self.invoke(request, method).map(|value| (String::new(), value)),
                };
                let (values, value) = match done {
                    Ok(done) => done,
                    Err(executed) => return executed,
                };
                let action = format!("{}Response", request.action);
                let value = format!("<g:ReturnValue>{value}</g:ReturnValue>");
                let body = format!("<g:{output}>{values}{value}</g:{output}>");
                let uri = request.uri.clone();
                Executed::Done { action, inner: uri.clone(), uri, body }
            }
        }
    }

    /// Returns true if the firmware accepts a session of serial-over-LAN.
    pub fn offers_console(&self) -> bool {
        self.listens && matches!(self.redirection, 32_770 | 32_771)
    }

    fn note(&mut self, request: &Request<'_>) {
        let detail = ["PowerState", "RequestedState", "OSPowerSavingState", "Role"]
            .into_iter()
            .find_map(|name| request.parameter(name))
            .or_else(|| {
                let source = request.reference("Source", "InstanceID")?;
                Some(source.replace("Intel(r) AMT: Force ", ""))
            });
        let detail = detail.map(|detail| format!(" {detail}")).unwrap_or_default();
        self.executed.push(format!("{}.{}{detail}", request.class, request.verb()));
    }

    fn get(&mut self, request: &Request<'_>) -> Option<Executed> {
        let instances = self.read(&request.class)?;
        let mut matching = instances.iter().filter(|one| one.matches(&request.selectors));
        let found = matching.next()?;
        let body = found.xml(&request.class, "g");
        let action = format!("{}Response", request.action);
        let uri = request.uri.clone();
        Some(Executed::Done { action, inner: uri.clone(), uri, body })
    }

    /// Instances of a class, as a reading by a client.
    fn read(&mut self, class: &str) -> Option<Vec<Instance>> {
        let shown = match self.shown {
            (state, left) if left > 0 && class == "CIM_AssociatedPowerManagementService" => {
                self.shown.1 -= 1;
                state
            }
            _ => self.power,
        };
        Instance::of_class(self, class, shown)
    }

    fn enumerate(&mut self, request: &Request<'_>) -> Executed {
        let class = request.class.clone();
        if self.behavior.enumerations_refused.contains(&class.as_str()) {
            return Executed::Page("Bad Request");
        }
        if Instance::of_class(self, &class, self.power).is_none() {
            return Executed::Fault("b:DestinationUnreachable", "No route to the resource.");
        }
        let is_reference = request.parameter("EnumerationMode").as_deref() == Some("EnumerateEPR");
        let context = self.new_context(class, is_reference, 0);
        let body = format!(
            "<g:EnumerateResponse><g:EnumerationContext>{context}</g:EnumerationContext>\
             </g:EnumerateResponse>"
        );
        let action = format!("{}Response", request.action);
        let inner = request.uri.clone();
        Executed::Done { action, uri: ENUMERATION.to_owned(), inner, body }
    }

    fn new_context(&mut self, class: String, is_reference: bool, position: usize) -> String {
        let context =
            format!("{:08X}-0000-0000-0000-000000000000", (self.messages as u32).swap_bytes());
        self.contexts.insert(context.clone(), (class, is_reference, position));
        context
    }

    fn pull(&mut self, request: &Request<'_>) -> Executed {
        let context = request.parameter("EnumerationContext").unwrap_or_default();
        let Some((class, is_reference, position)) = self.contexts.remove(&context) else {
            return Executed::Fault("g:InvalidEnumerationContext", "The context is not valid.");
        };
        let instances = self.read(&class).unwrap_or_default();
        let size = match self.behavior.page_items {
            0 => usize::MAX,
            size => size,
        };
        let uri = class_uri(&class);
        let items: String = instances
            .iter()
            .skip(position)
            .take(size)
            .map(|one| match is_reference {
                true => format!(
                    "<b:EndpointReference>{}</b:EndpointReference>",
                    soap::reference(&uri, &one.keys)
                ),
                false => one.xml(&class, "h"),
            })
            .collect();
        let next = position.saturating_add(size);
        let end = match next < instances.len() {
            true => {
                let context = self.new_context(class, is_reference, next);
                format!("<g:EnumerationContext>{context}</g:EnumerationContext>")
            }
            false => "<g:EndOfSequence></g:EndOfSequence>".to_owned(),
        };
        let body = format!("<g:PullResponse><g:Items>{items}</g:Items>{end}</g:PullResponse>");
        let action = format!("{}Response", request.action);
        Executed::Done { action, uri: ENUMERATION.to_owned(), inner: uri, body }
    }

    /// Value of a field of AMT_BootSettingData.
    pub fn boot_setting(&self, name: &str) -> &str {
        let found = self.boot_settings.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn set_boot_setting(&mut self, name: &str, value: &str) {
        if let Some((_, old)) = self.boot_settings.iter_mut().find(|(field, _)| field == name) {
            value.clone_into(old);
        }
    }

    fn put(&mut self, request: &Request<'_>) -> Executed {
        let refused = Executed::Fault("c:InvalidRepresentation", "The XML content is not valid.");
        let Some(body) = request.body else { return refused };
        let fields: Vec<(String, String)> = body
            .children()
            .filter(|field| field.is_element())
            .map(|field| {
                (field.tag_name().name().to_owned(), field.text().unwrap_or_default().to_owned())
            })
            .collect();
        let is_read_only = |(name, _): &(String, String)| READ_ONLY.contains(&name.as_str());
        let is_setup = |(name, value): &(String, String)| name == "BIOSSetup" && value == "true";
        if fields.iter().any(is_read_only) || (self.source.is_some() && fields.iter().any(is_setup))
        {
            return refused;
        }
        match self.requested_url(&fields) {
            Ok(url) => self.boot_url = url,
            Err(()) => return refused,
        }
        let array = fields.iter().find(|(name, _)| name == "UefiBootParametersArray");
        self.boot_parameters = array.map(|(_, text)| text.clone()).unwrap_or_default();
        for (name, value) in &fields {
            self.set_boot_setting(name, value);
        }
        self.set_boot_setting("OptionsCleared", "false");
        self.get(request).map_or(refused, |done| match done {
            Executed::Done { uri, inner, body, .. } => {
                Executed::Done { action: format!("{}Response", request.action), uri, inner, body }
            }
            other => other,
        })
    }
}
