//! Markup: shapes with numbers, and text that can hold anything.

use std::fmt::Write;

use crate::visible::visible;

/// Eight colours that people with any common colour blindness tell apart on white (Okabe and Ito, 2008; their yellow,
/// which is hard to see on white, is Tol's olive here).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333", "#999933"];

/// Dashes of the first eight curves, the next eight, and so on.
const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 2 2 2"];

/// The colour of the `index`-th thing.
pub fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// The dash of the `index`-th curve: where colours repeat, dashes differ.
pub fn dash(index: usize) -> &'static str {
    DASHES[index / COLOURS.len() % DASHES.len()]
}

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

/// A picture that grows.
#[derive(Default)]
pub struct Svg {
    body: String,
}

impl Svg {
    /// A text; (x, y) is on its base line.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = anchor.name();
        let _ = write!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(text));
    }

    /// The title of the picture.
    pub fn heading(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        let _ = write!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"14\" font-weight=\"600\">{text}</text>");
    }

    /// A text that is read from below, centred on its point.
    pub fn upright(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        let turn = format!("rotate(-90 {x:.1} {y:.1})");
        let _ = write!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" transform=\"{turn}\">{text}</text>"
        );
    }

    /// A filled rectangle that says `title` when pointed at.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, title: &str) {
        let _ = write!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\">\
             <title>{}</title></rect>",
            escape(title)
        );
    }

    /// A curve in the style of number `style`, with a title.
    pub fn curve(&mut self, points: &[(f64, f64)], style: usize, width: f64, title: &str) {
        let (colour, dash, mut path) = (colour(style), dash(style), String::new());
        for (x, y) in points {
            let _ = write!(path, "{x:.2},{y:.2} ");
        }
        let _ = write!(
            self.body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dash}\" stroke-linejoin=\"round\"><title>{}</title></polyline>",
            path.trim_end(),
            escape(title)
        );
    }

    /// A straight line.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str, dash: &str) {
        let _ = write!(
            self.body,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" \
             stroke-dasharray=\"{dash}\"/>"
        );
    }

    /// A dot with a title.
    pub fn dot(&mut self, (x, y): (f64, f64), style: usize, title: &str) {
        let (colour, title) = (colour(style), escape(title));
        let _ = write!(
            self.body,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" fill=\"{colour}\" stroke=\"#fff\">\
             <title>{title}</title></circle>"
        );
    }

    /// The picture with a white ground; `label` is what a screen reader says.
    pub fn finish(self, width: f64, height: f64, label: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{}\" font-family=\"system-ui, sans-serif\" \
             font-size=\"12\" fill=\"#222\"><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>{}</svg>\n",
            escape(label),
            self.body
        )
    }
}
