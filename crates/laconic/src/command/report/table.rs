//! Tables as HTML.

use std::fmt::Write;

use crate::plot::escape;

/// A table with a line of names above; the text of every cell is escaped.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut html = "<div class=\"scroll\"><table><tr>".to_owned();
    for cell in head {
        let _ = write!(html, "<th>{}</th>", escape(cell));
    }
    html += "</tr>\n";
    for row in rows {
        html += "<tr>";
        for cell in row {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html += "</tr>\n";
    }
    html + "</table></div>\n"
}
