//! Versions, constraints and URLs composed of pieces, and actions around them. Their results are
//! printed directly: the box's engine, unlike Go, refuses a cut within a character.

use super::Grammar;

/// Expressions with a version `$s`.
const OF_VERSION: [&str; 34] = [
    "$s",
    "$s.Major",
    "$s.Minor",
    "$s.Patch",
    "$s.Prerelease | quote",
    "$s.Metadata | quote",
    "$s.Original",
    "$s.String",
    "$s.IncMajor",
    "$s.IncMinor",
    "$s.IncPatch",
    "$s.IncPatch.Prerelease",
    "$s.IncMinor.Original",
    "$s.SetPrerelease \"rc.1\"",
    "$s.SetPrerelease \"01\"",
    "$s.SetMetadata \"b.7\"",
    "($s.SetMetadata \"x\").IncMajor",
    "$s.nope",
    "$s.Major.x",
    "$s.Compare",
    "toString $s",
    "quote $s",
    "toJson (list $s 1)",
    "toYaml (dict \"v\" $s)",
    "typeOf $s",
    "kindOf $s",
    "typeIsLike \"semver.Version\" $s",
    "typeOf $s.IncMajor",
    "list $s | join \",\"",
    "dict \"v\" $s",
    "len $s",
    "index $s 1",
    "print $s 1 \"a\" $s",
    "html $s",
];
/// Expressions with two versions `$s` and `$t`.
const OF_TWO: [&str; 16] = [
    "$s.Compare $t",
    "$t | $s.Compare",
    "$s.LessThan $t",
    "$s.LessThanEqual $t",
    "$s.GreaterThan $t",
    "$s.GreaterThanEqual $t",
    "$s.Equal $t",
    "$s.Equal nil",
    "$s.LessThan nil",
    "$s.Compare $t.IncMajor",
    "eq $s $t",
    "eq $s $s",
    "eq $s.IncMajor $t.IncMajor",
    "deepEqual $s $t",
    "has $s (list 1 $t)",
    "uniq (list $s $t)",
];
/// Expressions with a number `$n` of a version.
const OF_NUMBER: [&str; 24] = [
    "add $n 1",
    "sub 1 $n",
    "eq $n 1",
    "eq 1 $n",
    "eq $n -1",
    "lt $n 2",
    "ge -1 $n",
    "eq $n 1.0",
    "int $n",
    "float64 $n",
    "printf \"%d %x %#v %v %05d %T\" $n $n $n $n $n $n",
    "printf \"%c|%q|%U|%s\" $n $n $n $n",
    "printf \"%*d\" $n 7",
    "range $n",
    "index (list 1 2 3) $n",
    "toString $n",
    "toJson $n",
    "max $n 3",
    "addf $n 0.5",
    "until $n",
    "empty $n",
    "typeOf $n",
    "kindIs \"uint64\" $n",
    "uniq (list $n 1 $n)",
];
/// Verbs that print a version.
const VERBS: [&str; 8] = ["%v", "%s", "%q", "%x", "%T", "%+v", "%-14s|", "%14v"];
/// Ciphertexts, encrypted with `secret` or a longer password, and texts without encryption.
const HIDDEN: [&str; 6] = [
    "hvJUraOx8DGFTmETyrrmB4HeWHHUpGAiJdI3y7R+utE=",
    "USiOZiHqSH2coAaplaKyZLZCgSg/QTNkBV9Nh0kG8zU=",
    "HTHOd82D2pzIdjWHTGK4rH5R1/AfVavsRtUPyq4UN00=",
    "xzRphH5KEYGIuTEB57pV6LYwSCp1wJkhnD8sFnFo9kNwiZ+tCI71jE9nUvBZhPic",
    "aGVsbG8=",
    "",
];
const PASSWORDS: [&str; 3] = ["secret", "a key that is longer than thirty-two bytes is cut", ""];
impl Grammar {
    /// A random action with a version, a URL, a pattern or a cipher.
    pub(super) fn special(&mut self) -> String {
        match self.random.below(8) {
            0 | 1 => self.about_version(),
            2 => {
                let (constraint, version) = (self.constraint(), self.version());
                self.action(&format!("semverCompare `{constraint}` `{version}`"))
            }
            3 | 4 => self.about_url(),
            5 => {
                let (word, hidden) = (self.random.pick(&PASSWORDS), self.random.pick(&HIDDEN));
                self.action(&format!("decryptAES \"{word}\" \"{hidden}\""))
            }
            _ => self.about_pattern(),
        }
    }

    fn about_version(&mut self) -> String {
        let (s, t) = (self.version(), self.version());
        let mut out = format!("{{{{ $s := semver `{s}` }}}}");
        match self.random.below(4) {
            0 => {
                let two = self.random.pick(&OF_TWO);
                out.push_str(&format!("{{{{ $t := semver `{t}` }}}}{{{{ {two} }}}}"));
            }
            1 => {
                let number = self.random.pick(&["Major", "Minor", "Patch"]);
                let use_of_it = self.random.pick(&OF_NUMBER);
                out.push_str(&format!("{{{{ $n := $s.{number} }}}}{{{{ {use_of_it} }}}}"));
                if use_of_it.starts_with("range") {
                    out.push_str("{{ . }}{{ end }}");
                }
            }
            2 => {
                let (a, b) = (self.random.pick(&VERBS), self.random.pick(&VERBS));
                out.push_str(&format!("{{{{ printf \"{a} {b}\" $s $s.IncPatch }}}}"));
            }
            _ => {
                let one = self.random.pick(&OF_VERSION);
                out.push_str(&self.action(one));
            }
        }
        out
    }

    fn about_url(&mut self) -> String {
        let url = self.url();
        match self.random.below(4) {
            0 | 1 => format!(
                "{{{{ range $k, $u := urlParse `{url}` }}}}{{{{ $k }}}}={{{{ $u }}}};{{{{ end }}}}"
            ),
            2 => self.action(&format!("urlJoin (urlParse `{url}`)")),
            _ => {
                let parts = ["scheme", "host", "path", "query", "opaque", "fragment", "userinfo"];
                let mut words = String::from("dict");
                for part in parts {
                    if self.random.chance(55) {
                        let value = self.url_piece(part);
                        words.push_str(&format!(" \"{part}\" {value}"));
                    }
                }
                self.action(&format!("urlJoin ({words})"))
            }
        }
    }

    fn url_piece(&mut self, part: &str) -> String {
        let texts: &[&str] = match part {
            "scheme" => &["http", "ftp", "", "a+b"],
            "host" => &["box", "box:80", "[::1]", "a b", "ü", ""],
            "path" => &["/a b", "a:b/c", "*", "", "/%41?", "//x", "é"],
            "userinfo" => &["me", "me:p w", "a@b", "a/b", "me:x%40", "#", "%zz"],
            "opaque" => &["", "", "", "x@y"],
            _ => &["q=1&r", "a b", "", "x#y", "ü!*'"],
        };
        match self.random.chance(3) {
            true => self.random.pick(&["1", "nil", "true"]).to_owned(),
            false => format!("`{}`", self.random.pick(texts)),
        }
    }

    fn url(&mut self) -> String {
        let mut url = String::new();
        url.push_str(self.random.pick(&[
            "http:", "https:", "HTTP:", "", "", "tftp:", "mailto:", "1a:", "a b:", ":", "file:",
        ]));
        url.push_str(self.random.pick(&["//", "//", "//", "/", "", "///"]));
        if self.random.chance(30) {
            url.push_str(self.random.pick(&[
                "me@", "me:pw@", "a%20b@", "a:b:c@", "@", "x@y@", "a b@", "%zz@", "m\u{fc}@", ":@",
            ]));
        }
        url.push_str(self.random.pick(&[
            "box",
            "box.rack.example",
            "10.0.0.1",
            "[::1]",
            "[fe80::1%25eth0]",
            "[::1",
            "[10.0.0.1]",
            "a b",
            "b%C3%BCx",
            "b\u{fc}x",
            "%41",
            "a<b>",
            "",
            "[::1%25]",
            "x[::1]",
            "[::ffff:1.2.3.4]",
            "a%25b",
            "[fe80::1%25a%20b]",
            "[fe80::1%25%41]",
            "[::g]",
        ]));
        url.push_str(self.random.pick(&["", "", "", ":80", ":", ":x", ":1:2", "::"]));
        url.push_str(self.random.pick(&[
            "", "/", "/a/b", "/a%2Fb", "/a b", "/\u{e4}", "/%C3%A4", "/%zz", "/a;b=c,d", "/*",
            "//x",
        ]));
        url.push_str(self.random.pick(&[
            "",
            "",
            "",
            "?",
            "?a=1&b=%20",
            "?a?b",
            "??",
            "?x=\u{fc} ",
        ]));
        url.push_str(
            self.random.pick(&["", "", "", "#", "#top", "#a%20b", "#%z", "#x#y", "#\u{fc}"]),
        );
        if self.random.chance(3) {
            url.push_str(self.random.pick(&["\u{7f}", "\t", "\n"]));
        }
        url
    }

    fn version(&mut self) -> String {
        let mut text = self.random.pick(&["", "", "", "v", "V", " "]).to_owned();
        if !self.random.chance(30) {
            text = text.trim().to_owned();
        }
        let numbers = ["0", "1", "2", "3", "10", "01", "18446744073709551615"];
        text.push_str(self.random.pick(&numbers));
        for _ in 0..self.random.below(3) {
            text.push('.');
            text.push_str(self.random.pick(&["0", "1", "2", "3", "9", "007"]));
        }
        if self.random.chance(35) {
            text.push_str(self.random.pick(&[
                "-rc.1", "-rc.2", "-alpha", "-1", "-01", "-a-b", "-", "-a..b", "-x.7.z", "-10",
                "-9",
            ]));
        }
        if self.random.chance(15) {
            text.push_str(self.random.pick(&["+b1", "+b.2", "+", "+007", "+a_b", ".4", "\n"]));
        }
        text
    }

    fn constraint(&mut self) -> String {
        let mut text = self.one_constraint();
        for _ in 0..self.random.below(3) {
            let between = [" ", ", ", ",", " || ", "||", " - ", "  ", " | ", ""];
            text.push_str(self.random.pick(&between));
            text.push_str(&self.one_constraint());
        }
        text
    }

    fn one_constraint(&mut self) -> String {
        let operators = [
            "", "", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^", "^ ", ">= ", "==",
        ];
        let operator = self.random.pick(&operators);
        let version = match self.random.below(3) {
            0 => self.version(),
            _ => {
                let major = self.random.pick(&["0", "1", "2", "x", "*", "v1", "1x"]);
                let minor = self.random.pick(&["", "", ".0", ".1", ".2", ".x", ".*"]);
                let patch = self.random.pick(&["", "", ".0", ".3", ".X"]);
                let pre = self.random.pick(&["", "", "", "-0", "-rc.1"]);
                format!("{major}{minor}{patch}{pre}")
            }
        };
        format!("{operator}{version}")
    }
}
