//! `[panel]`: small screen, buttons and LEDs of the box.

use std::fmt;
use std::path::{Path, PathBuf};

use panel::backends::ssd1306::ADDRESSES;
use panel::buttons::{named, names};
use panel::model::{self, ACTIONS, Action, Button, Kind};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Maximum line number of a GPIO chip. `linux/gpio.h` has no limit; chips have far fewer.
const LINE_MAX: u32 = 1023;
/// Maximum length of the name of an LED or a device, in bytes.
const NAME_MAX: usize = 64;

/// Devices at the front of the box. Default: none.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Panel {
    /// Monochrome screen of 128×64 pixels; not together with `tft`.
    pub oled: Option<Oled>,
    /// Color screen of 320×240 pixels, as a framebuffer device: `/dev/fb1`.
    pub tft: Option<Framebuffer>,
    /// Name of the TFT's backlight in `/sys/class/backlight`.
    pub backlight: Option<Name>,
    /// Buttons of the screen. Default: none, and the pages change by themselves.
    pub buttons: Option<Buttons>,
    /// LED that shows the state of the box: name in `/sys/class/leds`, or GPIO line such as `{ chip
    /// = "/dev/gpiochip0", line = 5 }`.
    pub led: Option<Led>,
    /// LED that shows traffic to booting machines, written as in `led`.
    pub traffic_led: Option<Led>,
    /// Actions that the panel offers: on the box `identify`, `show-pin`, `rescan`, `safe-mode`,
    /// `restart`, `power-off` and `factory-reset`; on machines `retry`, `machine-power`,
    /// `machine-work` (start over, cancel, pause, resume and dismiss) and `machine-identify`.
    /// Default: all.
    pub actions: Option<Vec<Allowed>>,
}

/// Screen with an SSD1306 controller.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oled {
    /// Required. I2C bus of the screen: `/dev/i2c-1`.
    pub i2c: Bus,
    /// I2C address of the screen: 0x3c (default) or 0x3d.
    #[serde(default)]
    pub address: Address,
}

/// Buttons of the panel: three, or `select` alone.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buttons {
    /// Button for back, or up in a list; only together with `down`. A key such as `KEY_UP`, or a
    /// GPIO line such as `{ chip = "/dev/gpiochip0", line = 17 }`.
    pub up: Option<Input>,
    /// Button for forward, or down in a list; only together with `up`.
    pub down: Option<Input>,
    /// Required. Button that confirms. Without `up` and `down`, it has the functions of all three.
    pub select: Input,
    /// Kernel name of the input device with the keys: `gpio-keys`. Default: any device that has the
    /// keys.
    pub device: Option<Name>,
}

/// Input of a button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Key of an input device, as a Linux key code.
    Key(u16),
    /// Line of a GPIO chip.
    Line(Line),
}

/// Output of an LED.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Led {
    /// Name of the LED in `/sys/class/leds`.
    Named(Name),
    /// Line of a GPIO chip.
    Line(Line),
}

/// Line of a GPIO chip.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Device file of the chip: `/dev/gpiochip0`.
    pub chip: Chip,
    /// Line number on the chip, 0 to 1023.
    pub line: Offset,
    /// True if 0 V means pressed or lit. Default: true for buttons, false for LEDs.
    pub active_low: Option<bool>,
}

/// Declares a type that is checked during parsing, so that a mistake is reported with its line.
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
    /// Device file of an I2C bus, such as `/dev/i2c-1`.
    Bus(PathBuf) from String, |text| numbered(text, "/dev/i2c-", "an I2C bus")
);
checked!(
    /// Device file of a GPIO chip, such as `/dev/gpiochip0`.
    Chip(PathBuf) from String, |text| numbered(text, "/dev/gpiochip", "a GPIO chip")
);
checked!(
    /// Device file of a framebuffer, such as `/dev/fb1`.
    Framebuffer(PathBuf) from String, |text| numbered(text, "/dev/fb", "a framebuffer")
);
checked!(
    /// Name of a device in sysfs: 1 to 64 printable ASCII characters without `/`.
    Name(String) from String, |text| {
        let good = (1..=NAME_MAX).contains(&text.len())
            && !text.starts_with('.')
            && text.chars().all(|char| char.is_ascii_graphic() && char != '/' || char == ' ');
        let wrong = format!("{text:?} is not a valid device name");
        if good { Ok(text) } else { Err(wrong) }
    }
);
checked!(
    /// I2C address of an SSD1306: one of [`ADDRESSES`].
    Address(u8) from u16, |address| {
        let known = ADDRESSES.into_iter().find(|known| u16::from(*known) == address);
        known.ok_or_else(|| {
            let [first, second] = ADDRESSES;
            format!("expected an SSD1306 address, {first:#x} or {second:#x}; found {address:#04x}")
        })
    }
);
checked!(
    /// Line number on a GPIO chip, 0 to 1023.
    Offset(u32) from u32, |line| {
        if line <= LINE_MAX { Ok(line) } else { Err(format!("{line} is not a valid GPIO line")) }
    }
);
checked!(
    /// Action that the panel may offer: one of [`ACTIONS`].
    Allowed(Action) from String, |text| {
        Action::named(&text).ok_or_else(|| {
            let all = ACTIONS.map(Action::setting);
            format!("{text:?} is not an action of the panel: use {}", all.join(", "))
        })
    }
);

/// Checks that `text` is `prefix` followed by a number of one to four digits.
fn numbered(text: String, prefix: &str, what: &str) -> Result<PathBuf, String> {
    let number = text.strip_prefix(prefix).unwrap_or_default();
    let good = (1..=4).contains(&number.len()) && number.bytes().all(|it| it.is_ascii_digit());
    if good { Ok(text.into()) } else { Err(format!("{text:?} is not {what} such as {prefix}0")) }
}

impl Default for Address {
    fn default() -> Self {
        Self(ADDRESSES[0])
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(TextOrLine("a key name, or a chip and a line"))? {
            Ok(line) => Ok(Self::Line(line)),
            Err(name) => named(&name).map(Self::Key).ok_or_else(|| {
                let all = names();
                serde::de::Error::custom(format!("{name:?} is not a key for a button: use {all}"))
            }),
        }
    }
}

impl<'de> Deserialize<'de> for Led {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(TextOrLine("an LED name, or a chip and a line"))? {
            Ok(line) => Ok(Self::Line(line)),
            Err(name) => Name::deserialize(StrDeserializer::new(&name)).map(Self::Named),
        }
    }
}

/// Deserializes a GPIO line as `Ok`, or a text as `Err`.
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
    /// Returns the buttons that are set, with their inputs.
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
    /// Returns every mistake; each text begins with its key.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut say = |wrong: bool, what: &str| {
            problems.extend(wrong.then(|| format!("panel.{what}")));
        };
        let screen = self.kind().is_some();
        say(self.oled.is_some() && self.tft.is_some(), "tft: not allowed together with oled");
        say(self.backlight.is_some() && self.tft.is_none(), "backlight: not allowed without tft");
        say(self.buttons.is_some() && !screen, "buttons: not allowed without oled or tft");
        say(self.actions.is_some() && !screen, "actions: not allowed without oled or tft");
        if let Some(buttons) = &self.buttons {
            say(
                buttons.up.is_some() != buttons.down.is_some(),
                "buttons: set both up and down, or neither; without them, select does all three",
            );
            let all = buttons.all();
            let twice = all.iter().enumerate().any(|(at, (_, input))| {
                all[..at].iter().any(|(_, other)| other.place() == input.place())
            });
            say(twice, "buttons: two buttons use the same input");
        }
        problems
    }

    /// Returns the kind of the screen; `None` without a screen.
    pub fn kind(&self) -> Option<Kind> {
        match (&self.oled, &self.tft) {
            (Some(_), _) => Some(Kind::Oled),
            (None, Some(_)) => Some(Kind::Tft),
            (None, None) => None,
        }
    }

    /// Returns the settings for the panel; `None` without a screen.
    pub fn settings(&self) -> Option<model::Settings> {
        let buttons = match &self.buttons {
            None => model::Buttons::None,
            Some(Buttons { up: None, .. }) => model::Buttons::One,
            Some(_) => model::Buttons::Three,
        };
        let allowed = self.actions.as_ref();
        let allowed = allowed.map(|them| them.iter().map(|allowed| allowed.0).collect());
        let actions = allowed.unwrap_or_else(|| ACTIONS.to_vec());
        self.kind().map(|kind| model::Settings { kind, buttons, actions })
    }

    /// Returns true if the panel uses this framebuffer device. The console must not use it.
    pub fn has(&self, framebuffer: &Path) -> bool {
        self.tft.as_ref().is_some_and(|tft| tft.0 == framebuffer)
    }
}

impl Input {
    /// Returns the key code or the GPIO line. Two buttons cannot use the same input.
    fn place(&self) -> (Option<u16>, Option<(&Path, u32)>) {
        match self {
            Input::Key(code) => (Some(*code), None),
            Input::Line(line) => (None, Some((&line.chip.0, line.line.0))),
        }
    }
}

#[cfg(test)]
mod tests;
