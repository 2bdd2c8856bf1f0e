use panel::model::{ACTIONS, Action, Button, Buttons, Kind};

use super::{Input, Led, Panel};

fn read(text: &str) -> Result<Panel, String> {
    let panel: Panel = toml::from_str(text).map_err(|error| error.to_string())?;
    let problems = panel.problems();
    if problems.is_empty() { Ok(panel) } else { Err(problems.join("\n")) }
}

#[test]
fn a_panel_is_as_it_is_written() {
    let panel = read(
        "oled = { i2c = '/dev/i2c-1', address = 0x3d }\n\
         led = 'green:status'\n\
         traffic_led = { chip = '/dev/gpiochip0', line = 5 }\n\
         actions = ['identify', 'restart']\n\
         [buttons]\n\
         up = { chip = '/dev/gpiochip0', line = 17 }\n\
         down = { chip = '/dev/gpiochip0', line = 27, active_low = false }\n\
         select = 'KEY_ENTER'\n\
         device = 'gpio-keys'\n",
    )
    .unwrap();
    let settings = panel.settings().unwrap();
    assert_eq!((settings.kind, settings.buttons), (Kind::Oled, Buttons::Three));
    assert_eq!(settings.actions, [Action::Identify, Action::Restart]);
    assert_eq!(panel.oled.as_ref().unwrap().address.0, 0x3d);
    let buttons = panel.buttons.unwrap();
    let all = buttons.all();
    assert_eq!(all[2], (Button::Select, &Input::Key(28)));
    let Input::Line(down) = all[1].1 else { panic!("{all:?}") };
    assert_eq!((down.line.0, down.active_low), (27, Some(false)));
    assert!(matches!(panel.led, Some(Led::Named(_))));
    assert!(matches!(panel.traffic_led, Some(Led::Line(_))));
}

#[test]
fn what_is_left_out_has_a_default() {
    let panel = read("oled = { i2c = '/dev/i2c-0' }\nbuttons = { select = 'BTN_0' }\n").unwrap();
    let settings = panel.settings().unwrap();
    assert_eq!((settings.buttons, settings.actions), (Buttons::One, ACTIONS.to_vec()));
    assert_eq!(panel.oled.unwrap().address.0, 0x3c);
    let panel = read("tft = '/dev/fb1'\nbacklight = 'panel'\n").unwrap();
    assert_eq!(panel.settings().unwrap().buttons, Buttons::None);
    assert!(panel.has("/dev/fb1".as_ref()) && !panel.has("/dev/fb0".as_ref()));
    let lights = read("led = 'input1::scrolllock'\n").unwrap();
    assert_eq!(lights.settings(), None, "a light wants no screen");
}

#[test]
fn a_mistake_is_told_with_its_line() {
    for (text, line, message) in [
        ("led = 'a'\nspeed = 1\n", 2, "unknown field `speed`"),
        ("oled = { i2c = '/dev/i2c-1', adress = 60 }\n", 1, "unknown field `adress`"),
        ("\noled = { i2c = 'i2c-1' }\n", 2, "\"i2c-1\" is not an I2C bus such as /dev/i2c-0"),
        ("oled = { i2c = '/dev/i2c-1/../sda' }\n", 1, "is not an I2C bus"),
        ("oled = { i2c = '/dev/i2c-1', address = 0x40 }\n", 1, "expected an SSD1306 address"),
        ("tft = '/dev/fb'\n", 1, "is not a framebuffer"),
        ("led = '../../sda'\n", 1, "is not a valid device name"),
        ("led = { chip = '/dev/gpiochip0', line = 4096 }\n", 1, "4096 is not a valid GPIO line"),
        ("led = { chip = '/dev/gpiochip0', line = 1, low = true }\n", 1, "unknown field `low`"),
        ("led = 7\n", 1, "expected an LED name, or a chip and a line"),
        ("\n\nbuttons = { select = 'up' }\n", 3, "\"up\" is not a key for a button: use KEY_ESC"),
        ("buttons = { up = 'KEY_UP' }\n", 1, "missing field `select`"),
        ("\nactions = ['explode']\n", 2, "\"explode\" is not an action of the panel"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(&format!("at line {line},")) && error.contains(message), "{error}");
    }
}

#[test]
fn every_contradiction_is_told_at_once() {
    let error = read(
        "oled = { i2c = '/dev/i2c-1' }\ntft = '/dev/fb1'\n\
         buttons = { up = 'KEY_UP', select = 'KEY_UP' }\n",
    )
    .unwrap_err();
    let expected = [
        "panel.tft: not allowed together with oled",
        "panel.buttons: set both up and down, or neither; without them, select does all three",
        "panel.buttons: two buttons use the same input",
    ];
    assert_eq!(error.lines().collect::<Vec<_>>(), expected);
    let error =
        read("backlight = 'x'\nactions = []\nbuttons = { select = 'KEY_UP' }\n").unwrap_err();
    assert_eq!(error.lines().count(), 3, "{error}");
}

#[test]
fn nothing_is_allowed_where_that_is_said() {
    let panel = read("oled = { i2c = '/dev/i2c-1' }\nactions = []\n").unwrap();
    assert_eq!(panel.settings().unwrap().actions, []);
}
