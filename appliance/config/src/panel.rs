//! `[panel]`: the box's own small screen, its buttons and its lights.

use std::fmt;
use std::path::{Path, PathBuf};

use panel::backends::ssd1306::ADDRESSES;
use panel::buttons::{named, names};
use panel::model::{self, ACTIONS, Action, Button, Kind};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Actions that the box implements, in the menu's order.
pub const DOES: [Action; 9] = [
    Action::Identify,
    Action::ShowPin,
    Action::Rescan,
    Action::SafeMode,
    Action::Restart,
    Action::PowerOff,
    Action::FactoryReset,
    Action::Retry,
    Action::MachinePower,
];

/// Lines that a chip can have (`linux/gpio.h` knows no limit; no chip comes near this one).
const LINE_MAX: u32 = 1023;
/// Bytes of the name of a light or a device.
const NAME_MAX: usize = 64;

/// What is at the front of the box.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Panel {
    /// 128×64 pixels, on or off.
    pub oled: Option<Oled>,
    /// 320×240 pixels in colour, as a framebuffer: `/dev/fb1`.
    pub tft: Option<Framebuffer>,
    /// The lamp behind the TFT, by its name in `/sys/class/backlight`.
    pub backlight: Option<Name>,
    /// How its pages are turned; without any they turn by themselves.
    pub buttons: Option<Buttons>,
    /// How the box is.
    pub led: Option<Led>,
    /// Bytes to machines that boot.
    pub traffic_led: Option<Led>,
    /// What can be asked for here; all that the box can do when it is left out.
    pub actions: Option<Vec<Allowed>>,
}

/// An SSD1306.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oled {
    /// Its bus: `/dev/i2c-1`.
    pub i2c: Bus,
    /// Its address there.
    #[serde(default)]
    pub address: Address,
}

/// Three buttons, or one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buttons {
    /// Back, or up.
    pub up: Option<Input>,
    /// On, or down.
    pub down: Option<Input>,
    /// Do it; where it is alone, it is all three.
    pub select: Input,
    /// The input device that has the keys, by what the kernel calls it: `gpio-keys`. Any that has
    /// them when it is left out.
    pub device: Option<Name>,
}

/// Where a button is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key of an input device, by its number.
    Key(u16),
    /// A line of a GPIO chip.
    Line(Line),
}

/// A light.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Led {
    /// By its name in `/sys/class/leds`.
    Named(Name),
    /// A line of a GPIO chip.
    Line(Line),
}

/// A line of a GPIO chip.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The chip: `/dev/gpiochip0`.
    pub chip: Chip,
    /// Its number there.
    pub line: Offset,
    /// Whether 0 V means pressed or lit. Buttons are so unless it is said; lights are not.
    pub active_low: Option<bool>,
}

/// Declares a value that is checked as it is read, so that a mistake is told with its line.
macro_rules! checked {
    ($(#[$doc:meta])* $name:ident($inner:ty) from $raw:ty, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let check: fn($raw) -> Result<$inner, String> = $check;
                let raw = <$raw>::deserialize(deserializer)?;
                check(raw).map(Self).map_err(serde::de::Error::custom)
            }
        }
    };
}

checked!(
    /// `/dev/i2c-1`.
    Bus(PathBuf) from String, |text| numbered(text, "/dev/i2c-", "an I2C bus")
);
checked!(
    /// `/dev/gpiochip0`.
    Chip(PathBuf) from String, |text| numbered(text, "/dev/gpiochip", "a GPIO chip")
);
checked!(
    /// `/dev/fb1`.
    Framebuffer(PathBuf) from String, |text| numbered(text, "/dev/fb", "a framebuffer")
);
checked!(
    /// Of a device.
    Name(String) from String, |text| {
        let good = (1..=NAME_MAX).contains(&text.len())
            && !text.starts_with('.')
            && text.chars().all(|char| char.is_ascii_graphic() && char != '/' || char == ' ');
        let wrong = format!("{text:?} is no name of a device");
        if good { Ok(text) } else { Err(wrong) }
    }
);
checked!(
    /// Of an SSD1306.
    Address(u8) from u16, |address| {
        let known = ADDRESSES.into_iter().find(|known| u16::from(*known) == address);
        known.ok_or_else(|| {
            let [first, second] = ADDRESSES;
            format!("{address:#04x} is no address of an SSD1306: {first:#x} or {second:#x}")
        })
    }
);
checked!(
    /// Of a chip's line.
    Offset(u32) from u32, |line| {
        if line <= LINE_MAX { Ok(line) } else { Err(format!("{line} is no line of a GPIO chip")) }
    }
);
checked!(
    /// Something that the panel may do.
    Allowed(Action) from String, |text| {
        let known = Action::named(&text).filter(|action| DOES.contains(action));
        known.ok_or_else(|| {
            let all = ACTIONS.into_iter().filter(|action| DOES.contains(action));
            let all: Vec<_> = all.map(Action::setting).collect();
            format!("{text:?} is nothing that a panel can do here: {}", all.join(", "))
        })
    }
);

/// The device file `PREFIX`NUMBER.
fn numbered(text: String, prefix: &str, what: &str) -> Result<PathBuf, String> {
    let number = text.strip_prefix(prefix).unwrap_or_default();
    let good = (1..=4).contains(&number.len()) && number.bytes().all(|it| it.is_ascii_digit());
    if good { Ok(text.into()) } else { Err(format!("{text:?} is no device of {what}: {prefix}0")) }
}

impl Default for Address {
    fn default() -> Self {
        Self(ADDRESSES[0])
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(TextOrLine("a key's name, or a chip and a line"))? {
            Ok(line) => Ok(Self::Line(line)),
            Err(name) => named(&name).map(Self::Key).ok_or_else(|| {
                let all = names();
                serde::de::Error::custom(format!("{name:?} is no key that can be a button: {all}"))
            }),
        }
    }
}

impl<'de> Deserialize<'de> for Led {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(TextOrLine("a light's name, or a chip and a line"))? {
            Ok(line) => Ok(Self::Line(line)),
            Err(name) => Name::deserialize(StrDeserializer::new(&name)).map(Self::Named),
        }
    }
}

/// Reads a line, or (as the error) a text.
struct TextOrLine(&'static str);

impl<'de> Visitor<'de> for TextOrLine {
    type Value = Result<Line, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Err(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Line::deserialize(MapAccessDeserializer::new(map)).map(Ok)
    }
}

impl Buttons {
    /// Which each of them is.
    pub fn all(&self) -> Vec<(Button, &Input)> {
        let named = [
            (Button::Up, self.up.as_ref()),
            (Button::Down, self.down.as_ref()),
            (Button::Select, Some(&self.select)),
        ];
        named.into_iter().filter_map(|(button, input)| Some((button, input?))).collect()
    }
}

impl Panel {
    /// Every mistake, by key.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut say = |wrong: bool, what: &str| {
            problems.extend(wrong.then(|| format!("panel.{what}")));
        };
        let screen = self.kind().is_some();
        say(self.oled.is_some() && self.tft.is_some(), "tft: the oled is the panel already");
        say(self.backlight.is_some() && self.tft.is_none(), "backlight: there is no tft before it");
        say(self.buttons.is_some() && !screen, "buttons: there is no oled and no tft to turn");
        say(self.actions.is_some() && !screen, "actions: there is no oled and no tft to ask at");
        if let Some(buttons) = &self.buttons {
            say(
                buttons.up.is_some() != buttons.down.is_some(),
                "buttons: up and down come together; with neither of them, select is all three",
            );
            let all = buttons.all();
            let twice = all.iter().enumerate().any(|(at, (_, input))| {
                all[..at].iter().any(|(_, other)| other.place() == input.place())
            });
            say(twice, "buttons: two of them are the same");
        }
        problems
    }

    /// Which screen there is.
    pub fn kind(&self) -> Option<Kind> {
        match (&self.oled, &self.tft) {
            (Some(_), _) => Some(Kind::Oled),
            (None, Some(_)) => Some(Kind::Tft),
            (None, None) => None,
        }
    }

    /// As the panel takes it.
    pub fn settings(&self) -> Option<model::Settings> {
        let buttons = match &self.buttons {
            None => model::Buttons::None,
            Some(Buttons { up: None, .. }) => model::Buttons::One,
            Some(_) => model::Buttons::Three,
        };
        let allowed = self.actions.as_ref();
        let allowed = allowed.map(|them| them.iter().map(|allowed| allowed.0).collect());
        let actions = allowed.unwrap_or_else(|| DOES.to_vec());
        self.kind().map(|kind| model::Settings { kind, buttons, actions })
    }

    /// Whether the framebuffer of this file is the panel's own.
    pub fn has(&self, framebuffer: &Path) -> bool {
        self.tft.as_ref().is_some_and(|tft| tft.0 == framebuffer)
    }
}

impl Input {
    /// What two buttons cannot share.
    fn place(&self) -> (Option<u16>, Option<(&Path, u32)>) {
        match self {
            Input::Key(code) => (Some(*code), None),
            Input::Line(line) => (None, Some((&line.chip.0, line.line.0))),
        }
    }
}

#[cfg(test)]
mod tests;
