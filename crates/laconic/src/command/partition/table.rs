//! The figures of a partition as a table.

use std::fmt::Write;

use laconic_graph::partition::{PartQuality, Quality};
use laconic_graph::skew::LabelSkew;

use crate::bytes::human_bytes;

/// A line for each part and one for all, then the shares and balances of the whole; ends without a line break.
pub fn table(quality: &Quality, names: &[String], labels: Option<&LabelSkew>) -> String {
    let head = ["part", "nodes", "edges", "train", "halo rows", "replication", "memory", "top label"];
    let name = |part: usize| names.get(part).cloned().unwrap_or_else(|| part.to_string());
    let width = (0..quality.parts.len()).map(|part| name(part).chars().count()).max().unwrap_or(0).max(5);
    let mut text = line(&head.map(str::to_owned), width);
    for (index, figure) in quality.parts.iter().enumerate() {
        let of_part = labels.and_then(|labels| labels.parts.get(index)).filter(|part| part.labelled > 0);
        let share = of_part.map_or("-".to_owned(), |part| format!("{:.1} %", 100.0 * part.share));
        text += &line(&cells([&name(index), &share], figure), width);
    }
    text += &line(&cells(["all", "-"], &all(quality)), width);
    let Quality { edges, cut_edges, cut_share, halo_share, .. } = quality;
    let _ = writeln!(text, "edge cut    {cut_edges} of {edges} ({:.1} %)", 100.0 * cut_share);
    let _ = writeln!(text, "halo share  {:.1} % of the rows held", 100.0 * halo_share);
    let (nodes, edges, train) = (quality.node_balance, quality.edge_balance, quality.train_balance);
    let _ = write!(text, "max / mean  nodes {nodes:.3}, edges {edges:.3}, training nodes {train:.3}");
    if let Some(LabelSkew { skew, .. }) = labels {
        let _ = write!(text, "\nlabel skew  {skew:.2} (0: every part's training nodes are labelled as all are)");
    }
    text
}

/// The sums over all parts.
fn all(quality: &Quality) -> PartQuality {
    let sum = |of: fn(&PartQuality) -> u64| quality.parts.iter().map(of).sum();
    PartQuality {
        nodes: sum(|figure| figure.nodes),
        edges: quality.edges,
        train: sum(|figure| figure.train),
        halo_rows: quality.halo_rows,
        replication: quality.replication,
        memory_bytes: sum(|figure| figure.memory_bytes),
    }
}

fn cells([part, share]: [&str; 2], figure: &PartQuality) -> [String; 8] {
    [
        part.to_owned(),
        figure.nodes.to_string(),
        figure.edges.to_string(),
        figure.train.to_string(),
        figure.halo_rows.to_string(),
        format!("{:.3}", figure.replication),
        human_bytes(figure.memory_bytes),
        share.to_owned(),
    ]
}

fn line(row: &[String; 8], width: usize) -> String {
    let [part, nodes, edges, train, halo, replication, memory, share] = row;
    format!(
        "{part:>width$} {nodes:>12} {edges:>14} {train:>10} {halo:>12} {replication:>11} {memory:>12} {share:>10}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use laconic_graph::graph::Graph;
    use laconic_graph::partition::quality;

    use super::table;

    #[test]
    fn the_table_is_aligned() {
        let graph = Graph::new(vec![0, 3, 4, 5, 6], vec![1, 2, 3, 3, 3, 0]);
        let text = table(&quality(&graph, &[0, 1, 0, 2], 4, None, 0).expect("figures"), &[], None);
        let widths: BTreeSet<usize> = text.lines().take(6).map(str::len).collect();
        assert_eq!(widths.len(), 1, "{text}");
    }
}
