//! Limits of a partition that could not be kept.

use super::{PartitionOptions, PartitionerKind, Quality, given};

impl Quality {
    /// What is wished for of the balance of parts and was not to be had, and parts without nodes: a sentence each.
    pub fn not_kept(&self, kind: &PartitionerKind, options: &PartitionOptions) -> Vec<String> {
        let empty: Vec<String> =
            (0..self.parts.len()).filter(|&part| self.parts[part].nodes == 0).map(|part| part.to_string()).collect();
        let mut said = Vec::new();
        if !empty.is_empty() {
            let few = empty.iter().take(10).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if empty.len() > 10 { ", …" } else { "" };
            let why = if kind.name == given::KIND.name { ", as they were given" } else { "" };
            said.push(format!("{} of {} parts are empty{why}: {few}{more}", empty.len(), self.parts.len()));
        }
        if !kind.reads("imbalance") {
            return said;
        }
        let wished = |key: &str, is_on: bool| is_on && kind.reads(key);
        let counts: [(&str, bool, Vec<u64>); 3] = [
            ("nodes", true, self.parts.iter().map(|part| part.nodes).collect()),
            (
                "edges",
                wished("balance_edges", options.balance_edges),
                self.parts.iter().map(|part| part.edges).collect(),
            ),
            (
                "training nodes",
                wished("balance_train", options.balance_train),
                self.parts.iter().map(|part| part.train).collect(),
            ),
        ];
        for (what, is_wished, counts) in counts {
            let (all, largest) = (counts.iter().sum::<u64>(), counts.iter().copied().max().unwrap_or(0));
            let mean = all as f64 / counts.len().max(1) as f64;
            let most = ((mean * (1.0 + options.imbalance)) as u64).max(mean.ceil() as u64);
            if is_wished && largest > most {
                let share = 100.0 * options.imbalance;
                said.push(format!(
                    "the imbalance of {what} that is allowed, {share} % above the mean of {mean:.1} a part, could not \
                     be kept: the largest part has {largest}"
                ));
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use crate::partition::{PartQuality, PartitionOptions, PartitionerRegistry, Quality};

    #[test]
    fn what_could_not_be_kept_is_said_with_figures_and_what_was_kept_is_not() {
        let of = |nodes: &[u64], train: &[u64]| {
            let part = |(&nodes, &train): (&u64, &u64)| PartQuality { nodes, train, ..PartQuality::default() };
            Quality::of(nodes.iter().zip(train).map(part).collect(), 0)
        };
        let said = |quality: &Quality, name: &str, options: &PartitionOptions| {
            quality.not_kept(PartitionerRegistry::default().get(name).unwrap(), options)
        };
        let usual = PartitionOptions::default();
        assert!(said(&of(&[105, 95], &[0, 20]), "multilevel", &usual).is_empty());
        // A part of whole nodes cannot be smaller than the mean rounded up.
        assert!(said(&of(&[2, 1], &[0, 0]), "streaming", &usual).is_empty());
        let balanced = PartitionOptions { balance_train: true, ..usual.clone() };
        assert_eq!(
            said(&of(&[106, 94], &[0, 20]), "multilevel", &balanced),
            [
                "the imbalance of nodes that is allowed, 5 % above the mean of 100.0 a part, could not be kept: the \
                 largest part has 106",
                "the imbalance of training nodes that is allowed, 5 % above the mean of 10.0 a part, could not be \
                 kept: the largest part has 20"
            ]
        );
        assert!(said(&of(&[150, 50], &[0, 0]), "random", &usual).is_empty());
        assert_eq!(said(&of(&[3, 0], &[0, 0]), "given", &usual), ["1 of 2 parts are empty, as they were given: 1"]);
    }
}
