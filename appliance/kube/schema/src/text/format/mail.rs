//! Mail address as Go's `net/mail` parses it: `user@host` or `Name <user@host>`. Quoted strings,
//! domain literals and comments are accepted according to RFC 5322 §3.4.

/// Maximum depth of nested comments.
const MAX_COMMENT_DEPTH: usize = 16;

pub(crate) fn is_address(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    reader.mailbox().is_some() && reader.skip_space().is_some() && reader.rest.is_empty()
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn mailbox(&mut self) -> Option<()> {
        self.skip_space()?;
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest;
        if self.address().is_some() {
            return Some(());
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space()?;
        self.take('<')?;
        self.address()?;
        self.take('>')
    }

    fn address(&mut self) -> Option<()> {
        self.skip_space()?;
        match self.rest.starts_with('"') {
            true => self.quoted()?,
            false => self.dot_atom()?,
        }
        self.take('@')?;
        self.skip_space()?;
        match self.rest.starts_with('[') {
            true => self.literal(),
            false => self.dot_atom(),
        }
    }

    /// Reads the words of a display name; `None` if there is no word.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            self.skip_space()?;
            if self.rest.starts_with('"') {
                self.quoted()?;
            } else {
                let length = self.atom_length(true);
                if length == 0 {
                    break;
                }
                self.rest = &self.rest[length..];
            }
            words += 1;
        }
        (words > 0).then_some(())
    }

    fn atom_length(&self, dots: bool) -> usize {
        let is_atom = |c: char| {
            !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
        };
        let end = self.rest.find(|c: char| !(is_atom(c) || (dots && c == '.')));
        end.unwrap_or(self.rest.len())
    }

    fn dot_atom(&mut self) -> Option<()> {
        let (atom, rest) = self.rest.split_at(self.atom_length(true));
        let fits = !atom.is_empty() && atom.split('.').all(|part| !part.is_empty());
        self.rest = rest;
        fits.then_some(())
    }

    fn quoted(&mut self) -> Option<()> {
        self.take('"')?;
        let mut escaped = false;
        for (index, c) in self.rest.char_indices() {
            let visible = c == ' ' || c == '\t' || !c.is_control();
            match (escaped, c) {
                _ if !visible => return None,
                (true, _) => escaped = false,
                (false, '\\') => escaped = true,
                (false, '"') => {
                    self.rest = &self.rest[index + 1..];
                    return Some(());
                }
                _ => {}
            }
        }
        None
    }

    /// Reads a domain literal: `[192.0.2.1]` or `[IPv6:2001:db8::1]`; `None` if invalid.
    fn literal(&mut self) -> Option<()> {
        let (literal, rest) = self.rest.strip_prefix('[')?.split_once(']')?;
        self.rest = rest;
        let address = literal.strip_prefix("IPv6:").unwrap_or(literal);
        address.parse::<std::net::IpAddr>().ok().map(|_| ())
    }

    fn take(&mut self, c: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(c)?;
        Some(())
    }

    /// Skips spaces and comments; `None` for a comment without an end.
    fn skip_space(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !self.rest.starts_with('(') {
                return Some(());
            }
            self.skip_comment()?;
        }
    }

    fn skip_comment(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        let mut escaped = false;
        for (index, c) in self.rest.char_indices() {
            match (escaped, c) {
                (true, _) => escaped = false,
                (false, '\\') => escaped = true,
                (false, '(') if depth == MAX_COMMENT_DEPTH => return None,
                (false, '(') => depth += 1,
                (false, ')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[index + 1..];
                return Some(());
            }
        }
        None
    }
}
