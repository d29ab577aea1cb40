//! The page as it grows: headings, text, tables, figures. Only this file, `table.rs` and `plot` write markup.

pub mod table;

use std::fmt::Write;

use crate::plot::{Figure, NARROW, STYLE, WIDE, escape};
use table::Table;

/// The rules of the page; those of its figures are [`STYLE`]. Wide figures give way to narrow ones where the letters of
/// the former would be too small to read.
const PAGE_STYLE: &str = "\
:root{color-scheme:light dark;--ink:#222;--quiet:#5a5a5a;--ground:#fff;--line:#dcdcdc;--box:#f5f5f5}
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--quiet:#aeb4ba;--ground:#15181c;--line:#343a41;--box:#1f2429}}
body{font-family:system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:73rem;margin:1.2rem auto;\
padding:0 .8rem;line-height:1.45}
h1{font-size:1.45rem;margin:.4rem 0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
p{max-width:46rem;overflow-wrap:anywhere}.quiet{color:var(--quiet)}
svg{max-width:100%;height:auto;display:block}figure{margin:.8rem 0}figcaption{color:var(--quiet);font-size:.85rem}
.narrow{display:none}
@media (max-width:820px){.wide{display:none}.narrow{display:block}}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,22rem),1fr));gap:1rem .8rem}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .45rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
td:first-child,th:first-child{text-align:left;position:sticky;left:0;background:var(--ground);white-space:normal;\
min-width:6rem;max-width:17rem;overflow-wrap:anywhere}td.words,th.words{text-align:left}
td:has(svg){min-width:11rem}
td svg{display:inline-block;vertical-align:-3px;margin-right:.35rem}
code,pre{background:var(--box);font-size:.8rem}code{padding:.1rem .3rem;overflow-wrap:anywhere}
pre{padding:.8rem;overflow:auto}
details{margin:.5rem 0;border:1px solid var(--line);border-radius:.3rem;padding:.3rem .7rem}
summary{cursor:pointer;font-weight:600;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:.6rem 0}
@media (max-width:820px){td,th{padding:.25rem .4rem}td:first-child,th:first-child,td:has(svg){min-width:7rem;\
max-width:8.5rem}td:nth-child(2){white-space:normal;min-width:4.3rem}}
";

/// A page, or a piece of one.
#[derive(Default)]
pub struct Page {
    html: String,
}

impl Page {
    /// The heading of a section.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.html, "<h2>{}</h2>", escape(text));
    }

    /// A paragraph; none where there is nothing to say.
    pub fn say(&mut self, text: &str) {
        if !text.is_empty() {
            let _ = writeln!(self.html, "<p>{}</p>", escape(text));
        }
    }

    /// A paragraph beside the matter.
    pub fn note(&mut self, text: &str) {
        let _ = writeln!(self.html, "<p class=\"quiet\">{}</p>", escape(text));
    }

    /// A paragraph with a command.
    pub fn command(&mut self, text: &str, command: &str) {
        let _ = writeln!(self.html, "<p class=\"quiet\">{} <code>{}</code></p>", escape(text), escape(command));
    }

    /// A table where the page has come to.
    pub fn table(&mut self, table: &Table) {
        self.html += &table.html();
    }

    /// A figure in two widths, of which a reader sees the one that fits.
    pub fn figure(&mut self, draw: impl Fn(f64) -> Figure) {
        let (wide, narrow) = (draw(WIDE).in_page(), draw(NARROW).in_page());
        let _ = writeln!(
            self.html,
            "<figure><div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div></figure>"
        );
    }

    /// Narrow figures side by side, as many as there is room for; none where there are none.
    pub fn panels(&mut self, figures: &[Figure], caption: &str) {
        if figures.is_empty() {
            return;
        }
        self.html += "<figure>";
        if !caption.is_empty() {
            let _ = writeln!(self.html, "<figcaption>{}</figcaption>", escape(caption));
        }
        self.html += "<div class=\"panels\">\n";
        self.html.extend(figures.iter().map(Figure::in_page));
        self.html += "</div></figure>\n";
    }

    /// A text as it is.
    pub fn text(&mut self, text: &str) {
        let _ = writeln!(self.html, "<pre>{}</pre>", escape(text.trim_end()));
    }

    /// A piece that is folded away.
    pub fn fold(&mut self, title: &str, piece: Page) {
        let _ = writeln!(self.html, "<details><summary>{}</summary>\n{}</details>", escape(title), piece.html);
    }

    /// The whole page under its title.
    pub fn finish(self, title: &str) -> String {
        let title = escape(title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
             <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
             <style>{PAGE_STYLE}{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{}</body></html>\n",
            self.html
        )
    }
}
