//! SOAP messages of the engine: reads requests with any prefixes, and writes answers as AMT does,
//! with all namespaces on the envelope and no empty-element tags.

use roxmltree::{Document, Node};

pub const SOAP: &str = "http://www.w3.org/2003/05/soap-envelope";
pub const ADDRESSING: &str = "http://schemas.xmlsoap.org/ws/2004/08/addressing";
pub const WSMAN: &str = "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd";
pub const ENUMERATION: &str = "http://schemas.xmlsoap.org/ws/2004/09/enumeration";

/// Request of a client.
#[derive(Debug)]
pub struct Request<'a> {
    pub action: String,
    /// Class name at the end of the resource URI.
    pub class: String,
    pub uri: String,
    pub message_id: String,
    pub selectors: Vec<(String, String)>,
    /// First element of the body.
    pub body: Option<Node<'a, 'a>>,
}

impl<'a> Request<'a> {
    /// Reads a request; `None` if it is not a SOAP envelope with the required headers.
    pub fn read(document: &'a Document<'a>) -> Option<Self> {
        let root = document.root_element();
        let header = child(root, "Header")?;
        let uri = text(header, "ResourceURI")?;
        Some(Self {
            action: text(header, "Action")?,
            class: uri.rsplit('/').next().unwrap_or_default().to_owned(),
            uri,
            message_id: text(header, "MessageID")?,
            selectors: child(header, "SelectorSet").map(selectors).unwrap_or_default(),
            body: child(root, "Body")?.first_element_child(),
        })
    }

    /// Last part of the action: `Get`, `Pull`, or the name of a method.
    pub fn verb(&self) -> &str {
        self.action.rsplit('/').next().unwrap_or_default()
    }

    /// Text of a parameter.
    pub fn parameter(&self, name: &str) -> Option<String> {
        text(self.body?, name)
    }

    /// Value of a key in a parameter that is a reference.
    pub fn reference(&self, name: &str, key: &str) -> Option<String> {
        let set = child(child(child(self.body?, name)?, "ReferenceParameters")?, "SelectorSet")?;
        selectors(set).into_iter().find(|(found, _)| found == key).map(|(_, value)| value)
    }
}

pub fn child<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    node.children().find(|child| child.is_element() && child.tag_name().name() == name)
}

fn text(node: Node<'_, '_>, name: &str) -> Option<String> {
    let found = node.children().find(|child| child.tag_name().name() == name)?;
    Some(found.text().unwrap_or_default().trim().to_owned())
}

fn selectors(set: Node<'_, '_>) -> Vec<(String, String)> {
    let items = set.children().filter(Node::is_element);
    items
        .filter_map(|item| {
            let value = item.text().unwrap_or_default().to_owned();
            // Some clients give the attribute the prefix of WS-Management.
            let name = item.attributes().find(|attribute| attribute.name() == "Name")?;
            Some((name.value().to_owned(), value))
        })
        .collect()
}

/// Parts of an answer. In `body`, the prefix `g` is `uri`, and `h` is `inner`.
pub struct Reply {
    pub action: String,
    pub uri: String,
    pub inner: String,
    pub body: String,
}

/// Writes the envelope of an answer with the number `number`.
pub fn envelope(reply: &Reply, request: &Request<'_>, number: u64) -> String {
    let (action, uri, inner, body) = (&reply.action, &reply.uri, &reply.inner, &reply.body);
    let (related, resource) = (escaped(&request.message_id), escaped(&request.uri));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><a:Envelope xmlns:a=\"{SOAP}\" \
         xmlns:b=\"{ADDRESSING}\" xmlns:c=\"{WSMAN}\" xmlns:g=\"{uri}\" xmlns:h=\"{inner}\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><a:Header>\
         <b:To>{ADDRESSING}/role/anonymous</b:To><b:RelatesTo>{related}</b:RelatesTo>\
         <b:Action a:mustUnderstand=\"true\">{action}</b:Action>\
         <b:MessageID>uuid:00000000-8086-8086-8086-{number:012X}</b:MessageID>\
         <c:ResourceURI>{resource}</c:ResourceURI></a:Header><a:Body>{body}</a:Body></a:Envelope>"
    )
}

/// Body of a fault with a subcode of the namespace `b` or `c`.
pub fn fault(subcode: &str, reason: &str) -> String {
    format!(
        "<a:Fault><a:Code><a:Value>a:Sender</a:Value><a:Subcode><a:Value>{subcode}</a:Value>\
         </a:Subcode></a:Code><a:Reason><a:Text xml:lang=\"en-US\">{reason}</a:Text></a:Reason>\
         <a:Detail></a:Detail></a:Fault>"
    )
}

/// Reference to an instance.
pub fn reference(uri: &str, keys: &[(&str, String)]) -> String {
    let keys: String = keys
        .iter()
        .map(|(name, value)| format!("<c:Selector Name=\"{name}\">{}</c:Selector>", escaped(value)))
        .collect();
    format!(
        "<b:Address>{ADDRESSING}/role/anonymous</b:Address><b:ReferenceParameters>\
         <c:ResourceURI>{uri}</c:ResourceURI><c:SelectorSet>{keys}</c:SelectorSet>\
         </b:ReferenceParameters>"
    )
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
