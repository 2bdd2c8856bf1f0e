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

    fn shorten(&mut self, limit: usize) {
        if self.text.chars().count() > limit {
            self.text = self.text.trim_end_matches(ELLIPSIS).chars().take(limit - 1).collect();
            self.text.push(ELLIPSIS);
        }
    }
}

/// Table whose column widths follow from its rows.
#[derive(Debug, Clone)]
pub struct Table {
    headings: Vec<&'static str>,
    details: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
    has_headings: bool,
}

/// Minimum width of a column that [`Table::fit`] shortens, in characters.
const SHORT_MIN: usize = 12;
/// Mark at the end of a shortened text.
const ELLIPSIS: char = '…';

impl Table {
    /// Creates a table without rows.
    pub fn new(headings: &[&'static str]) -> Table {
        Table { headings: headings.to_vec(), details: &[], rows: Vec::new(), has_headings: true }
    }

    /// Names the columns that only a wide table has.
    pub fn with_details(self, details: &'static [&'static str]) -> Table {
        Table { details, ..self }
    }

    /// Leaves out the line of headings.
    pub fn without_headings(self) -> Table {
        Table { has_headings: false, ..self }
    }

    /// Appends a row with a cell for each heading; later headings may lack one.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the table without the columns of [`Table::with_details`].
    pub fn brief(self) -> Table {
        let stays: Vec<bool> = self.headings.iter().map(|it| !self.details.contains(it)).collect();
        let Table { headings, rows, has_headings, .. } = self;
        let rows = rows.into_iter().map(|row| kept(row, &stays)).collect();
        Table { headings: kept(headings, &stays), details: &[], rows, has_headings }
    }

    /// Shortens the widest texts, so that no line is wider than `width` characters. A table with
    /// too many columns stays wider.
    pub fn fit(&mut self, width: usize) {
        loop {
            let widths = self.widths();
            let total = widths.iter().sum::<usize>() + GAP.len() * (widths.len().max(1) - 1);
            let Some(excess) = total.checked_sub(width).filter(|excess| *excess > 0) else {
                return;
            };
            let heading = |at: usize| self.headings[at].chars().count();
            let shrinkable = |at: &usize| widths[*at] > heading(*at).max(SHORT_MIN);
            let widest = (0..widths.len()).filter(shrinkable).max_by_key(|at| widths[*at]);
            let Some(at) = widest else { return };
            // A little at a time, so that two wide columns share the loss.
            let step = excess.min(widths[at].div_ceil(8));
            let limit = (widths[at] - step).max(heading(at)).max(SHORT_MIN);
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(at)) {
                cell.shorten(limit);
            }
        }
    }

    /// Returns the headings of all columns.
    pub fn headings(&self) -> &[&'static str] {
        &self.headings
    }

    /// Returns the texts of each row.
    pub fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        self.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect())
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
        for row in self.has_headings.then_some(&headings).into_iter().chain(&self.rows) {
            text.push_str(&line(row, &widths, color));
            text.push('\n');
        }
        text
    }
}

/// Returns the items of a row whose column stays.
fn kept<T>(row: Vec<T>, stays: &[bool]) -> Vec<T> {
    row.into_iter().zip(stays).filter_map(|(item, stays)| stays.then_some(item)).collect()
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

    #[test]
    fn a_table_fits_its_width_and_leaves_out_its_details() {
        let mut table = Table::new(&["NAME", "WHY", "ID"]).with_details(&["ID"]);
        let why = "the server at files.example responded with status 404";
        table.row(["nuc1".into(), why.into(), "3f0c".into()]);
        table.row(["né".into(), "".into(), "9a11".into()]);
        assert!(table.render(false).ends_with("9a11\n"));
        let mut brief = table.brief();
        brief.fit(30);
        let want = "NAME   WHY\nnuc1   the server at files.ex…\nné\n";
        assert_eq!(brief.render(false), want);
        assert!(!brief.clone().without_headings().render(false).contains("NAME"));
        brief.fit(1);
        assert!(brief.render(false).contains("the server …\n"), "{}", brief.render(false));
    }
}
