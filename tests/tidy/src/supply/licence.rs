//! SPDX license expressions, as crates write them.

/// Checks whether allowed licenses satisfy an expression: one side of each `OR`, both of each
/// `AND`. A license with an exception is allowed by its whole name, or without the exception,
/// because an exception only adds permissions.
///
/// # Errors
/// The syntax error of the expression.
pub fn check(expression: &str, allowed: &[String]) -> Result<(), String> {
    // Crates from before SPDX expressions write a slash for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    if words.is_empty() {
        return Err("it names none".to_owned());
    }
    let mut reader = Reader { words: &words, allowed };
    match reader.either() {
        Some(_) if !reader.words.is_empty() => Err(format!("{expression:?} cannot be read")),
        None => Err(format!("{expression:?} cannot be read")),
        Some(false) => Err(format!("{expression:?} asks for what is not allowed")),
        Some(true) => Ok(()),
    }
}

struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl<'a> Reader<'a> {
    fn take(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn take_if(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn either(&mut self) -> Option<bool> {
        let mut met = self.both()?;
        while self.take_if("OR") {
            met |= self.both()?;
        }
        Some(met)
    }

    fn both(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.take_if("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    fn one(&mut self) -> Option<bool> {
        let name = self.take()?;
        if name == "(" {
            let met = self.either()?;
            return self.take_if(")").then_some(met);
        }
        if matches!(name, ")" | "AND" | "OR" | "WITH") {
            return None;
        }
        let is_allowed = |name: &str| self.allowed.iter().any(|allowed| allowed == name);
        let plain = is_allowed(name);
        if !self.take_if("WITH") {
            return Some(plain);
        }
        let exception = self.take()?;
        let whole = format!("{name} WITH {exception}");
        Some(plain || self.allowed.contains(&whole))
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn expressions_are_met_or_not() {
        let allowed = ["MIT", "Apache-2.0", "GPL-2.0 WITH Classpath"].map(str::to_owned);
        for text in [
            "MIT",
            "MIT/GPL-3.0",
            "GPL-3.0 OR (MIT AND Apache-2.0)",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
            "GPL-2.0 WITH Classpath",
        ] {
            assert_eq!(check(text, &allowed), Ok(()), "{text}");
        }
        for text in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT OR",
            "(MIT",
            "MIT MIT",
            "GPL-2.0 WITH Other",
            "MIT WITH",
            "OR MIT",
        ] {
            assert!(check(text, &allowed).is_err(), "{text}");
        }
    }
}
