//! Requests of WS-Management (DSP0226) as XML.

use std::fmt::Write as _;

/// Namespace of SOAP 1.2.
pub const SOAP: &str = "http://www.w3.org/2003/05/soap-envelope";
/// Namespace of WS-Addressing, August 2004.
pub const ADDRESSING: &str = "http://schemas.xmlsoap.org/ws/2004/08/addressing";
/// Namespace of WS-Management (DSP0226).
pub const WSMAN: &str = "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd";
/// Namespace of WS-Transfer, September 2004.
pub const TRANSFER: &str = "http://schemas.xmlsoap.org/ws/2004/09/transfer";
/// Namespace of WS-Enumeration, September 2004.
pub const ENUMERATION: &str = "http://schemas.xmlsoap.org/ws/2004/09/enumeration";

/// Time that AMT may spend on one request (ISO 8601). The client's limit is shorter.
const OPERATION_TIMEOUT: &str = "PT60S";
/// Items of one page of an enumeration.
const PAGE_ITEMS: u32 = 999;
/// Characters of one page of an enumeration.
const PAGE_CHARACTERS: u32 = 99_999;

/// Name of a class, with the prefix that selects its namespace: `AMT_`, `IPS_` or `CIM_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Class(pub &'static str);

impl Class {
    /// Returns the resource URI, which is also the namespace of the class.
    pub fn uri(self) -> String {
        let schema = match self.0.get(..4) {
            Some("AMT_") => "http://intel.com/wbem/wscim/1/amt-schema/1",
            Some("IPS_") => "http://intel.com/wbem/wscim/1/ips-schema/1",
            _ => "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2",
        };
        format!("{schema}/{}", self.0)
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// Keys of one instance of a class.
pub type Selectors<'a> = &'a [(&'a str, &'a str)];

/// Parameter of a method.
#[derive(Debug, Clone, Copy)]
pub enum Parameter<'a> {
    /// Name and plain value.
    Text(&'a str, &'a str),
    /// Name and reference to an instance.
    Reference(&'a str, Class, Selectors<'a>),
}

/// Request to one class.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the request for messages, such as `CIM_BootService.SetBootConfigRole`.
    pub name: String,
    /// Class that receives the request.
    pub class: Class,
    /// True if a second execution does no harm.
    pub may_repeat: bool,
    action: String,
    selectors: String,
    body: String,
}

impl Request {
    /// Reads the instance with the keys `selectors`.
    pub fn get(class: Class, selectors: Selectors<'_>) -> Self {
        let action = format!("{TRANSFER}/Get");
        let selectors = selector_set(selectors);
        Self { selectors, ..Self::new(class, "Get", action, String::new()) }
    }

    /// Replaces one instance with `fields`, in the order of the schema.
    pub fn put(class: Class, selectors: Selectors<'_>, fields: &[(String, String)]) -> Self {
        let uri = class.uri();
        let mut body = format!("<h:{class} xmlns:h=\"{uri}\">");
        for (name, value) in fields {
            let _ = write!(body, "<h:{name}>{}</h:{name}>", escaped(value));
        }
        let _ = write!(body, "</h:{class}>");
        let action = format!("{TRANSFER}/Put");
        let selectors = selector_set(selectors);
        Self { selectors, ..Self::new(class, "Put", action, body) }
    }

    /// Calls a method. `parameters` must be in the order of the schema.
    pub fn invoke(class: Class, method: &str, parameters: &[Parameter<'_>]) -> Self {
        let uri = class.uri();
        let mut body = format!("<h:{method}_INPUT xmlns:h=\"{uri}\">");
        for parameter in parameters {
            match parameter {
                Parameter::Text(name, value) => {
                    let _ = write!(body, "<h:{name}>{}</h:{name}>", escaped(value));
                }
                Parameter::Reference(name, class, selectors) => {
                    let _ = write!(
                        body,
                        "<h:{name}><a:Address>{ADDRESSING}</a:Address>\
                         <a:ReferenceParameters><w:ResourceURI>{}</w:ResourceURI>{}\
                         </a:ReferenceParameters></h:{name}>",
                        class.uri(),
                        selector_set(selectors),
                    );
                }
            }
        }
        let _ = write!(body, "</h:{method}_INPUT>");
        Self::new(class, method, format!("{uri}/{method}"), body)
    }

    /// Begins an enumeration of all instances.
    pub fn enumerate(class: Class) -> Self {
        let body = format!("<n:Enumerate xmlns:n=\"{ENUMERATION}\"></n:Enumerate>");
        Self::new(class, "Enumerate", format!("{ENUMERATION}/Enumerate"), body)
    }

    /// Reads the next page of the enumeration `context`.
    pub fn pull(class: Class, context: &str) -> Self {
        let body = format!(
            "<n:Pull xmlns:n=\"{ENUMERATION}\"><n:EnumerationContext>{}</n:EnumerationContext>\
             <n:MaxElements>{PAGE_ITEMS}</n:MaxElements>\
             <n:MaxCharacters>{PAGE_CHARACTERS}</n:MaxCharacters></n:Pull>",
            escaped(context)
        );
        Self::new(class, "Pull", format!("{ENUMERATION}/Pull"), body)
    }

    /// Marks a request that must not be executed twice.
    pub fn only_once(mut self) -> Self {
        self.may_repeat = false;
        self
    }

    /// Returns the XML of the request with the number `id`, which the answer repeats.
    pub fn envelope(&self, id: u64) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><s:Envelope xmlns:s=\"{SOAP}\" \
             xmlns:a=\"{ADDRESSING}\" xmlns:w=\"{WSMAN}\"><s:Header><a:Action>{}</a:Action>\
             <a:To>/wsman</a:To><w:ResourceURI>{}</w:ResourceURI><a:MessageID>{id}</a:MessageID>\
             <a:ReplyTo><a:Address>{ADDRESSING}/role/anonymous</a:Address></a:ReplyTo>\
             <w:OperationTimeout>{OPERATION_TIMEOUT}</w:OperationTimeout>{}</s:Header>\
             <s:Body>{}</s:Body></s:Envelope>",
            self.action,
            self.class.uri(),
            self.selectors,
            self.body,
        )
    }

    fn new(class: Class, verb: &str, action: String, body: String) -> Self {
        let name = format!("{class}.{verb}");
        Self { name, class, may_repeat: true, action, selectors: String::new(), body }
    }
}

fn selector_set(selectors: Selectors<'_>) -> String {
    if selectors.is_empty() {
        return String::new();
    }
    let mut text = "<w:SelectorSet>".to_owned();
    for (name, value) in selectors {
        let _ = write!(text, "<w:Selector Name=\"{}\">", escaped(name));
        let _ = write!(text, "{}</w:Selector>", escaped(value));
    }
    text + "</w:SelectorSet>"
}

/// Escapes text for an element or an attribute. Characters that XML 1.0 forbids are left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(char),
            '\u{FFFE}' | '\u{FFFF}' => {}
            char if char < ' ' => {}
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{Class, Parameter, Request, SOAP, WSMAN};

    const SYSTEM: &[(&str, &str)] =
        &[("CreationClassName", "CIM_ComputerSystem"), ("Name", "ManagedSystem")];

    #[test]
    fn a_method_has_its_parameters_in_order() {
        let parameters = [
            Parameter::Text("PowerState", "8"),
            Parameter::Reference("ManagedElement", Class("CIM_ComputerSystem"), SYSTEM),
        ];
        let class = Class("CIM_PowerManagementService");
        let request = Request::invoke(class, "RequestPowerStateChange", &parameters).only_once();
        assert_eq!(request.name, "CIM_PowerManagementService.RequestPowerStateChange");
        assert!(!request.may_repeat);
        let text = request.envelope(7);
        let document = roxmltree::Document::parse(&text).unwrap();
        let find = |namespace, name| {
            document.descendants().find(|node| node.has_tag_name((namespace, name))).unwrap()
        };
        let uri = class.uri();
        let input = find(uri.as_str(), "RequestPowerStateChange_INPUT");
        let names: Vec<_> = input.children().map(|node| node.tag_name().name()).collect();
        assert_eq!(names, ["PowerState", "ManagedElement"]);
        assert!(find(SOAP, "Header").descendants().any(|node| node.text() == Some("7")));
        let selectors: Vec<_> = find(WSMAN, "SelectorSet")
            .children()
            .map(|node| (node.attribute("Name").unwrap(), node.text().unwrap()))
            .collect();
        assert_eq!(selectors, SYSTEM);
    }

    #[test]
    fn values_are_escaped() {
        let fields = [("Name".to_owned(), "a<b>&\"c\"\u{1}".to_owned())];
        let text = Request::put(Class("AMT_Thing"), &[("Id", "<'\">")], &fields).envelope(1);
        let document = roxmltree::Document::parse(&text).unwrap();
        let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"a<b>&\"c\""), "{texts:?}");
        assert!(texts.contains(&"<'\">"), "{texts:?}");
    }
}
