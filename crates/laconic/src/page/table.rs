//! Tables as HTML.

use std::fmt::Write;

use crate::plot::{Figure, escape};

/// A table with a line of names above; the text of every cell is escaped. The first column stays in sight where the
/// table is wider than the page.
#[derive(Default)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// The cells of each row, as many as the head has.
    pub rows: Vec<Vec<String>>,
    /// A picture before each row's first cell; may be shorter than the rows.
    pub keys: Vec<Figure>,
    /// How many columns hold words, the first among them; the others hold numbers.
    pub words: usize,
}

impl Table {
    /// A table without rows.
    pub fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|name| name.to_string()).collect(), words: 1, ..Table::default() }
    }

    /// The table as markup; nothing where it has no rows.
    pub fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut html = "<div class=\"scroll\"><table>\n<tr>".to_owned();
        let class = |column: usize| if (1..self.words).contains(&column) { " class=\"words\"" } else { "" };
        for (column, cell) in self.head.iter().enumerate() {
            let _ = write!(html, "<th{}>{}</th>", class(column), escape(cell));
        }
        html += "</tr>\n";
        for (index, row) in self.rows.iter().enumerate() {
            html += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                let key = self.keys.get(index).filter(|_| column == 0).map(Figure::in_page).unwrap_or_default();
                let _ = write!(html, "<td{}>{}{}</td>", class(column), key.trim_end(), escape(cell));
            }
            html += "</tr>\n";
        }
        html + "</table></div>\n"
    }
}
