//! Commands of a shell block, split into words. The shell of the pages is small: comments, line
//! continuation, quotes, `NAME=value` in front, `sudo`, pipes and redirection to a file.

/// A command of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The number of the command's first line in the block, from 0.
    pub line: usize,
    /// Variables that are set for the command, as `NAME=value`.
    pub variables: Vec<String>,
    /// The program and its arguments.
    pub words: Vec<String>,
}

/// Returns the commands of a block; each part of a pipe is one command.
///
/// # Errors
/// A quote that is not closed.
pub fn commands(text: &str) -> Result<Vec<Command>, String> {
    let parts = lines(text).into_iter().map(|(number, line)| parts(number, &line));
    parts.collect::<Result<Vec<_>, _>>().map(|commands| commands.concat())
}

/// Returns the lines of a block as a shell takes them, with their numbers from 0: continued lines
/// are joined, and comments and empty lines left out.
pub fn lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let (first, before) = open.take().unwrap_or((number, String::new()));
        let line = if before.is_empty() { line.trim() } else { line.trim_start() };
        match line.strip_suffix('\\') {
            Some(part) => open = Some((first, before + part)),
            None => lines.push((first, before + without_comment(line))),
        }
    }
    lines.retain(|(_, line)| !line.is_empty());
    lines
}

/// Cuts off a comment: a `#` outside of quotes, at the start of a word.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, char) in line.char_indices() {
        match quote {
            None if char == '#' && before == ' ' => return line[..at].trim_end(),
            None if matches!(char, '\'' | '"') => quote = Some(char),
            Some(open) if open == char => quote = None,
            _ => {}
        }
        before = char;
    }
    line
}

fn parts(line: usize, text: &str) -> Result<Vec<Command>, String> {
    let mut commands = Vec::new();
    for part in words(text)?.split(|word| *word == Word::Pipe) {
        let mut words = part.iter().filter_map(|word| match word {
            Word::Text(text) => Some(text.clone()),
            Word::Pipe | Word::File(_) => None,
        });
        let mut command = Command { line, variables: Vec::new(), words: Vec::new() };
        for word in words.by_ref() {
            if word.split_once('=').is_some_and(|(name, _)| is_name(name)) {
                command.variables.push(word);
            } else if word != "sudo" {
                command.words.push(word);
                break;
            }
        }
        command.words.extend(words);
        if !command.words.is_empty() {
            commands.push(command);
        }
    }
    Ok(commands)
}

/// Returns true if `name` can be the name of an environment variable: upper-case letters and `_`.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_ascii_uppercase() || char == '_')
}

#[derive(Debug, PartialEq, Eq)]
enum Word {
    Text(String),
    /// The target of a redirection.
    File(String),
    Pipe,
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    let mut redirected = false;
    while let Some(char) = chars.next() {
        match char {
            ' ' => {}
            '#' => break,
            '|' | ';' => words.push(Word::Pipe),
            '>' => redirected = true,
            first => {
                let mut word = String::new();
                let mut next = Some(first);
                while let Some(char) = next {
                    match char {
                        '\'' | '"' => word.push_str(&quoted(&mut chars, char, text)?),
                        other => word.push(other),
                    }
                    next = chars.next_if(|it| !" ;|>".contains(*it));
                }
                let is_file = std::mem::take(&mut redirected);
                words.push(if is_file { Word::File(word) } else { Word::Text(word) });
            }
        }
    }
    Ok(words)
}

/// Reads the rest of a quoted text, up to the closing quote.
fn quoted(
    chars: &mut impl Iterator<Item = char>,
    quote: char,
    text: &str,
) -> Result<String, String> {
    let mut found = String::new();
    for char in chars {
        if char == quote {
            return Ok(found);
        }
        found.push(char);
    }
    Err(format!("a quote is not closed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::{commands, lines};

    #[track_caller]
    fn check(text: &str, expected: &[(usize, &str)]) {
        let found = commands(text).unwrap();
        let found: Vec<_> = found.iter().map(|it| (it.line, it.words.join("·"))).collect();
        let expected: Vec<_> =
            expected.iter().map(|(line, words)| (*line, (*words).to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn commands_are_split_as_a_shell_does() {
        check("make a  # b\n\n# c\n", &[(0, "make·a")]);
        check("tinbox a \\\n  --b c\nmake d", &[(0, "tinbox·a·--b·c"), (2, "make·d")]);
        check(
            "tail -n +3 a | age -d | tar -xz",
            &[(0, "tail·-n·+3·a"), (0, "age·-d"), (0, "tar·-xz")],
        );
        check("sudo A=1 make b", &[(0, "make·b")]);
        check("tinbox a > b.kubeconfig", &[(0, "tinbox·a")]);
        check("tinbox a 'b c' d=\"e f\"", &[(0, "tinbox·a·b c·d=e f")]);
        assert!(commands("tinbox 'a").is_err());
    }

    #[test]
    fn lines_are_joined_and_have_no_comment() {
        let text = "make a   # b\n\n# c\ntinbox d \\\n  --set e='f #g' \\\n  --wait\n";
        let found = lines(text);
        assert_eq!(found[0], (0, "make a".to_owned()));
        assert_eq!(found[1], (3, "tinbox d --set e='f #g' --wait".to_owned()));
        assert_eq!(found.len(), 2);
    }
}
