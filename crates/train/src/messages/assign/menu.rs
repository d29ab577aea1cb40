//! The widths that an assignment may choose from.

/// Bits before the first assignment, and of messages of which nothing is known.
const FIRST: u8 = 8;

/// The widths to choose from, in bits, narrowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu(Vec<u8>);

impl Default for Menu {
    /// AdaQP's: 2, 4 and 8 bits.
    fn default() -> Menu {
        Menu(vec![2, 4, 8])
    }
}

impl Menu {
    /// A menu of these widths, of which a value may have 1, 2, 4, 8, 16 or 32.
    ///
    /// # Errors
    /// If one is none of them, or does not follow a narrower one; the text says what was expected.
    pub fn of(widths: &[u8]) -> Result<Menu, String> {
        let known = widths.iter().all(|width| crate::config::WIDTHS.contains(width));
        if known && widths.len() > 1 && widths.windows(2).all(|pair| pair[0] < pair[1]) {
            return Ok(Menu(widths.to_vec()));
        }
        Err(format!("{widths:?}: expected two or more of 1, 2, 4, 8, 16 and 32, narrowest first"))
    }

    /// All widths, narrowest first.
    pub fn widths(&self) -> &[u8] {
        &self.0
    }

    /// The narrowest width, in bits.
    pub fn least(&self) -> u8 {
        self.0[0]
    }

    /// The widest width, in bits.
    pub fn most(&self) -> u8 {
        self.0[self.0.len() - 1]
    }

    /// The width of messages of which nothing is known: 8 bits, or else the widest below, or the narrowest.
    pub fn first(&self) -> u8 {
        self.0.iter().copied().rfind(|width| *width <= FIRST).unwrap_or(self.0[0])
    }

    /// The place of a width.
    ///
    /// # Panics
    /// If it is not on the menu.
    pub(super) fn place(&self, bits: u8) -> usize {
        let place = self.0.iter().position(|width| *width == bits);
        place.unwrap_or_else(|| panic!("a width of {bits} bits, expected one of {:?}", self.0))
    }

    /// The variance of a message of this width for each unit of its beta.
    pub(super) fn noise(&self, place: usize) -> f64 {
        1.0 / (((1u64 << self.0[place]) - 1) as f64).powi(2)
    }

    /// The bits of one step: all widths are whole numbers of steps above the narrowest.
    pub(super) fn step(&self) -> u8 {
        // Widths are powers of two, so the narrowest divides the others.
        self.least()
    }

    /// Steps from the narrowest width to that at this place.
    pub(super) fn steps(&self, place: usize) -> usize {
        usize::from((self.0[place] - self.least()) / self.step())
    }

    /// Steps from the width before to that at this place.
    pub(super) fn rise(&self, place: usize) -> usize {
        self.steps(place) - self.steps(place - 1)
    }

    /// Bits of a selector in a bit map.
    fn selector_bits(&self) -> usize {
        if self.0.len() <= 4 { 2 } else { 4 }
    }

    /// Bytes of the bit map of so many messages.
    pub fn map_bytes(&self, messages: usize) -> usize {
        (messages * self.selector_bits()).div_ceil(8)
    }

    /// A bit map of widths: two bits a message, or four where there are more than four widths, from a byte's low end
    /// on; the rest of the last byte is zero.
    ///
    /// # Panics
    /// If a width is not on the menu.
    pub fn pack(&self, bits: &[u8]) -> Vec<u8> {
        let size = self.selector_bits();
        let byte = |some: &[u8]| some.iter().rev().fold(0, |byte, &bits| byte << size | self.place(bits) as u8);
        bits.chunks(8 / size).map(byte).collect()
    }

    /// The `count` widths of a bit map. `None` if its length is wrong, a selector in it stands for nothing, or its
    /// padding is not zero, so that every list of widths has one bit map only.
    pub fn unpack(&self, bytes: &[u8], count: usize) -> Option<Vec<u8>> {
        let (size, a_byte) = (self.selector_bits(), 8 / self.selector_bits());
        if bytes.len() != count.div_ceil(a_byte) {
            return None;
        }
        let selector = |byte: u8, place: usize| byte >> (place * size) & (0xff >> (8 - size));
        let mut selectors = bytes.iter().flat_map(|&byte| (0..a_byte).map(move |place| selector(byte, place)));
        let widths =
            selectors.by_ref().take(count).map(|selector| self.0.get(usize::from(selector)).copied()).collect();
        if selectors.all(|padding| padding == 0) { widths } else { None }
    }
}
