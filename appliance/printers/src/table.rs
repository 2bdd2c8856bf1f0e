//! Tables in kubectl's format: capital headings, three spaces between columns, none at the end.

use status::words::{Tone, Word};

const GAP: &str = "   ";

/// Text of one cell, with the tone that decides its color.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), tone: None }
    }
}

impl Cell {
    /// Creates a cell in the color of `tone`.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone: Some(tone) }
    }

    /// Creates a cell with a state, in the color of its tone.
    pub fn word(word: Word) -> Cell {
        Cell { text: word.text.to_owned(), tone: Some(word.tone) }
    }
}

/// Table whose column widths follow from its rows.
#[derive(Debug, Clone)]
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(headings: &[&'static str]) -> Table {
        Table { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Appends a row with a cell for each heading; later headings may lack one.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the width of every column, in characters.
    pub fn widths(&self) -> Vec<usize> {
        let width = |at: usize, heading: &str| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let widest = cells.map(|cell| cell.text.chars().count()).max().unwrap_or_default();
            widest.max(heading.chars().count())
        };
        self.headings.iter().enumerate().map(|(at, heading)| width(at, heading)).collect()
    }

    /// Returns the lines of the table, each with its newline.
    pub fn render(&self, color: bool) -> String {
        let widths = self.widths();
        let headings: Vec<Cell> = self.headings.iter().map(|it| Cell::from(*it)).collect();
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            text.push_str(&line(row, &widths, color));
            text.push('\n');
        }
        text
    }
}

/// Formats one row in columns of these widths.
pub fn line(row: &[Cell], widths: &[usize], color: bool) -> String {
    let mut text = String::new();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        text.push_str(&paint(&cell.text, cell.tone, color));
        if row[at + 1..].iter().any(|later| !later.text.is_empty()) {
            text.push_str(&pad(&cell.text, *width));
            text.push_str(GAP);
        }
    }
    text
}

/// Returns the spaces that fill `text` up to `width` characters.
pub fn pad(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

/// Returns `text` with the terminal color of its tone.
pub fn paint(text: &str, tone: Option<Tone>, color: bool) -> String {
    let code = match tone {
        Some(Tone::Good) => "32",
        Some(Tone::Bad) => "31",
        Some(Tone::Busy | Tone::Waiting) => "33",
        Some(Tone::Quiet) | None => return text.to_owned(),
    };
    if color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Table};
    use api::tinkerbell::State;
    use status::words;

    #[test]
    fn columns_line_up_and_lines_end_in_text() {
        let [running, failed] = [State::Running, State::Failed].map(words::workflow);
        let mut table = Table::new(&["NAME", "STATE", "AGE"]);
        table.row(["né".into(), Cell::word(running), "5s".into()]);
        table.row(["a-long-name".into(), Cell::word(failed), "".into()]);
        let want = "NAME          STATE     AGE\n\
                    né            running   5s\n\
                    a-long-name   failed\n";
        assert_eq!(table.render(false), want);
        assert!(table.render(true).contains("\u{1b}[31mfailed\u{1b}[0m\n"));
    }
}
