use super::*;

/// As most runs do, from the default menu.
fn assign(channels: &[Channel<'_>], workers: u32, lambda: f64) -> Assignment {
    super::assign(channels, workers, lambda, &Menu::default())
}

fn evaluate(channels: &[Channel<'_>], workers: u32, lambda: f64, bits: &[Vec<u8>]) -> (f64, f64, f64) {
    super::evaluate(channels, workers, lambda, &Menu::default(), bits)
}

/// Splitmix64, so that every case can be had again from its seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Betas of many kinds: even, over six decades, tied, mostly zero, one huge.
    fn betas(&mut self, count: usize) -> Vec<f32> {
        let kind = self.below(5);
        let mut betas: Vec<f32> = (0..count)
            .map(|_| match kind {
                0 => self.unit(),
                1 => 10_f64.powf(6.0 * self.unit() - 3.0),
                2 => self.below(3) as f64,
                3 => (self.below(4) / 3) as f64 * self.unit(),
                _ => self.unit(),
            } as f32)
            .collect();
        if let (4, Some(first)) = (kind, betas.first_mut()) {
            *first = 1e9;
        }
        betas
    }

    fn cost(&mut self) -> LinkCost {
        LinkCost { seconds_per_byte: 10_f64.powf(-3.0 * self.unit()), latency: self.unit() }
    }
}

fn channel(from: u32, to: u32, beta: &[f32]) -> Channel<'_> {
    let cost = LinkCost { seconds_per_byte: 0.01, latency: 0.1 };
    Channel { from, to, beta, bytes_per_bit: 2.0, overhead: 8.0, cost }
}

/// A channel for each ordered pair of workers.
fn all_pairs<'a>(betas: &'a [Vec<f32>], workers: u32, dice: &mut Dice) -> Vec<Channel<'a>> {
    let pairs = (0..workers).flat_map(|from| (0..workers).map(move |to| (from, to))).filter(|(from, to)| from != to);
    pairs
        .zip(betas)
        .map(|((from, to), beta)| Channel {
            bytes_per_bit: 0.5 * (1 + dice.below(8)) as f64,
            overhead: 8.0 * dice.below(2) as f64,
            cost: dice.cost(),
            ..channel(from, to, beta)
        })
        .collect()
}

fn uniform(channels: &[Channel<'_>], width: u8) -> Vec<Vec<u8>> {
    channels.iter().map(|channel| vec![width; channel.beta.len()]).collect()
}

/// Menus besides the default, and how many messages all their assignments can be tried for.
const MENUS: [(&[u8], usize); 7] = [
    (&[2, 4, 8], 8),
    (&[2, 4, 8, 16], 6),
    (&[2, 4, 8, 16, 32], 5),
    (&[1, 2, 4, 8, 16, 32], 4),
    (&[1, 2], 9),
    (&[4, 16, 32], 7),
    (&[2, 32], 9),
];

/// The least objective of all assignments; what is unknown keeps its width.
fn brute_force(channels: &[Channel<'_>], workers: u32, lambda: f64, menu: &Menu) -> f64 {
    let messages: usize = channels.iter().map(|channel| channel.beta.len()).sum();
    let mut bits = uniform(channels, menu.least());
    let unknown: Vec<bool> =
        channels.iter().flat_map(|channel| channel.beta.iter().map(|beta| beta.is_nan())).collect();
    let mut least = f64::INFINITY;
    for mut number in 0..menu.widths().len().pow(messages as u32) {
        for (width, unknown) in bits.iter_mut().flatten().zip(&unknown) {
            *width = if *unknown { menu.first() } else { menu.widths()[number % menu.widths().len()] };
            number /= menu.widths().len();
        }
        least = least.min(super::evaluate(channels, workers, lambda, menu, &bits).2);
    }
    least
}

#[test]
fn assignment_is_the_best_of_all_from_every_menu() {
    let mut dice = Dice(1);
    for case in 0..210 {
        let (widths, most) = MENUS[case % MENUS.len()];
        let menu = Menu::of(widths).expect("a menu");
        let workers = 2 + case as u32 % 2;
        let pairs = (workers * (workers - 1)) as usize;
        let mut left = 1 + dice.below(most);
        let mut betas: Vec<Vec<f32>> = (0..pairs)
            .map(|pair| {
                let count = if pair + 1 == pairs { left } else { dice.below(left + 1) };
                left -= count;
                dice.betas(count)
            })
            .collect();
        if betas.iter().flatten().all(|&beta| beta == 0.0) {
            continue;
        }
        if case % 3 == 2 {
            // Nothing is known of one, which is not the one that is known to matter.
            betas[0].push(f32::NAN);
            betas[1].push(1.0);
        }
        let channels = all_pairs(&betas, workers, &mut dice);
        for lambda in [0.0, 0.2, 0.5, 0.8, 1.0] {
            let found = super::assign(&channels, workers, lambda, &menu);
            let best = brute_force(&channels, workers, lambda, &menu);
            let gap = (found.objective - best).abs();
            assert!(gap <= 1e-9, "case {case}, lambda {lambda}: {found:?}, best {best}, {channels:?}");
        }
    }
}

/// Against the recurrence over messages, noisiest first: each has some width, and no constraint ties it to the others.
#[test]
fn frontier_is_the_least_variance_for_every_number_of_steps() {
    let mut dice = Dice(2);
    for case in 0..280 {
        let menu = Menu::of(MENUS[case % MENUS.len()].0).expect("a menu");
        let count = dice.below(25);
        let mut beta: Vec<f64> = dice.betas(count).into_iter().map(f64::from).filter(|beta| *beta > 0.0).collect();
        beta.sort_by(|a, b| b.total_cmp(a));
        let last = menu.widths().len() - 1;
        let mut least = vec![0.0; menu.steps(last) * beta.len() + 1];
        for beta in &beta {
            let before = least.clone();
            for (steps, least) in least.iter_mut().enumerate() {
                let fits = (0..=last).filter(|&place| menu.steps(place) <= steps);
                let variance = fits.map(|place| before[steps - menu.steps(place)] + menu.noise(place) * beta);
                *least = variance.fold(f64::INFINITY, f64::min);
            }
        }
        let (frontier, tolerance) = (Frontier::of(&beta, &menu), 1e-12 * beta.iter().sum::<f64>());
        assert_eq!(frontier.steps() + 1, least.len());
        for (steps, least) in least.into_iter().enumerate() {
            let risen = frontier.risen(steps);
            assert!(risen.is_sorted_by(|a, b| a >= b), "case {case}: {risen:?}");
            let used: usize = risen.iter().zip(1..).map(|(&count, place)| count as usize * menu.rise(place)).sum();
            let place = |rank: usize| risen.iter().filter(|&&count| rank < count as usize).count();
            let found: f64 = beta.iter().enumerate().map(|(rank, beta)| menu.noise(place(rank)) * beta).sum();
            let gap = (found - least).abs().max((frontier.variance(steps) - least).abs());
            assert!(used <= steps && gap <= tolerance, "case {case}, {steps} steps of {beta:?}: {risen:?}, {least}");
        }
    }
}

#[test]
fn larger_instances_are_never_worse_than_any_uniform_width() {
    let mut dice = Dice(3);
    for case in 0..40 {
        let workers = 2 + dice.below(5) as u32;
        let betas: Vec<Vec<f32>> = (0..workers * (workers - 1))
            .map(|_| {
                let count = dice.below(300);
                dice.betas(count)
            })
            .collect();
        let channels = all_pairs(&betas, workers, &mut dice);
        for lambda in [0.2, 0.5, 0.8] {
            let found = assign(&channels, workers, lambda);
            for width in [2, 4, 8] {
                let (_, _, objective) = evaluate(&channels, workers, lambda, &uniform(&channels, width));
                assert!(found.objective <= objective + 1e-12, "case {case}, {width} bits: {}", found.objective);
            }
        }
    }
}

#[test]
fn exchanging_two_widths_never_helps() {
    let mut dice = Dice(4);
    let betas: Vec<Vec<f32>> = (0..6).map(|_| dice.betas(60)).collect();
    let channels = all_pairs(&betas, 3, &mut dice);
    let found = assign(&channels, 3, 0.5);
    for (channel, bits) in channels.iter().zip(&found.bits) {
        for (a, beta) in channel.beta.iter().enumerate() {
            let louder = channel.beta.iter().zip(bits).filter(|(other, _)| *other > beta);
            assert!(louder.into_iter().all(|(_, width)| *width >= bits[a]), "{beta} has {} bits", bits[a]);
        }
    }
}

#[test]
fn the_largest_beta_gets_the_most_bits_wherever_it_stands() {
    let quiet = [0.1, 0.2, 0.05, 0.1, 0.02, 0.1];
    for place in 0..quiet.len() {
        let mut beta = quiet;
        beta[place] = 100.0;
        let bits = &assign(&[channel(0, 1, &beta)], 2, 0.8).bits[0];
        let expected: Vec<u8> = (0..quiet.len()).map(|index| if index == place { 8 } else { 2 }).collect();
        assert_eq!(*bits, expected, "largest at {place}");
    }
}

#[test]
fn widths_follow_a_vector_that_was_worked_by_hand() {
    // Two extra bits of one message cost 0.04 s of the 0.72 s between T_lo and T_hi, hence 1/18 of the time term.
    // Of the variance term, whose range is 0.1111 times the betas' sum of 111, raising 10 to 4 bits saves 0.087,
    // raising 1 saves 0.009. The 100 is worth 4 bits (0.865) but not 8 (0.036, for two steps), except where
    // variance weighs more.
    let beta = [1.0, 100.0, 0.0, 10.0, 0.0, 0.0];
    let widths = |lambda| assign(&[channel(0, 1, &beta)], 2, lambda).bits.remove(0);
    assert_eq!(widths(0.5), [2, 4, 2, 4, 2, 2]);
    assert_eq!(widths(0.8), [2, 8, 2, 4, 2, 2]);
    assert_eq!(widths(0.01), [2; 6]);
    assert_eq!(widths(0.0), [2; 6]);
}

#[test]
fn ties_go_to_the_shorter_round() {
    // Time weighs nothing, and still nothing is spent on messages that gain nothing by it.
    assert_eq!(assign(&[channel(0, 1, &[0.0, 5.0, 0.0])], 2, 1.0).bits, [[2, 8, 2]]);
}

#[test]
fn permuting_messages_permutes_widths() {
    let mut dice = Dice(5);
    let beta: Vec<f32> = (0..200).map(|_| 10_f64.powf(4.0 * dice.unit()) as f32).collect();
    let mut order: Vec<usize> = (0..beta.len()).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, dice.below(place + 1));
    }
    let permuted: Vec<f32> = order.iter().map(|&index| beta[index]).collect();
    let bits = assign(&[channel(0, 1, &beta)], 2, 0.9).bits.remove(0);
    let expected: Vec<u8> = order.iter().map(|&index| bits[index]).collect();
    assert!([2, 4, 8].iter().all(|width| bits.contains(width)), "the case should need all widths: {bits:?}");
    assert_eq!(assign(&[channel(0, 1, &permuted)], 2, 0.9).bits.remove(0), expected);
}

#[test]
fn uniform_extremes_stand_at_the_ends_of_the_scale() {
    let mut dice = Dice(6);
    let betas: Vec<Vec<f32>> = (0..6).map(|_| vec![dice.unit() as f32; 5]).collect();
    let channels = all_pairs(&betas, 3, &mut dice);
    for lambda in [0.0, 0.3, 1.0] {
        let objective = |width| evaluate(&channels, 3, lambda, &uniform(&channels, width)).2;
        assert!((objective(2) - lambda).abs() < 1e-12);
        assert!((objective(8) - (1.0 - lambda)).abs() < 1e-12);
    }
}

#[test]
fn a_round_lasts_as_long_as_its_slowest_channel() {
    let beta = [1.0, 1.0];
    let slow = LinkCost { seconds_per_byte: 1.0, latency: 5.0 };
    let channels = [channel(0, 1, &beta), Channel { cost: slow, ..channel(1, 2, &beta) }, channel(0, 2, &beta)];
    let (_, seconds, _) = evaluate(&channels, 3, 0.5, &[vec![8, 8], vec![2, 4], vec![4, 4]]);
    // Round 1: latency 5, 2 messages of 8 B parameters, 6 bits of 2 B each. Round 2: 0.1 + 0.01 (16 + 16).
    assert!((seconds - (5.0 + 16.0 + 12.0 + 0.1 + 0.32)).abs() < 1e-12, "{seconds}");
}

#[test]
fn time_that_a_slow_channel_takes_anyway_buys_bits_for_a_fast_one() {
    let (quiet, loud) = ([0.001; 3], [1.0; 3]);
    let slow = LinkCost { seconds_per_byte: 1.0, latency: 0.0 };
    let channels = [channel(0, 1, &quiet), Channel { cost: slow, ..channel(1, 0, &loud) }];
    let found = assign(&channels, 2, 0.01);
    assert_eq!(found.bits, [[8; 3], [2; 3]]);
}

#[test]
fn empty_channels_cost_nothing_wherever_they_stand() {
    let beta = [3.0, 0.5, 7.0];
    let dear = LinkCost { seconds_per_byte: 1e6, latency: 1e6 };
    let empty = |from, to| Channel { cost: dear, ..channel(from, to, &[]) };
    let alone = assign(&[channel(0, 1, &beta)], 3, 0.5);
    let among = assign(&[empty(1, 2), channel(0, 1, &beta), empty(0, 2), empty(2, 0)], 3, 0.5);
    assert_eq!(among.bits, [vec![], alone.bits[0].clone(), vec![], vec![]]);
    assert_eq!((among.variance, among.seconds, among.objective), (alone.variance, alone.seconds, alone.objective));
}

#[test]
fn without_channels_or_messages_there_is_nothing_to_do() {
    for workers in 0..3 {
        assert_eq!(assign(&[], workers, 0.5), Assignment::default());
    }
    let nothing = assign(&[channel(0, 1, &[])], 2, 0.5);
    assert_eq!(nothing, Assignment { bits: vec![vec![]], ..Assignment::default() });
}

#[test]
fn one_message_goes_to_the_end_that_weighs_more_or_between() {
    let width = |lambda| assign(&[channel(0, 1, &[2.5])], 2, lambda).bits[0][0];
    assert_eq!([0.0, 0.2, 0.5, 0.99, 1.0].map(width), [2, 2, 4, 8, 8]);
}

#[test]
fn without_any_variance_all_messages_get_eight_bits() {
    for beta in [[0.0; 3], [-1.0, f32::NAN, f32::INFINITY]] {
        let found = assign(&[channel(0, 1, &beta), channel(1, 0, &beta)], 2, 0.5);
        assert_eq!(found.bits, [[8; 3], [8; 3]]);
        // The variance term is gone and time is at its most.
        assert!(found.variance == 0.0 && (found.objective - 0.5).abs() < 1e-12, "{found:?}");
    }
}

#[test]
fn betas_that_no_row_can_have_count_as_nothing() {
    let (broken, clean) = ([1.0, 9.0, f32::INFINITY, -4.0], [1.0, 9.0, 0.0, 0.0]);
    assert_eq!(assign(&[channel(0, 1, &broken)], 2, 0.5), assign(&[channel(0, 1, &clean)], 2, 0.5));
}

#[test]
fn what_is_unknown_has_the_first_width_and_what_has_no_variance_the_narrowest() {
    let beta = [1.0, f32::NAN, 0.0, 9.0, f32::NAN];
    for lambda in [0.0, 0.5, 1.0] {
        let bits = assign(&[channel(0, 1, &beta)], 2, lambda).bits.remove(0);
        assert_eq!((bits[1], bits[2], bits[4]), (8, 2, 8), "lambda {lambda}: {bits:?}");
    }
    let wide = Menu::of(&[16, 32]).expect("a menu");
    assert_eq!(super::assign(&[channel(0, 1, &beta)], 2, 1.0, &wide).bits, [[32, 16, 16, 32, 16]]);
    let narrow = Menu::of(&[1, 2, 4]).expect("a menu");
    assert_eq!(super::assign(&[channel(0, 1, &beta)], 2, 0.0, &narrow).bits, [[1, 4, 1, 1, 4]]);
}

#[test]
fn menus_that_are_none_are_refused() {
    for widths in [&[][..], &[8], &[4, 2], &[2, 2], &[2, 3], &[2, 64]] {
        assert!(Menu::of(widths).is_err(), "{widths:?}");
    }
}

#[test]
fn costs_that_no_link_can_have_count_as_the_cheapest_possible() {
    let beta = [1.0, 2.0, 30.0];
    let with = |seconds_per_byte, latency| {
        assign(&[Channel { cost: LinkCost { seconds_per_byte, latency }, ..channel(0, 1, &beta) }], 2, 0.5)
    };
    let least = with(SECONDS_PER_BYTE_MIN, 0.0);
    assert!(least.objective.is_finite() && least.seconds > 0.0);
    for broken in [-1.0, 0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(with(broken, -1.0), least);
        assert_eq!(with(broken, f64::NAN), least);
    }
}

#[test]
fn messages_without_columns_are_free() {
    let found = assign(&[Channel { bytes_per_bit: 0.0, ..channel(0, 1, &[1.0, 2.0]) }], 2, 0.5);
    assert_eq!(found.bits, [[8, 8]]);
    assert!(found.objective.abs() < 1e-12, "{found:?}");
}

#[test]
#[should_panic(expected = "channel 0 from rank 1 to 1 among 2 workers")]
fn channels_to_oneself_are_refused() {
    assign(&[channel(1, 1, &[1.0])], 2, 0.5);
}

#[test]
fn bit_maps_round_trip() {
    let mut dice = Dice(7);
    for (widths, _) in MENUS {
        let menu = Menu::of(widths).expect("a menu");
        for count in 0..40_usize {
            let bits: Vec<u8> = (0..count).map(|_| widths[dice.below(widths.len())]).collect();
            let bytes = menu.pack(&bits);
            assert_eq!(bytes.len(), menu.map_bytes(count));
            assert_eq!(bytes.len(), if widths.len() <= 4 { count.div_ceil(4) } else { count.div_ceil(2) });
            assert_eq!(menu.unpack(&bytes, count), Some(bits));
        }
    }
    assert_eq!(Menu::default().pack(&[2, 4, 8, 2, 8]), [0b00_10_01_00, 0b10]);
    assert_eq!(Menu::of(&[1, 2, 4, 8, 16]).expect("a menu").pack(&[16, 2, 1]), [0b0001_0100, 0]);
}

#[test]
fn bit_maps_of_any_other_form_are_refused() {
    let menu = Menu::default();
    let bytes = menu.pack(&[8, 4, 2, 8, 4]);
    for count in [0, 3, 4, 9, usize::MAX] {
        assert_eq!(menu.unpack(&bytes, count), None, "{count} widths in 2 bytes");
    }
    assert_eq!(menu.unpack(&[0b11], 1), None, "reserved selector");
    for padding in 1..4 {
        assert_eq!(menu.unpack(&[1 << (2 * padding)], padding), None, "padding from selector {padding}");
    }
    let five = Menu::of(&[1, 2, 4, 8, 16]).expect("a menu");
    assert_eq!((five.unpack(&[5], 1), five.unpack(&[0x10], 1)), (None, None), "reserved selector and padding");
}

#[test]
#[should_panic(expected = "a width of 3 bits")]
fn widths_outside_the_menu_are_not_packed() {
    Menu::default().pack(&[2, 3]);
}
