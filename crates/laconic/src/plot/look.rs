//! How things look: colours that hold on light and on dark ground, dashes, and shapes of markers.

/// How many colours, dashes and shapes there are. No two counts share a factor, so several hundred styles pass before
/// one comes again, and neighbours differ in all three.
const COLOURS: usize = 8;
const DASHES: [&str; 5] = ["", "7 3", "2 2.5", "9 3 2 3", "14 3"];
const SHAPES: usize = 7;

/// The rules for all figures: in the page once, in a figure that stands alone inside it. The first eight colours are
/// Okabe's and Ito's (2008), which people with any common colour blindness tell apart, with wine in place of their
/// yellow; on dark ground they are lighter. A viewer that knows no media queries shows the light ones.
pub const STYLE: &str = "\
svg .ground{fill:#fff}svg text{fill:#222}svg .quiet{fill:#5a5a5a}
svg .grid{stroke:#e2e2e2}svg .axis{stroke:#767676}svg .leader{stroke:#9a9a9a}
svg .front{stroke:#222;stroke-width:2.5;stroke-opacity:.55;fill:none}
svg .stage{stroke:#767676;stroke-dasharray:2 3}svg .ring{fill:none;stroke:#222;stroke-width:1.5}
svg .mark{stroke:#fff}svg .curve{fill:none;stroke-linejoin:round}
svg .shade{fill:#3c9be0}
svg .f0{fill:#0072b2}svg .f1{fill:#d55e00}svg .f2{fill:#009e73}svg .f3{fill:#882255}
svg .f4{fill:#56b4e9}svg .f5{fill:#e69f00}svg .f6{fill:#444}svg .f7{fill:#cc79a7}
svg .s0{stroke:#0072b2}svg .s1{stroke:#d55e00}svg .s2{stroke:#009e73}svg .s3{stroke:#882255}
svg .s4{stroke:#56b4e9}svg .s5{stroke:#e69f00}svg .s6{stroke:#444}svg .s7{stroke:#cc79a7}
@media (prefers-color-scheme:dark){
svg .ground{fill:#15181c}svg text{fill:#e6e6e6}svg .quiet{fill:#aeb4ba}
svg .grid{stroke:#2d3339}svg .axis{stroke:#8d949b}svg .leader{stroke:#7b828a}
svg .front{stroke:#e6e6e6}svg .stage{stroke:#8d949b}svg .ring{stroke:#e6e6e6}svg .mark{stroke:#15181c}
svg .shade{fill:#2f7fbd}
svg .f0{fill:#4aa8e0}svg .f1{fill:#ff8a4a}svg .f2{fill:#35c99b}svg .f3{fill:#d96fa0}
svg .f4{fill:#a6d8f7}svg .f5{fill:#f5c451}svg .f6{fill:#d4d4d4}svg .f7{fill:#f2b8d8}
svg .s0{stroke:#4aa8e0}svg .s1{stroke:#ff8a4a}svg .s2{stroke:#35c99b}svg .s3{stroke:#d96fa0}
svg .s4{stroke:#a6d8f7}svg .s5{stroke:#f5c451}svg .s6{stroke:#d4d4d4}svg .s7{stroke:#f2b8d8}
}
";

/// The number of the colour of the `style`-th thing, as in the classes `f0` and `s0`.
pub fn colour(style: usize) -> usize {
    style % COLOURS
}

/// The dash of the `style`-th curve.
pub fn dash(style: usize) -> &'static str {
    DASHES[style % DASHES.len()]
}

/// The corners of the `style`-th marker around (0, 0), at a radius of about 1; none for a circle.
pub fn corners(style: usize) -> &'static [(f64, f64)] {
    const SQUARE: [(f64, f64); 4] = [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)];
    const UP: [(f64, f64); 3] = [(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)];
    const DIAMOND: [(f64, f64); 4] = [(0.0, -1.25), (1.05, 0.0), (0.0, 1.25), (-1.05, 0.0)];
    const DOWN: [(f64, f64); 3] = [(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)];
    const PLUS: [(f64, f64); 12] = [
        (-0.38, -1.2),
        (0.38, -1.2),
        (0.38, -0.38),
        (1.2, -0.38),
        (1.2, 0.38),
        (0.38, 0.38),
        (0.38, 1.2),
        (-0.38, 1.2),
        (-0.38, 0.38),
        (-1.2, 0.38),
        (-1.2, -0.38),
        (-0.38, -0.38),
    ];
    const CROSS: [(f64, f64); 12] = [
        (-0.55, -1.1),
        (0.0, -0.55),
        (0.55, -1.1),
        (1.1, -0.55),
        (0.55, 0.0),
        (1.1, 0.55),
        (0.55, 1.1),
        (0.0, 0.55),
        (-0.55, 1.1),
        (-1.1, 0.55),
        (-0.55, 0.0),
        (-1.1, -0.55),
    ];
    match style % SHAPES {
        0 => &[],
        1 => &SQUARE,
        2 => &UP,
        3 => &DIAMOND,
        4 => &DOWN,
        5 => &CROSS,
        _ => &PLUS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_differ_in_colour_and_shape_together_and_neighbours_in_shape_and_dash() {
        let styles: std::collections::BTreeSet<_> = (0..COLOURS * SHAPES).map(|s| (colour(s), s % SHAPES)).collect();
        assert_eq!(styles.len(), COLOURS * SHAPES);
        for style in 0..100 {
            assert_ne!(corners(style), corners(style + 1));
            assert_ne!(dash(style), dash(style + 1));
        }
    }

    #[test]
    fn every_colour_has_a_light_and_a_dark_form() {
        let (light, dark) = STYLE.split_once("@media (prefers-color-scheme:dark)").expect("both");
        for class in (0..COLOURS).flat_map(|c| [format!(".f{c}{{"), format!(".s{c}{{")]) {
            assert!(light.contains(&class) && dark.contains(&class), "{class}");
        }
    }
}
