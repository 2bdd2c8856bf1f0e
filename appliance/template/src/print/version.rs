//! Formatting of versions: as text for verbs of strings, otherwise as the fields of Go's struct.

use super::Printer;
use crate::value::Value;
use crate::version::VersionRef;

impl Printer<'_> {
    pub(super) fn version(
        &mut self,
        it: &VersionRef,
        verb: char,
        value: &Value,
        depth: usize,
    ) -> Result<(), String> {
        let is_text = matches!(verb, 'v' | 's' | 'q' | 'x' | 'X') && !self.flags.go_syntax;
        if is_text {
            return self.string(&it.version.to_string(), verb, value);
        }
        if it.is_pointer && depth > 0 {
            return Err("printf: an address differs at each call".to_owned());
        }
        if verb != 'w' {
            return self.inside(it, verb, depth);
        }
        self.write(&format!("%!w({}=", value.type_name()))?;
        self.inside(it, 'v', depth)?;
        self.write(")")
    }

    /// Writes the fields of the struct: `&{1 2 3 rc.1  v1.2.3-rc.1}`.
    fn inside(&mut self, it: &VersionRef, verb: char, depth: usize) -> Result<(), String> {
        let version = &it.version;
        if it.is_pointer {
            self.write("&")?;
        }
        if self.flags.go_syntax {
            self.write("semver.Version")?;
        }
        self.write("{")?;
        let fields = [
            ("major", Value::Word(version.major)),
            ("minor", Value::Word(version.minor)),
            ("patch", Value::Word(version.patch)),
            ("pre", Value::Text(version.pre.as_str().into())),
            ("metadata", Value::Text(version.metadata.as_str().into())),
            ("original", Value::Text(version.original.as_str().into())),
        ];
        for (at, (name, field)) in fields.iter().enumerate() {
            let separator = match (at, self.flags.go_syntax) {
                (0, _) => "",
                (_, true) => ", ",
                (_, false) => " ",
            };
            self.write(separator)?;
            if self.flags.go_syntax {
                self.write(&format!("{name}:"))?;
            }
            self.value(field, verb, depth + 1)?;
        }
        self.write("}")
    }
}
