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
}

impl Table {
    /// A table without rows.
    pub fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|name| name.to_string()).collect(), ..Table::default() }
    }

    /// The table as markup; nothing where it has no rows.
    pub fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut html = "<div class=\"scroll\"><table>\n<tr>".to_owned();
        for cell in &self.head {
            let _ = write!(html, "<th>{}</th>", escape(cell));
        }
        html += "</tr>\n";
        for (index, row) in self.rows.iter().enumerate() {
            html += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                let key = self.keys.get(index).filter(|_| column == 0).map(Figure::in_page).unwrap_or_default();
                let _ = write!(html, "<td>{}{}</td>", key.trim_end(), escape(cell));
            }
            html += "</tr>\n";
        }
        html + "</table></div>\n"
    }
}
