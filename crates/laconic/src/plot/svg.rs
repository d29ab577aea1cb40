//! Markup: shapes with numbers, and text that can hold anything.

use std::fmt::Write;

use super::look::{STYLE, colour, corners, dash};
use super::text::{LINE, SIZE, wrap};
use crate::visible::visible;

/// Text that markup cannot be hidden in; what nobody would see is an escape, what XML does not allow a question mark.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The first `letters` letters of a text that may be too long for its place.
pub fn short(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// How much wider the letters of titles are than others.
const BOLD: f64 = 1.25;

/// Where a text stands relative to its point.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// The point is its left end.
    Start,
    /// The point is its middle.
    Middle,
    /// The point is its right end.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// How much a curve stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// One of several that a stronger one sums up.
    Thin,
    /// One that counts.
    Strong,
}

/// A picture that grows.
#[derive(Default)]
pub struct Svg {
    body: String,
}

/// A finished picture.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Width and height in pixels.
    pub size: (f64, f64),
    label: String,
    body: String,
}

impl Svg {
    /// A text; (x, y) is on its base line. A quiet one is less black.
    fn write(&mut self, (x, y): (f64, f64), anchor: Anchor, about: &str, text: &str) {
        let (anchor, text) = (anchor.name(), escape(text));
        let _ = write!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{about}>{text}</text>");
    }

    /// A text; (x, y) is on its base line.
    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.write(at, anchor, "", text);
    }

    /// A text that is less black, for numbers on axes.
    pub fn quiet(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.write(at, anchor, " class=\"quiet\"", text);
    }

    /// Lines of text in a column around a height, one below the other.
    pub fn block(&mut self, (x, middle): (f64, f64), anchor: Anchor, lines: &[String]) {
        let first = middle - LINE * lines.len() as f64 / 2.0 + LINE * 0.75;
        for (index, line) in lines.iter().enumerate() {
            self.text((x, first + LINE * index as f64), anchor, line);
        }
    }

    /// The title of a picture of this width and what stands below it, wrapped; returns where they end.
    pub fn heading(&mut self, width: f64, title: &str, below: &str) -> f64 {
        let mut y = 4.0;
        for line in wrap(title, (width - 8.0) / BOLD) {
            y += LINE + 1.0;
            self.write((4.0, y), Anchor::Start, " font-weight=\"600\" font-size=\"14\"", &line);
        }
        for line in wrap(below, width - 8.0).iter().filter(|line| !line.is_empty()) {
            y += LINE;
            self.quiet((4.0, y), Anchor::Start, line);
        }
        y
    }

    /// A filled rectangle of a class of colours, that says `title` when pointed at.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), style: usize, title: &str) {
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"f{}\">{}</rect>",
            colour(style),
            said(title)
        );
    }

    /// Many rectangles of one height and colour, as left, top and width each.
    pub fn strips(&mut self, strips: &[(f64, f64, f64)], height: f64, style: usize) {
        let mut path = String::new();
        for (x, y, width) in strips {
            let _ = write!(path, "M{x:.1} {y:.0}h{width:.1}v{height:.0}h-{width:.1}z");
        }
        if !path.is_empty() {
            let _ = write!(self.body, "<path d=\"{path}\" class=\"f{}\"/>", colour(style));
        }
    }

    /// A rectangle whose shade is a share of the full one.
    pub fn shade(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), share: f64, title: &str) {
        let share = share.clamp(0.0, 1.0);
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"shade\" \
             fill-opacity=\"{share:.2}\">{}</rect>",
            said(title)
        );
    }

    /// A curve in the colour and dash of number `style`, with a title.
    pub fn curve(&mut self, points: &[(f64, f64)], style: usize, weight: Weight, title: &str) {
        let (colour, points) = (colour(style), path(points));
        let (width, dash) = match weight {
            Weight::Thin => ("1\" stroke-opacity=\".5", ""),
            Weight::Strong => ("2", dash(style)),
        };
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let _ = write!(
            self.body,
            "<polyline points=\"{points}\" class=\"curve s{colour}\" stroke-width=\"{width}\"{dash}>{}</polyline>",
            said(title)
        );
    }

    /// A straight line of a class: `grid`, `axis`, `leader`, `stage`.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        let _ =
            write!(self.body, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>");
    }

    /// A straight line of a style's colour.
    pub fn stroke(&mut self, from: (f64, f64), to: (f64, f64), style: usize) {
        self.line(from, to, &format!("s{}", colour(style)));
    }

    /// The front: steps through its points.
    pub fn front(&mut self, points: &[(f64, f64)]) {
        let _ = write!(self.body, "<polyline points=\"{}\" class=\"front\"/>", path(points));
    }

    /// A marker in shape and colour of number `style`, with a title.
    pub fn marker(&mut self, (x, y): (f64, f64), style: usize, title: &str) {
        const RADIUS: f64 = 5.2;
        let (fill, said) = (colour(style), said(title));
        let corners: Vec<(f64, f64)> = corners(style).iter().map(|(a, b)| (x + a * RADIUS, y + b * RADIUS)).collect();
        let _ = if corners.is_empty() {
            write!(
                self.body,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS}\" class=\"mark f{fill}\">{said}</circle>"
            )
        } else {
            let corners = path(&corners);
            write!(self.body, "<polygon points=\"{corners}\" class=\"mark f{fill}\">{said}</polygon>")
        };
    }

    /// A ring around a marker.
    pub fn ring(&mut self, (x, y): (f64, f64)) {
        let _ = write!(self.body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\" class=\"ring\"/>");
    }

    /// The picture; `label` is what a screen reader says.
    pub fn finish(self, width: f64, height: f64, label: &str) -> Figure {
        Figure { size: (width, height), label: label.to_owned(), body: self.body }
    }
}

impl Figure {
    /// The picture as part of a page that holds [`STYLE`].
    pub fn in_page(&self) -> String {
        self.markup("", "")
    }

    /// The picture as a file of its own, with its colours and its ground.
    pub fn alone(&self) -> String {
        let style = format!(
            "<style>{}{STYLE}</style><rect width=\"100%\" height=\"100%\" class=\"ground\"/>",
            ":root{color-scheme:light dark}"
        );
        self.markup(" xmlns=\"http://www.w3.org/2000/svg\"", &style)
    }

    fn markup(&self, space: &str, style: &str) -> String {
        let ((width, height), label) = (self.size, escape(&self.label));
        format!(
            "<svg{space} viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             role=\"img\" aria-label=\"{label}\" font-family=\"system-ui, sans-serif\" font-size=\"{SIZE}\">\
             {style}{}</svg>\n",
            self.body
        )
    }
}

/// What a shape says when pointed at.
fn said(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut path = String::with_capacity(points.len() * 12);
    for (x, y) in points {
        let _ = write!(path, "{x:.1},{y:.1} ");
    }
    path.truncate(path.trim_end().len());
    path
}
