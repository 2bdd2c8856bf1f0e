//! Random JSON data for templates.

use serde_json::{Value, json};

use super::{Grammar, TEXTS};

impl Grammar {
    /// Random value of a template's dot.
    pub(super) fn data(&mut self) -> Value {
        let list: Vec<Value> = (0..self.random.below(4)).map(|_| self.json(1)).collect();
        json!({
            "text": self.json_text(),
            "number": self.json_number(),
            "flag": self.random.chance(50),
            "none": null,
            "list": list,
            "texts": ["b", "a", "c"],
            "map": { "a": self.json(1), "b": self.json(1), "none": null },
            "Hardware": {
                "Disks": ["/dev/sda", "/dev/nvme0n1"],
                "UserData": "#cloud-config\n",
                "Interfaces": [{ "DHCP": { "LeaseTime": 300, "IP": { "Family": 4 } } }],
            },
        })
    }

    fn json_text(&mut self) -> Value {
        let text = self.random.pick(&TEXTS);
        serde_json::from_str(&format!("\"{text}\"")).unwrap()
    }

    fn json_number(&mut self) -> Value {
        match self.random.below(4) {
            0 => json!(self.random.below(10)),
            1 => json!(self.random.below(30_000)),
            2 => json!(-1.5),
            _ => json!(0.1),
        }
    }

    fn json(&mut self, depth: usize) -> Value {
        match self.random.below(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => json!(self.random.chance(50)),
            2 => self.json_number(),
            3 => self.json_text(),
            4 => (0..self.random.below(3)).map(|_| self.json(depth - 1)).collect(),
            _ => json!({ "a": self.json(depth - 1), "x": self.json(depth - 1) }),
        }
    }
}
