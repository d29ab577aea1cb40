//! Numbers in cells of text that are written in other ways than programs read them: amounts and lists.

/// Longer lists are none.
const LIST_MAX: usize = 1 << 20;

/// A number with signs that people write: `1,234.50`, `$1 234`, `12.5%` (which is 0.125), or with a decimal `comma`
/// `1.234,50 €`. Separators of thousands stand before three digits each.
pub fn amount(text: &str, comma: bool) -> Option<f64> {
    let Stripped { plain, percent, is_negative } = stripped(text);
    let point = if comma { ',' } else { '.' };
    let (whole, fraction) = match plain.split_once(point) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (plain, None),
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (sign, whole) = match whole.strip_prefix(['-', '+']) {
        Some(rest) => (if whole.starts_with('-') { "-" } else { "" }, rest),
        None => ("", whole),
    };
    let group = whole.chars().find(|c| !c.is_ascii_digit()).unwrap_or(point);
    let is_group =
        group == point || group == if comma { '.' } else { ',' } || [' ', '\u{a0}', '\u{202f}', '\''].contains(&group);
    let mut groups = whole.split(group);
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let is_signed = is_negative && plain.starts_with(['-', '+']);
    let sound = !is_signed
        && digits(first)
        && is_group
        && (rest.is_empty() || first.len() <= 3 && first != "0")
        && rest.iter().all(|part| part.len() == 3 && digits(part))
        && fraction.is_none_or(digits);
    let number: f64 = format!("{sign}{first}{}.{}", rest.concat(), fraction.unwrap_or("0")).parse().ok()?;
    let number = if is_negative { -number } else { number };
    sound.then_some(if percent { number / 100.0 } else { number })
}

/// A cell without its sign of a currency or of percents.
struct Stripped<'a> {
    plain: &'a str,
    percent: bool,
    /// Whether it stands in brackets, as accountants write what is below 0, or has a minus before its currency.
    is_negative: bool,
}

fn stripped(text: &str) -> Stripped<'_> {
    const CURRENCIES: [char; 5] = ['$', '€', '£', '¥', '₹'];
    let is_around = |c: char| CURRENCIES.contains(&c) || c.is_whitespace();
    let plain = text.trim_matches(is_around);
    let inside = plain.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let before = plain.strip_prefix('-').filter(|rest| rest.starts_with(CURRENCIES));
    let is_negative = inside.is_some() || before.is_some();
    let plain = inside.or(before).map_or(plain, |rest| rest.trim_matches(is_around));
    match plain.strip_suffix('%') {
        Some(rest) => Stripped { plain: rest.trim_end(), percent: true, is_negative },
        None => Stripped { plain, percent: false, is_negative },
    }
}

/// How a column of amounts is written, as far as its cells say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amounts {
    /// No column of amounts.
    None,
    /// With points before fractions, or with commas.
    Plain {
        /// Whether fractions stand behind commas.
        comma: bool,
    },
    /// With commas alone: three digits behind each, so thousands or fractions.
    Thousands,
    /// With commas alone: fractions, or lists of two numbers.
    Commas,
}

/// What the cells of a column could be, seen one after the other.
#[derive(Debug, Clone)]
pub struct Written {
    /// Whether all are amounts with points, and with commas, before fractions.
    fits: [bool; 2],
    /// Whether one can be nothing else: it has thousands besides, or several of them, or a sign.
    sure: [bool; 2],
    percents: usize,
    cells: usize,
    /// Whether all have three digits behind each comma, and one has a comma.
    thousands: bool,
    comma: bool,
    /// Whether some cell is no plain number, or one with a plus or a 0 before it.
    not_plain: bool,
    /// Whether some cell has a point.
    has_point: bool,
    /// Cells in round brackets.
    rounds: usize,
    /// The length of all lists; 0 before the first, none where they differ or some cell is no list.
    width: Option<usize>,
    /// Whether a list has what no single number has.
    is_list: bool,
    /// Whether all stand in brackets, with nothing but numbers between them.
    brackets: bool,
}

impl Default for Written {
    fn default() -> Self {
        let (fits, sure) = ([true; 2], [false; 2]);
        let (percents, cells, thousands, comma) = (0, 0, true, false);
        let (width, is_list, brackets) = (Some(0), false, true);
        Written {
            fits,
            sure,
            percents,
            cells,
            thousands,
            comma,
            not_plain: false,
            has_point: false,
            rounds: 0,
            width,
            is_list,
            brackets,
        }
    }
}

impl Written {
    /// Looks at one more cell that holds something.
    pub fn look(&mut self, text: &str) {
        self.cells += 1;
        let digits = text.trim_start_matches('-').as_bytes();
        let is_code = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit() || text.starts_with('+');
        self.has_point |= text.contains('.');
        self.rounds += usize::from(text.starts_with('('));
        self.not_plain = self.not_plain || is_code || number(text).is_none();
        if self.fits != [false; 2] {
            let Stripped { plain, percent, .. } = stripped(text);
            let is_marked = plain.len() < text.trim().len();
            self.percents += usize::from(percent);
            for (comma, point, group) in [(false, '.', ','), (true, ',', '.')] {
                let at = usize::from(comma);
                let groups = plain.matches(group).count() + plain.matches([' ', '\'', '\u{a0}', '\u{202f}']).count();
                self.fits[at] &= amount(text, comma).is_some();
                let has_point = plain.contains(point);
                self.sure[at] |= groups > 1 || groups > 0 && has_point || is_marked && groups == 0;
            }
            self.comma |= plain.contains(',');
            self.thousands &= !plain.contains(',') || amount(text, false).is_some();
        }
        let is_inside = |c: char| c.is_ascii_digit() || c.is_whitespace() || ".,;-+eE".contains(c);
        self.brackets &=
            text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|t| t.chars().all(is_inside));
        if self.width.is_some() {
            let found = list(text);
            let width = found.as_ref().map(Vec::len).filter(|width| [0, *width].contains(&self.width.unwrap_or(0)));
            // Two whole numbers with a comma between them may be one number.
            self.is_list |= width.is_some_and(|width| width != 2)
                || text.contains(|c: char| !c.is_ascii_digit() && c != ',' && c != '-');
            self.width = width;
        }
    }

    /// The numbers in each list, where all cells are lists of one length, or `named` as lists are and could be.
    pub fn lists(&self, named: bool) -> Option<usize> {
        let is = match self.amounts() {
            Amounts::None => self.is_list || named,
            Amounts::Commas => named,
            Amounts::Plain { .. } | Amounts::Thousands => false,
        };
        self.width.filter(|&width| width > 0 && is)
    }

    /// Whether all cells are lists of numbers, though not of one length, or with some left out.
    pub fn are_broken_lists(&self) -> bool {
        self.cells > 0 && self.brackets && self.width.is_none()
    }

    /// Whether all cells are plain numbers, some with a fraction, and none begins as codes and telephone numbers do.
    pub fn are_numbers(&self) -> bool {
        self.has_point && !self.not_plain
    }

    /// How amounts are written.
    pub fn amounts(&self) -> Amounts {
        let signs = self.percents == 0 || self.percents == self.cells;
        match (self.fits, self.sure) {
            // Where all stand in brackets, these are lists.
            _ if self.cells == 0 || !signs || self.rounds == self.cells => Amounts::None,
            ([true, false], [true, _]) => Amounts::Plain { comma: false },
            ([false, true], [_, true]) => Amounts::Plain { comma: true },
            ([true, true], [true, true]) if !self.comma => Amounts::Plain { comma: false },
            ([true, _], _) if self.comma && self.thousands => Amounts::Thousands,
            ([_, true], _) if self.comma => Amounts::Commas,
            _ => Amounts::None,
        }
    }
}

/// Numbers in one cell: `0.5;1.0`, `[0.5, 1.0]`, `0.1,0.2`, `0.5|1`, `(0.5 1.0)`.
pub fn list(text: &str) -> Option<Vec<f64>> {
    let text = text.trim();
    let brackets = [('[', ']'), ('(', ')'), ('{', '}')];
    let inside = brackets.iter().find_map(|&(open, close)| text.strip_prefix(open)?.strip_suffix(close));
    let body = inside.unwrap_or(text).trim();
    let separator = [';', '|', ','].into_iter().find(|&separator| body.contains(separator));
    let parts: Vec<&str> = match separator {
        Some(separator) => body.split(separator).map(str::trim).collect(),
        // Telephone numbers have spaces, too.
        None if inside.is_some() || body.contains('.') => body.split_whitespace().collect(),
        None => return None,
    };
    let numbers: Option<Vec<f64>> = parts.into_iter().map(number).collect();
    numbers
        .filter(|numbers| numbers.len() <= LIST_MAX && (numbers.len() > 1 || inside.is_some() && !numbers.is_empty()))
}

/// A number of a list; `09` is a piece of something else.
fn number(text: &str) -> Option<f64> {
    if text
        .trim_start_matches(['-', '+'])
        .as_bytes()
        .get(..2)
        .is_some_and(|two| two[0] == b'0' && two[1].is_ascii_digit())
    {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Whether a floating-point number in a column of such ids may have been another id: `8.90123E+18`, or beyond 2^53.
pub fn is_rounded_id(id: &str) -> bool {
    let is_float = id.contains(['e', 'E']) || id.ends_with(".0");
    let is_short = id.contains(['e', 'E']) && !id.contains(['.', '+']);
    is_float && !is_short && id.parse::<f64>().is_ok_and(|number| id.contains('+') || number.abs() >= WHOLE)
}

/// From here on neighbouring whole numbers are one.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Whether a column of lists is usually called so.
pub fn is_list_name(name: &str) -> bool {
    let names = ["feat", "feats", "feature", "features", "x", "emb", "embedding", "embeddings", "vector", "attr"];
    names.contains(&name.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_the_numbers_that_people_mean() {
        for (text, comma, expected) in [
            ("1,234.50", false, Some(1234.5)),
            ("-1,234,567", false, Some(-1_234_567.0)),
            ("1.234,50", true, Some(1234.5)),
            ("12%", false, Some(0.12)),
            ("12,5 %", true, Some(0.125)),
            ("$1,000", false, Some(1000.0)),
            ("1 234,5 €", true, Some(1234.5)),
            ("1'234.5", false, Some(1234.5)),
            ("7", true, Some(7.0)),
            ("(1,234.50)", false, Some(-1234.5)),
            ("($2,234)", false, Some(-2234.0)),
            ("-$1.50", false, Some(-1.5)),
            ("(0.5 1 2000)", false, None),
            ("1,09,009.50", false, None),
            ("(-2.5)", false, None),
            ("1,23", false, None),
            ("0,234", false, None),
            ("1234,567", false, None),
            ("1.2.3", false, None),
            ("1,234.", false, None),
            ("1;234", false, None),
            ("", false, None),
            ("%", false, None),
        ] {
            assert_eq!(amount(text, comma), expected, "{text}");
        }
    }

    #[test]
    fn ids_that_were_rounded_are_known() {
        assert!(["8.90123E+18", "1e+16", "9007199254740992.0"].iter().all(|id| is_rounded_id(id)));
        assert!(!["1e5", "2.5", "18446744073709551615", "7.0", "x"].iter().any(|id| is_rounded_id(id)));
    }

    #[test]
    fn lists_in_cells_are_numbers_between_separators() {
        for text in
            ["0.5;1;2e3", "[0.5, 1.0, 2000]", "(0.5 1 2000)", "0.5|1|2000", "{0.5,1.0,2000.0}", "0.5 1.0 2000.0"]
        {
            assert_eq!(list(text), Some(vec![0.5, 1.0, 2000.0]), "{text}");
        }
        for text in
            ["", "7", "[]", "a;b", "0171 123 456", "[0.1 ... 0.2]", "1;;2", "nan;1", "2026-11-22", "1,09,009.50"]
        {
            assert_eq!(list(text), None, "{text}");
        }
    }

    #[test]
    fn columns_are_amounts_or_lists_by_what_all_their_cells_say() {
        let seen = |cells: &[&str]| {
            let mut written = Written::default();
            cells.iter().for_each(|cell| written.look(cell));
            (written.amounts(), written.lists(false))
        };
        let plain = |comma| Amounts::Plain { comma };
        assert_eq!(seen(&["1,234.50", "12", "0.5"]), (plain(false), None));
        assert_eq!(seen(&["1.234,50", "12", "0,5"]), (plain(true), None));
        assert_eq!(seen(&["1,234,567", "12"]), (plain(false), None));
        assert_eq!(seen(&["12%", "7.5%"]), (plain(false), None));
        assert_eq!(seen(&["12,5%", "7%"]), (plain(true), None));
        assert_eq!(seen(&["1,234", "5,678", "12"]), (Amounts::Thousands, None));
        assert_eq!(seen(&["0,5", "1,25"]).0, Amounts::Commas);
        assert_eq!(seen(&["0,1", "1,0"]), (Amounts::Commas, None));
        assert_eq!(seen(&["1,000", "(2,234)"]), (Amounts::Thousands, None));
        assert_eq!(seen(&["1,000", "(12,106.50)"]), (plain(false), None));
        assert_eq!(seen(&["(9.50)", "(1.25)"]), (Amounts::None, Some(1)));
        assert_eq!(seen(&["9.50", "(9.50)"]), (plain(false), None));
        assert_eq!(seen(&["0.5, 0.25", "1.5, 2"]), (Amounts::None, Some(2)));
        assert_eq!(seen(&["0,1,0", "1,0,0"]), (Amounts::None, Some(3)));
        assert_eq!(seen(&["0.5;1", "2;3"]), (Amounts::None, Some(2)));
        assert_eq!(seen(&["1;2", "1;2;3"]), (Amounts::None, None));
        assert_eq!(seen(&["ok", "12%"]), (Amounts::None, None));
        assert_eq!(seen(&["a", "b"]), (Amounts::None, None));
    }
}
