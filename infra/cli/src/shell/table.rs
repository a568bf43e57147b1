//! Tables for people. On a terminal, their columns fit its width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::screen::{Look, Screen, line};

/// Between two columns.
const GAP: usize = 2;

/// No column becomes narrower than this so that the table fits.
const NARROW: usize = 8;

/// The widest cell where nothing limits the width. A cell of a megabyte would make every row as long.
const WIDE: usize = 200;

/// The fewest digits of a shortened id.
const DIGITS: usize = 8;

struct Cell {
    text: String,
    look: Look,
}

/// Rows of cells below their headings.
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    screen: Screen,
}

impl Table {
    #[must_use]
    pub fn new(screen: Screen, head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new(), screen }
    }

    /// Adds a row. The texts may come from anybody.
    pub fn row<const N: usize>(&mut self, cells: [(&str, Look); N]) {
        debug_assert_eq!(N, self.head.len());
        let cell = |(text, look): (&str, Look)| {
            // Long before it is cut for the width, so that a hostile text costs little.
            let start: String = text.chars().take(WIDE * 4).collect();
            Cell { text: line(&start), look }
        };
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines of the table, without the heading if there are no rows. Columns that are empty in every row are left out.
    #[must_use]
    pub fn lines(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let shown: Vec<usize> = (0..self.head.len())
            .filter(|column| self.rows.iter().any(|row| !row[*column].text.is_empty()))
            .collect();
        let widths: Vec<usize> = shown
            .iter()
            .map(|&column| {
                let widest = self.rows.iter().map(|row| row[column].text.width()).max().unwrap_or(0);
                widest.max(self.head[column].width()).min(WIDE)
            })
            .collect();
        let widths = fitted(widths, self.screen.width);
        let mut lines = String::new();
        let head: Vec<(&str, Look)> = shown.iter().map(|&column| (self.head[column], Look::Dim)).collect();
        self.add(&mut lines, &head, &widths);
        for row in &self.rows {
            let cells: Vec<(&str, Look)> =
                shown.iter().map(|&column| (row[column].text.as_str(), row[column].look)).collect();
            self.add(&mut lines, &cells, &widths);
        }
        lines
    }

    fn add(&self, lines: &mut String, cells: &[(&str, Look)], widths: &[usize]) {
        let last = cells.iter().rposition(|(text, _)| !text.is_empty()).unwrap_or(0);
        for (at, ((text, look), width)) in cells.iter().zip(widths).enumerate().take(last + 1) {
            let text = cut(text, *width);
            lines.push_str(&self.screen.painted(&text, *look));
            if at < last {
                let missing = width.saturating_sub(text.width()) + GAP;
                lines.extend(std::iter::repeat_n(' ', missing));
            }
        }
        lines.push('\n');
    }
}

/// The widths, with the widest columns made narrower until the table fits.
fn fitted(mut widths: Vec<usize>, screen: Option<usize>) -> Vec<usize> {
    let Some(screen) = screen else { return widths };
    let gaps = GAP * widths.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(screen);
    while excess > 0 {
        let widest = widths.iter().copied().max().unwrap_or(0);
        if widest <= NARROW {
            break;
        }
        let next = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0).max(NARROW);
        let of_widest = widths.iter().filter(|width| **width == widest).count();
        let less = (widest - next).min(excess.div_ceil(of_widest));
        for width in widths.iter_mut().filter(|width| **width == widest) {
            let taken = less.min(excess);
            *width -= taken;
            excess -= taken;
        }
    }
    widths
}

/// The beginning of a text that needs at most this many columns, with a mark if something was cut.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    // Characters without a width could make a cell of any length.
    let most = columns.saturating_mul(4);
    if text.width() <= columns && text.chars().count() <= most {
        return text.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 0);
    for c in text.chars().take(most) {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        kept.push(c);
    }
    // A character may change the width of the one before it, as the selector of an emoji does.
    while kept.width() + 1 > columns && kept.pop().is_some() {}
    let mut kept = kept.trim_end().to_owned();
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// The ids in the form for this output: whole for programs, and for a person on a terminal as short as they stay different.
#[must_use]
pub fn short_ids(screen: Screen, ids: &[&str]) -> Vec<String> {
    if screen.width.is_none() {
        return ids.iter().map(|id| (*id).to_owned()).collect();
    }
    let length_of =
        |id: &str, digits: usize| id.find('_').map_or(id.len(), |at| (at + 1 + digits).min(id.len()));
    let short = |digits: usize| -> Vec<String> {
        ids.iter().map(|id| id.get(..length_of(id, digits)).unwrap_or(id).to_owned()).collect()
    };
    let different = |ids: &[String]| ids.iter().collect::<std::collections::BTreeSet<_>>().len();
    let wanted = ids.iter().collect::<std::collections::BTreeSet<_>>().len();
    (DIGITS..=32).step_by(2).map(short).find(|ids| different(ids) == wanted).unwrap_or_else(|| short(32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn screen(width: Option<usize>) -> Screen {
        Screen::plain(width)
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new(screen(None), &["NAME", "EMPTY", "COST"]);
        table.row([("Wächter", Look::Bold), ("", Look::Plain), ("$1", Look::Plain)]);
        table.row([("日本語", Look::Plain), ("", Look::Plain), ("$12", Look::Plain)]);
        table.row([("a\u{1b}[2J\nb", Look::Plain), ("", Look::Plain), ("", Look::Plain)]);
        assert_eq!(table.lines(), "NAME          COST\nWächter       $1\n日本語        $12\na\\u{1b}[2J b\n");
        assert_eq!(Table::new(screen(None), &["NAME"]).lines(), "");
    }

    #[test]
    fn the_widest_columns_give_way() {
        assert_eq!(fitted(vec![10, 40, 30], None), [10, 40, 30]);
        assert_eq!(fitted(vec![10, 40, 30], Some(84)), [10, 40, 30]);
        assert_eq!(fitted(vec![10, 40, 30], Some(64)), [10, 25, 25]);
        assert_eq!(fitted(vec![10, 40, 30], Some(74)), [10, 30, 30]);
        assert_eq!(fitted(vec![10, 40, 30], Some(5)), [8, 8, 8]);
        assert_eq!(fitted(vec![4, 40], Some(5)), [4, 8]);
    }

    #[test]
    fn a_text_is_cut_between_its_characters() {
        for (text, columns, kept) in [
            ("abcdef", 6, "abcdef"),
            ("abcdef", 5, "abcd…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("a b c", 3, "a…"),
            ("abc", 0, ""),
            ("0\u{fe0f}0\u{fe0f}0\u{fe0f}0", 4, "0\u{fe0f}0…"),
            ("e\u{301}e\u{301}e\u{301}", 3, "e\u{301}e\u{301}e\u{301}"),
        ] {
            assert_eq!(cut(text, columns), kept, "{text} {columns}");
        }
        let zalgo = "\u{301}".repeat(1_000_000);
        assert!(cut(&zalgo, 10).len() < 100);
    }

    #[test]
    fn ids_are_as_short_as_they_stay_different() {
        let ids = ["act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c", "act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4d"];
        assert_eq!(short_ids(screen(None), &ids), ids);
        assert_eq!(short_ids(screen(Some(80)), &ids), ids);
        let ids = ["act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c", "act_01938f2b7c5e7d3a9b1f4c6d8e0a2b4d"];
        assert_eq!(short_ids(screen(Some(80)), &ids), ["act_01938f2a", "act_01938f2b"]);
        assert_eq!(short_ids(screen(Some(80)), &[ids[0], ids[0]]), ["act_01938f2a", "act_01938f2a"]);
        assert_eq!(short_ids(screen(Some(80)), &["", "ü_ü"]), ["", "ü_ü"]);
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_the_screen(
            rows in prop::collection::vec(prop::array::uniform3("\\PC{0,60}"), 1..5), width in 30_usize..100,
        ) {
            let mut table = Table::new(screen(Some(width)), &["A", "B", "C"]);
            for [a, b, c] in &rows {
                table.row([(a, Look::Plain), (b, Look::Plain), (c, Look::Plain)]);
            }
            for row in table.lines().lines() {
                prop_assert!(row.width() <= width, "{row:?}");
            }
        }
    }
}
