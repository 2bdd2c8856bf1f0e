//! Line difference of two texts, in the format of `diff -u`.

use std::fmt::Write as _;

/// Number of unchanged lines that are shown before and after a change.
const CONTEXT: usize = 3;
/// Maximum number of line pairs to compare. In larger texts, all lines between the common beginning
/// and the common end count as changed.
const PAIRS_MAX: usize = 4_000_000;

/// Line in both texts, only in the old text, or only in the new text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// Returns the difference of two texts, or an empty text if they are equal.
pub fn unified(old: &str, new: &str) -> String {
    let lines = compared(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let mut text = String::new();
    let changed = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let mut at = 0;
    while let Some(next) = lines[at..].iter().position(changed).map(|next| at + next) {
        let begin = next.saturating_sub(CONTEXT).max(at);
        let mut end = next + 1;
        // Nearby changes belong to one hunk.
        while let Some(more) = lines[end..].iter().position(changed) {
            if more > 2 * CONTEXT {
                break;
            }
            end += more + 1;
        }
        let end = (end + CONTEXT).min(lines.len());
        piece(&mut text, &lines, begin, end);
        at = end;
    }
    text
}

fn piece(text: &mut String, lines: &[Line<'_>], begin: usize, end: usize) {
    let count = |lines: &[Line<'_>], of_old: bool| {
        let other = |line: &&Line<'_>| match line {
            Line::Same(_) => true,
            Line::Old(_) => of_old,
            Line::New(_) => !of_old,
        };
        lines.iter().filter(other).count()
    };
    let place = |of_old: bool| {
        let length = count(&lines[begin..end], of_old);
        let from = count(&lines[..begin], of_old) + usize::from(length > 0);
        format!("{from},{length}")
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "@@ -{} +{} @@", place(true), place(false));
    for line in &lines[begin..end] {
        let _ = match line {
            Line::Same(line) => writeln!(text, " {line}"),
            Line::Old(line) => writeln!(text, "-{line}"),
            Line::New(line) => writeln!(text, "+{line}"),
        };
    }
}

/// Merges the lines of both texts by their longest common subsequence.
fn compared<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let pairs = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = pairs.take_while(|(old, new)| old == new).count();
    let (old_mid, new_mid) =
        (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    let mut lines: Vec<Line<'a>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    if old_mid.len().saturating_mul(new_mid.len()) > PAIRS_MAX {
        lines.extend(old_mid.iter().map(|line| Line::Old(line)));
        lines.extend(new_mid.iter().map(|line| Line::New(line)));
    } else {
        lines.extend(common(old_mid, new_mid));
    }
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

fn common<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    // Length of the longest common subsequence of both rests, for each pair of positions.
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = if old[i] == new[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut lines, mut i, mut j) = (Vec::new(), 0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        {
            lines.push(Line::Old(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{PAIRS_MAX, unified};

    #[test]
    fn what_differs_is_shown_with_what_is_around_it() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let new = "a\nb\nC\nd\ne\nf\ng\nh\ni\nj\nk\nm\nl\n";
        let want =
            "@@ -1,6 +1,6 @@\n a\n b\n-c\n+C\n d\n e\n f\n@@ -9,4 +9,5 @@\n i\n j\n k\n+m\n l\n";
        assert_eq!(unified(old, new), want);
        assert_eq!(unified(old, old), "");
        assert_eq!(unified("", "a\n"), "@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(unified("a\n", ""), "@@ -1,1 +0,0 @@\n-a\n");
        assert_eq!(unified("a\nb\n", "b\na\n"), "@@ -1,2 +1,2 @@\n-a\n b\n+a\n");
    }

    #[test]
    fn texts_without_end_are_not_compared_for_ever() {
        let many = |word: &str| {
            let count = PAIRS_MAX.isqrt() + 10;
            (0..count).map(|at| format!("{word}{at}\n")).collect::<String>()
        };
        let shown = unified(&many("a"), &many("b"));
        assert_eq!(shown.lines().filter(|line| line.starts_with('-')).count(), 2010);
    }
}
