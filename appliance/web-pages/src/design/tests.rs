use std::collections::HashMap;

use super::STYLE;

type Tokens = HashMap<String, [f64; 3]>;

/// Colors of the style sheet's `nth` `:root` block, added to the colors of `before`.
fn tokens(nth: usize, before: Tokens) -> Tokens {
    let block = STYLE.split(":root {").nth(nth).unwrap().split('}').next().unwrap();
    let mut all = before;
    for line in block.lines() {
        let Some((name, value)) = line.trim().strip_prefix("--").and_then(|it| it.split_once(':'))
        else {
            continue;
        };
        let Some(hex) = value.trim().trim_end_matches(';').strip_prefix('#') else { continue };
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        all.insert(name.to_owned(), [channel(0), channel(2), channel(4)]);
    }
    all
}

/// Returns the contrast ratio of two colors (WCAG 2.2).
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let light = |rgb: [f64; 3]| 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
    let (high, low) = (light(one).max(light(other)), light(one).min(light(other)));
    (high + 0.05) / (low + 0.05)
}

#[test]
fn every_text_can_be_read_in_light_and_in_dark() {
    let light = tokens(1, Tokens::new());
    let dark = tokens(2, Tokens::new());
    assert_eq!(light.len(), 17, "the tokens of the sheet");
    for (name, theme) in [("light", light), ("dark", dark)] {
        let mut pairs: Vec<(String, String, f64)> = Vec::new();
        for ground in ["page", "card", "well"] {
            for text in ["ink", "ink2", "run", "ok", "wait", "bad"] {
                pairs.push((text.to_owned(), ground.to_owned(), 4.5));
            }
            pairs.push(("edge".to_owned(), ground.to_owned(), 3.0));
        }
        for tone in ["run", "ok", "wait", "bad"] {
            pairs.push((tone.to_owned(), format!("{tone}-tint"), 4.5));
        }
        pairs.push(("ink2".to_owned(), "off-tint".to_owned(), 4.5));
        pairs.push(("on-run".to_owned(), "run".to_owned(), 4.5));
        for (text, ground, least) in pairs {
            let ratio = contrast(theme[&text], theme[&ground]);
            assert!(ratio >= least, "{name}: {text} on {ground} is {ratio:.2}");
        }
    }
}
