//! `--split given` or `--split train=…,val=…,test=…,seed=…`

use laconic_train::config::{NamedSplit, RandomSplit, SplitChoice};

/// The choice that `text` spells. A number with a point is a share, one without is a count.
pub(super) fn parse_split(text: &str) -> Result<SplitChoice, String> {
    if text == "given" {
        return Ok(SplitChoice::Named(NamedSplit::Given));
    }
    let (mut train, mut val, mut test, mut seed) = (None, None, None, None);
    for item in text.split(',') {
        let (key, value) = item.split_once('=').unwrap_or((item, ""));
        let refused = |expected: &str| format!("{item:?}: expected {expected}");
        let place = match key.trim() {
            "train" => &mut train,
            "val" => &mut val,
            "test" => &mut test,
            "seed" => &mut seed,
            _ => return Err(refused("given, or train=…, val=… and perhaps test=… and seed=…")),
        };
        if place.replace(number(value.trim()).ok_or_else(|| refused("a number"))?).is_some() {
            return Err(refused("each key once"));
        }
    }
    let seed = match seed {
        None => 0,
        Some(Number::Count(seed)) => u64::from(seed),
        Some(Number::Share(seed)) => return Err(format!("seed={seed}: expected an integer")),
    };
    let (Some(train), Some(val)) = (train, val) else {
        return Err("expected both train=… and val=…; without test=… all that is left over tests".to_owned());
    };
    let random = RandomSplit { train: train.value(), val: val.value(), test: test.map(Number::value), seed };
    random.spec().map_err(|error| error.to_string())?;
    Ok(SplitChoice::Random(random))
}

#[derive(Clone, Copy)]
enum Number {
    Share(f64),
    Count(u32),
}

fn number(text: &str) -> Option<Number> {
    text.parse().map(Number::Count).or_else(|_| text.parse().map(Number::Share)).ok()
}

impl Number {
    /// As the configuration's own type of value, whatever that is.
    fn value<T: From<f64> + From<i64>>(self) -> T {
        match self {
            Number::Share(share) => share.into(),
            Number::Count(count) => i64::from(count).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use laconic_graph::prepare::{Amount, SplitSpec};
    use laconic_train::config::SplitChoice;

    use super::parse_split;

    #[test]
    fn a_point_makes_a_share_and_none_a_count() {
        let drawn = |text: &str| match parse_split(text).unwrap() {
            SplitChoice::Random(random) => (random.spec().unwrap(), random.seed),
            given => panic!("{given:?}"),
        };
        let shares = SplitSpec { train: Amount::Fraction(0.6), val: Amount::Fraction(0.2), test: None };
        assert_eq!(drawn("train=0.6,val=0.2,seed=7"), (shares, 7));
        let counts = SplitSpec { train: Amount::PerClass(20), val: Amount::Count(500), test: None };
        assert_eq!(drawn("val=500, train=20"), (counts, 0));
        let counts = SplitSpec { test: Some(Amount::Count(1000)), ..counts };
        assert_eq!(drawn("train=20,val=500,test=1000"), (counts, 0));
        assert!(matches!(parse_split("given").unwrap(), SplitChoice::Named(_)));
    }

    #[test]
    fn what_is_not_a_split_is_refused_with_the_item_at_fault() {
        for (text, expected) in [
            ("random", "\"random\": expected given, or train="),
            ("train=0.6", "both train=… and val=…"),
            ("train=0.6,val=x", "\"val=x\": expected a number"),
            ("train=0.6,val=0.2,train=0.1", "each key once"),
            ("train=1.5,val=0.2", "train = 1.5: expected a fraction"),
            ("train=0.6,val=0.2,seed=0.5", "seed=0.5: expected an integer"),
            ("train=NaN,val=0.2", "expected a fraction"),
            ("", "expected given"),
        ] {
            let error = parse_split(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
