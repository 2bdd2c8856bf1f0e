//! Answers of WS-Management: XML to elements, SOAP faults and return values. Prefixes of namespaces
//! are not significant.

use roxmltree::{Document, Node, ParsingOptions};

use crate::envelope::{ADDRESSING, SOAP};

/// Maximum nodes of one answer. A page of 390 log records has about 1,200.
const NODES_MAX: u32 = 50_000;
/// Maximum nesting of elements. References to instances are the deepest known, with 9.
const DEPTH_MAX: usize = 32;
/// Maximum characters of a foreign text in an error.
const TEXT_CHARS_MAX: usize = 300;

/// Reason why an answer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The answer is not UTF-8.
    #[error("the answer is not UTF-8")]
    Encoding,
    /// The answer is not well-formed XML, or too large.
    #[error("the answer is not valid XML: {0}")]
    Xml(String),
    /// Elements are nested deeper than the limit.
    #[error("elements of the answer are nested deeper than {DEPTH_MAX}")]
    Depth,
    /// The root is not a SOAP 1.2 envelope with a body.
    #[error("the answer is not a SOAP 1.2 envelope with a body")]
    Envelope,
    /// The answer belongs to another request.
    #[error("the answer belongs to request {0:?}")]
    Unrelated(String),
    /// An element is missing.
    #[error("the answer has no element {0}")]
    Missing(&'static str),
    /// An element does not have the form of its type.
    #[error("expected {expected} in element {name}, found {found:?}")]
    Value {
        /// Name of the element.
        name: String,
        /// Type that was expected.
        expected: &'static str,
        /// Text that was found.
        found: String,
    },
    /// The answer has another element than requested.
    #[error("expected the element {expected}, found {found:?}")]
    Unexpected {
        /// Name that was expected.
        expected: String,
        /// Name that was found.
        found: String,
    },
}

/// XML element without its namespace prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Local name, without the prefix.
    pub name: String,
    /// Namespace URI; empty without a namespace.
    pub namespace: String,
    /// Text directly in the element, without surrounding white space.
    pub text: String,
    /// Attribute `Name`, the key of a selector.
    pub key: Option<String>,
    /// Elements in the element.
    pub children: Vec<Element>,
}

impl Element {
    fn read(node: Node<'_, '_>, depth: usize) -> Result<Self, Malformed> {
        if depth > DEPTH_MAX {
            return Err(Malformed::Depth);
        }
        let mut element = Self {
            name: node.tag_name().name().to_owned(),
            namespace: node.tag_name().namespace().unwrap_or_default().to_owned(),
            key: node.attribute("Name").map(str::to_owned),
            ..Self::default()
        };
        for child in node.children() {
            if child.is_element() {
                element.children.push(Self::read(child, depth + 1)?);
            } else if child.is_text() {
                element.text.push_str(child.text().unwrap_or_default());
            }
        }
        element.text = element.text.trim().to_owned();
        Ok(element)
    }

    /// Returns the first child with the local name `name`.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the element at a path of local names.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |element, name| element.child(name))
    }

    /// Returns the text of a child; `None` if the child is absent or empty.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str()).filter(|text| !text.is_empty())
    }

    /// Returns the number in a child; `None` if the child is absent or empty.
    ///
    /// # Errors
    /// The text is not a number.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Malformed> {
        self.text_of(name).map(|text| parse(name, text, "a number")).transpose()
    }

    /// Returns the numbers of an array, whose items are repeated children.
    ///
    /// # Errors
    /// The text of an item is not a number.
    pub fn numbers<N: std::str::FromStr>(&self, name: &str) -> Result<Vec<N>, Malformed> {
        let items = self.children.iter().filter(|child| child.name == name);
        items.map(|child| parse(name, &child.text, "a number")).collect()
    }

    /// Returns the truth value of a child; `None` if the child is absent or empty.
    ///
    /// # Errors
    /// The text is not `true`, `false`, `1` or `0`.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Malformed> {
        let Some(text) = self.text_of(name) else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(Some(true)),
            "false" | "0" => Ok(Some(false)),
            _ => Err(value(name, text, "true or false")),
        }
    }
}

fn parse<N: std::str::FromStr>(
    name: &str,
    text: &str,
    expected: &'static str,
) -> Result<N, Malformed> {
    text.parse().map_err(|_| value(name, text, expected))
}

fn value(name: &str, found: &str, expected: &'static str) -> Malformed {
    Malformed::Value { name: brief(name), expected, found: brief(found) }
}

/// Returns the start of a foreign text in one line, without control characters.
pub fn brief(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|char| !char.is_control()).take(TEXT_CHARS_MAX).collect()
}

/// SOAP 1.2 fault (SOAP §5.4) with the codes of WS-Management (DSP0226 §14).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fault {
    /// Local name of the subcode, else of the code; may be empty.
    pub code: String,
    /// Reason as the firmware states it; may be empty.
    pub reason: String,
    /// Detail of the fault, in one line; may be empty.
    pub detail: String,
}

impl Fault {
    fn read(fault: &Element) -> Self {
        let text = |path: &[&str]| fault.at(path).map(|it| it.text.as_str()).unwrap_or_default();
        let subcode = text(&["Code", "Subcode", "Value"]);
        let code = if subcode.is_empty() { text(&["Code", "Value"]) } else { subcode };
        let code = code.rsplit(':').next().unwrap_or_default();
        let detail = fault.child("Detail").map(|detail| {
            let children = detail.children.iter().map(|child| child.text.as_str());
            std::iter::once(detail.text.as_str()).chain(children).collect::<Vec<_>>().join(" ")
        });
        Self {
            code: brief(code),
            reason: brief(text(&["Reason", "Text"])),
            detail: brief(&detail.unwrap_or_default()),
        }
    }

    /// Returns true if the class, the instance or the operation does not exist in this firmware.
    pub fn is_absent(&self) -> bool {
        matches!(
            self.code.as_str(),
            "DestinationUnreachable"
                | "InvalidSelectors"
                | "ActionNotSupported"
                | "UnsupportedFeature"
                | "InvalidResourceURI"
        )
    }

    /// Returns true if the same request may succeed later.
    pub fn is_busy(&self) -> bool {
        matches!(
            self.code.as_str(),
            "Concurrency" | "EndpointUnavailable" | "TimedOut" | "QuotaLimit" | "AlreadyExists"
        )
    }

    /// Returns the meaning of the code; `None` for an unknown code.
    pub fn meaning(&self) -> Option<&'static str> {
        Some(match self.code.as_str() {
            "DestinationUnreachable" | "InvalidSelectors" => {
                "this firmware does not have the class or the instance"
            }
            "ActionNotSupported" | "UnsupportedFeature" => {
                "this firmware does not support the operation"
            }
            "AccessDenied" => "the user does not have the permission (AMT realm)",
            "InvalidRepresentation" | "SchemaValidationError" => {
                "the firmware does not accept a value or the order of the values"
            }
            "InvalidParameter" => "the firmware does not accept a parameter",
            "Concurrency" | "EndpointUnavailable" | "QuotaLimit" => {
                "the management engine is busy with another request"
            }
            "TimedOut" => "the management engine did not finish in time",
            "InternalError" | "Receiver" => "internal error of the firmware",
            _ => return None,
        })
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [self.meaning().unwrap_or_default(), &self.reason, &self.detail];
        let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        match (self.code.as_str(), said.is_empty()) {
            ("", true) => f.write_str("fault without a reason"),
            ("", false) => f.write_str(&said.join(": ")),
            (code, true) => write!(f, "fault {code}"),
            (code, false) => write!(f, "{} (fault {code})", said.join(": ")),
        }
    }
}

/// Answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    relates_to: Option<String>,
    /// First element of the SOAP body; `None` if the body is empty.
    content: Option<Element>,
}

impl Answer {
    /// Reads the XML of an answer.
    ///
    /// # Errors
    /// The bytes are not a SOAP envelope, or exceed a limit.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(bytes).map_err(|_| Malformed::Encoding)?;
        let text = text.trim_start_matches('\u{FEFF}').trim_start();
        let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
        let document = Document::parse_with_options(text, options)
            .map_err(|error| Malformed::Xml(brief(&error.to_string())))?;
        let root = document.root_element();
        let part = |name| root.children().find(|node| node.has_tag_name((SOAP, name)));
        if !root.has_tag_name((SOAP, "Envelope")) {
            return Err(Malformed::Envelope);
        }
        let body = part("Body").ok_or(Malformed::Envelope)?;
        let relates_to = part("Header").and_then(|header| {
            let found = header.children().find(|n| n.has_tag_name((ADDRESSING, "RelatesTo")))?;
            found.text().map(|text| text.trim().to_owned())
        });
        let content = body.children().find(Node::is_element);
        let content = content.map(|node| Element::read(node, 1)).transpose()?;
        Ok(Self { relates_to, content })
    }

    /// Checks that the answer belongs to the request `id`. An answer without `RelatesTo` passes.
    ///
    /// # Errors
    /// The answer belongs to another request.
    pub fn check_relation(&self, id: u64) -> Result<(), Malformed> {
        match &self.relates_to {
            Some(other) if *other != id.to_string() => Err(Malformed::Unrelated(brief(other))),
            _ => Ok(()),
        }
    }

    /// Returns the fault; `None` if the answer is not a fault.
    pub fn fault(&self) -> Option<Fault> {
        let fault = self.content.as_ref()?;
        (fault.name == "Fault" && fault.namespace == SOAP).then(|| Fault::read(fault))
    }

    /// Returns the first element of the body, which must have the local name `name`.
    ///
    /// # Errors
    /// The body is empty, or has another element.
    pub fn expect(self, name: &str) -> Result<Element, Malformed> {
        let content = self.content.ok_or(Malformed::Missing("in the SOAP body"))?;
        if content.name == name {
            return Ok(content);
        }
        Err(Malformed::Unexpected { expected: name.to_owned(), found: brief(&content.name) })
    }

    /// Returns the `ReturnValue` of a method.
    ///
    /// # Errors
    /// The body is not the output of the method, or has no return value.
    pub fn return_value(self, method: &str) -> Result<u32, Malformed> {
        self.output(method).map(|(_, value)| value)
    }

    /// Returns the output of a method, and its `ReturnValue`.
    ///
    /// # Errors
    /// The body is not the output of the method, or has no return value.
    pub fn output(self, method: &str) -> Result<(Element, u32), Malformed> {
        let output = self.expect(&format!("{method}_OUTPUT"))?;
        let value = output.number("ReturnValue")?.ok_or(Malformed::Missing("ReturnValue"))?;
        Ok((output, value))
    }

    /// Returns the context of an enumeration that begins.
    ///
    /// # Errors
    /// The body is not an enumeration response with a context.
    pub fn enumeration(self) -> Result<String, Malformed> {
        let started = self.expect("EnumerateResponse")?;
        let context = started.text_of("EnumerationContext").map(str::to_owned);
        context.ok_or(Malformed::Missing("EnumerationContext"))
    }

    /// Returns the items of a page, and the context of the next page if there is one.
    ///
    /// # Errors
    /// The body is not a page of an enumeration.
    pub fn page(self) -> Result<(Vec<Element>, Option<String>), Malformed> {
        let mut page = self.expect("PullResponse")?;
        let is_last = page.child("EndOfSequence").is_some();
        let next = page.text_of("EnumerationContext").map(str::to_owned).filter(|_| !is_last);
        let items = page.children.iter_mut().find(|child| child.name == "Items");
        Ok((items.map(|it| std::mem::take(&mut it.children)).unwrap_or_default(), next))
    }
}

#[cfg(test)]
mod tests;
