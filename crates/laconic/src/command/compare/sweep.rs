//! `[[sweep]]`: one method for every combination of values.

use serde::Deserialize;

use super::entry::{MethodEntry, RUNS_MAX, Result, refuse};

/// A grid of methods.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// What methods are called; `{bits}` stands for the value of a key that ends so.
    #[serde(default)]
    name: String,
    /// What all of them change.
    #[serde(default)]
    set: Vec<String>,
    /// Keys and the values that each of them takes.
    over: toml::Table,
}

impl Sweep {
    /// The methods, the last key's values in turn first.
    pub fn methods(self) -> Result<Vec<MethodEntry>> {
        let mut axes: Vec<(&str, Vec<String>)> = Vec::new();
        let mut count = 1usize;
        for (key, values) in &self.over {
            let toml::Value::Array(values) = values else {
                return refuse(format!("sweep {:?}: over: {key}: expected a list of values", self.name));
            };
            if values.is_empty() {
                return refuse(format!("sweep {:?}: over: {key}: no values", self.name));
            }
            count = count.saturating_mul(values.len());
            axes.push((key, values.iter().map(ToString::to_string).collect()));
        }
        if axes.is_empty() {
            return refuse(format!("sweep {:?}: over: no keys", self.name));
        }
        if count > RUNS_MAX {
            return refuse(format!("sweep {:?}: more than {RUNS_MAX} methods", self.name));
        }
        Ok((0..count).map(|number| self.method(&axes, number)).collect())
    }

    fn method(&self, axes: &[(&str, Vec<String>)], number: usize) -> MethodEntry {
        let (mut left, mut picked) = (number, Vec::with_capacity(axes.len()));
        for (key, values) in axes.iter().rev() {
            picked.push((*key, values[left % values.len()].as_str(), values.len() > 1));
            left /= values.len();
        }
        picked.reverse();
        let (mut name, mut set) = (self.name.clone(), self.set.clone());
        for (key, value, varies) in picked {
            set.push(format!("{key}={value}"));
            let short = self.short(key);
            let (value, before) = (value.trim_matches('"'), name.clone());
            name = name.replace(&format!("{{{key}}}"), value).replace(&format!("{{{short}}}"), value);
            if (varies || name.is_empty()) && name == before {
                let comma = if name.is_empty() { "" } else { ", " };
                name += &format!("{comma}{short} {value}");
            }
        }
        MethodEntry { name, set }
    }

    /// The end of a key's name, or all of it where two keys end alike.
    fn short<'a>(&self, key: &'a str) -> &'a str {
        let end = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
        let alike = self.over.keys().filter(|other| other.rsplit('.').next() == Some(end(key))).count();
        if alike > 1 { key } else { end(key) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn methods(text: &str) -> Result<Vec<(String, Vec<String>)>> {
        let sweep: Sweep = toml::from_str(text).expect("a sweep");
        Ok(sweep.methods()?.into_iter().map(|entry| (entry.name, entry.set)).collect())
    }

    #[test]
    fn a_sweep_is_every_combination_once_each_with_a_name_of_its_own() {
        let text = "name = \"lazy, {bits} bits\"\nset = [\"a=1\"]\n\
            over = { \"messages.forward.bits\" = [2, 4], \"train.lr\" = [0.01, 0.003, 0.001] }";
        let found = methods(text).expect("methods");
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        let expected = ["2 bits, lr 0.01", "2 bits, lr 0.003", "2 bits, lr 0.001", "4 bits, lr 0.01"];
        assert_eq!(names.len(), 6);
        assert!(names.iter().zip(expected).all(|(name, end)| *name == format!("lazy, {end}")), "{names:?}");
        assert_eq!(found[4].1, ["a=1", "messages.forward.bits=4", "train.lr=0.003"]);
        let same_end = "over = { \"a.bits\" = [1, 2], \"b.bits\" = [\"x\"], \"c\" = [{ k = 1 }] }";
        let found = methods(same_end).expect("methods");
        assert_eq!(
            found[1],
            ("a.bits 2".to_owned(), vec!["a.bits=2".into(), "b.bits=\"x\"".into(), "c={ k = 1 }".into()])
        );
        for (text, word) in [
            ("name = \"x\"\nover = {}", "no keys"),
            ("over = { a = [] }", "no values"),
            ("over = { a = 3 }", "list"),
            (&format!("over = {{ a = {0:?}, b = {0:?} }}", vec![0; 200]), "more than 1000"),
        ] {
            let error = methods(text).expect_err(text).to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
