//! Names of Unicode categories and scripts that Go's regular expressions accept.

/// Categories: short name, and long name in Unicode.
const CATEGORIES: [(&str, &str); 38] = [
    ("C", "Other"),
    ("Cc", "Control"),
    ("Cf", "Format"),
    ("Cn", "Unassigned"),
    ("Co", "Privateuse"),
    ("Cs", "Surrogate"),
    ("L", "Letter"),
    ("LC", "Casedletter"),
    ("Ll", "Lowercaseletter"),
    ("Lm", "Modifierletter"),
    ("Lo", "Otherletter"),
    ("Lt", "Titlecaseletter"),
    ("Lu", "Uppercaseletter"),
    ("M", "Mark"),
    ("Mc", "Spacingmark"),
    ("Me", "Enclosingmark"),
    ("Mn", "Nonspacingmark"),
    ("N", "Number"),
    ("Nd", "Decimalnumber"),
    ("Nl", "Letternumber"),
    ("No", "Othernumber"),
    ("P", "Punctuation"),
    ("Pc", "Connectorpunctuation"),
    ("Pd", "Dashpunctuation"),
    ("Pe", "Closepunctuation"),
    ("Pf", "Finalpunctuation"),
    ("Pi", "Initialpunctuation"),
    ("Po", "Otherpunctuation"),
    ("Ps", "Openpunctuation"),
    ("S", "Symbol"),
    ("Sc", "Currencysymbol"),
    ("Sk", "Modifiersymbol"),
    ("Sm", "Mathsymbol"),
    ("So", "Othersymbol"),
    ("Z", "Separator"),
    ("Zl", "Lineseparator"),
    ("Zp", "Paragraphseparator"),
    ("Zs", "Spaceseparator"),
];

/// Other names of categories.
const ALIASES: [(&str, &str); 5] =
    [("Cntrl", "Cc"), ("Digit", "Nd"), ("Punct", "P"), ("Combiningmark", "M"), ("Lc", "LC")];

/// Ranges that the `regex` crate knows by another name.
const RANGES: [(&str, &str); 3] = [("Any", "Any"), ("Assigned", "Assigned"), ("Ascii", "ASCII")];

/// Scripts. Go accepts only names of one word.
const SCRIPTS: &str = "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki \
    Bopomofo Brahmi Braille Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic \
    Cuneiform Cypriot Cyrillic Deseret Devanagari Dogra Duployan Elbasan Elymaic Ethiopic \
    Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han Hangul Hanunoo Hatran Hebrew \
    Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki Khudawadi \
    Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean \
    Marchen Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko \
    Nushu Ogham Oriya Osage Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra \
    Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese Syriac Tagalog Tagbanwa Takri Tamil \
    Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho \
    Yezidi Yi";

/// Returns the class `name` in the syntax of the `regex` crate; `None` if it is unknown. Ignores
/// case, spaces, hyphens and underscores.
pub fn class(name: &str) -> Option<String> {
    let mut plain: String = name.chars().filter(|c| !"_- ".contains(*c)).collect();
    plain.make_ascii_lowercase();
    if let Some(first) = plain.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let named = |(name, class): &(&'static str, &'static str)| (*name == plain).then_some(*class);
    if let Some(range) = RANGES.iter().find_map(named) {
        return Some(range.to_owned());
    }
    let plain = ALIASES.iter().find_map(named).unwrap_or(&plain);
    let category = CATEGORIES.iter().find(|(short, long)| *short == plain || *long == plain);
    match category {
        Some((short, _)) => Some(format!("gc={short}")),
        None => SCRIPTS.split(' ').find(|script| *script == plain).map(|it| format!("sc={it}")),
    }
}
