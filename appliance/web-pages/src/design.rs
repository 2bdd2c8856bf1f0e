//! Style sheet, script and status shapes of the pages.

use std::hash::{Hash as _, Hasher as _};

use status::words::{Shape, Tone};

/// Text of the style sheet, in the colors that the browser prefers.
pub const STYLE: &str = include_str!("../assets/style.css");
/// Condition of the dark colors in [`STYLE`].
const DARK: &str = "@media (prefers-color-scheme: dark)";
/// Declaration of both color schemes in [`STYLE`].
const BOTH: &str = "color-scheme: light dark;";
/// Choices of colors: value of the cookie, and label.
pub const THEMES: [(&str, &str); 3] = [("auto", "Auto"), ("light", "Light"), ("dark", "Dark")];
/// Text of the script with the keys of all pages.
pub const KEYS_SCRIPT: &str = include_str!("../assets/keys.js");
/// Text of the script, which replaces changed parts of a page.
pub const SCRIPT: &str = include_str!("../assets/live.js");
/// Text of the script that shows a serial console.
pub const CONSOLE_SCRIPT: &str = include_str!("../assets/console.js");

/// Returns the style sheet for a choice of [`THEMES`].
pub fn style(theme: &str) -> String {
    match theme {
        "dark" => STYLE.replace(DARK, "@media all").replace(BOTH, "color-scheme: dark;"),
        "light" => STYLE.replace(DARK, "@media not all").replace(BOTH, "color-scheme: light;"),
        _ => STYLE.to_owned(),
    }
}

/// Returns a hash of a text; other texts have other hashes. The hash is for the memory of this
/// process and of browsers, never for a decision about trust.
pub fn hash(text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Returns the CSS class of a tone.
pub fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Quiet => "off",
        Tone::Busy => "run",
        Tone::Waiting => "wait",
        Tone::Good => "ok",
        Tone::Bad => "bad",
    }
}

/// Returns the SVG elements of a shape, in a view box of 16×16. The shape always stands beside a
/// word, so screen readers skip the shape.
pub fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::DottedRing => r#"<circle cx="8" cy="8" r="6" stroke-dasharray="2 2.7"/>"#,
        Shape::FilledDot => r#"<circle cx="8" cy="8" r="5" fill="currentColor"/>"#,
        Shape::HalfDot => {
            r#"<circle cx="8" cy="8" r="6"/><path d="M8 2a6 6 0 0 0 0 12z" fill="currentColor"/>"#
        }
        Shape::Triangle => r#"<path d="M4 2.5 13.5 8 4 13.5z"/>"#,
        Shape::Arc => r#"<path d="M8 2a6 6 0 1 1-6 6"/>"#,
        Shape::Tick => r#"<path d="M2.5 8.5 6.5 12.5 13.5 4"/>"#,
        Shape::Cross => r#"<path d="M3 3 13 13M13 3 3 13"/>"#,
        Shape::SlashedRing => r#"<circle cx="8" cy="8" r="6"/><path d="M4 12 12 4"/>"#,
        Shape::CrossClock => {
            concat!(
                r#"<path d="M1.5 1.5 8 8M8 1.5 1.5 8"/>"#,
                r#"<circle cx="11" cy="11" r="4"/><path d="M11 9v2h1.5"/>"#
            )
        }
        Shape::Question => {
            r#"<path d="M5 5.5a3 3 0 1 1 4.2 2.7Q8 8.8 8 10.5"/><path d="M8 13v1"/>"#
        }
        Shape::Ring => r#"<circle cx="8" cy="8" r="6"/>"#,
        Shape::Bars => r#"<path d="M5 3v10M11 3v10"/>"#,
        Shape::Minus => r#"<path d="M3 8h10"/>"#,
    }
}

#[cfg(test)]
mod tests;
