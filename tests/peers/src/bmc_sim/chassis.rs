//! The machine that the simulated BMC controls.

/// State of the machine, and a log of the received commands.
#[derive(Debug, Clone, Default)]
pub struct Chassis {
    /// True while the machine has power.
    pub on: bool,
    /// Chassis Control numbers received, in order.
    pub controls: Vec<u8>,
    /// Boot flags: boot option parameter 5 (IPMI v2.0, table 28-14).
    pub boot_flags: [u8; 5],
    /// Boot option parameters set, in order; the parameter number is the first byte.
    pub options: Vec<Vec<u8>>,
}

impl Chassis {
    /// Executes a chassis command; returns completion code and data.
    pub(super) fn command(&mut self, command: u8, data: &[u8]) -> (u8, Vec<u8>) {
        match (command, data) {
            (0x01, []) => (0, vec![0x20 | u8::from(self.on), 0x00, 0x40]),
            (0x02, [control]) => self.control(*control),
            (0x08, [parameter, value @ ..]) => self.set_option(*parameter & 0x7F, value),
            (0x09, [parameter, _, _]) => match parameter & 0x7F {
                0 => (0, vec![1, 0, 0]),
                5 => (0, [&[1, 5], self.boot_flags.as_slice()].concat()),
                _ => (0x80, Vec::new()),
            },
            (0x01 | 0x02 | 0x08 | 0x09, _) => (0xC7, Vec::new()),
            _ => (0xC1, Vec::new()),
        }
    }

    fn control(&mut self, control: u8) -> (u8, Vec<u8>) {
        let code = match control {
            0 | 5 => {
                self.on = false;
                0
            }
            1 => {
                self.on = true;
                0
            }
            2 | 3 if self.on => 0,
            2 | 3 => 0xD5,
            _ => 0xCC,
        };
        if code == 0 {
            self.controls.push(control);
        }
        (code, Vec::new())
    }

    fn set_option(&mut self, parameter: u8, value: &[u8]) -> (u8, Vec<u8>) {
        match (parameter, value) {
            (0, [_]) | (4, [_, _]) => {}
            (5, [_, _, _, _, _]) => self.boot_flags.copy_from_slice(value),
            // Parameter 3 (boot flag valid bit clearing) is missing, as on many real BMCs.
            (3, _) => return (0x80, Vec::new()),
            _ => return (0xC7, Vec::new()),
        }
        self.options.push([&[parameter], value].concat());
        (0, Vec::new())
    }
}
