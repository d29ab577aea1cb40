//! What predictions must know about one worker: shapes alone.

use laconic_graph::dataset::{Labels, Split};
use laconic_graph::part::{Meta, Needs, Part, PartCounts, PartEntry};
use laconic_graph::plan::{
    Covered, HaloPlan, Link, Listed, Told, Topology, count_needed, needed, places_in, plan_all, plan_training,
};
use laconic_nn::{Matrix, Operand};
use laconic_wire::Content;
use serde::{Deserialize, Serialize};

use super::cover::cover_all;
use crate::error::{Result, TrainError};
use crate::inputs::{Found, Here, Neighbours, Terms, operand, told_bytes};
use crate::plan::{LinkSets, Plan, Within};

/// How many rows travel between this worker and one peer in one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PeerRows {
    /// Forward, from here; in reverse, to here.
    pub send: usize,
    /// Forward, to here; in reverse, from here.
    pub receive: usize,
}

impl PeerRows {
    /// Whether nothing travels.
    pub fn is_empty(&self) -> bool {
        self.send == 0 && self.receive == 0
    }
}

impl From<&Link> for PeerRows {
    fn from(link: &Link) -> Self {
        PeerRows { send: link.send.len(), receive: link.receive.len() }
    }
}

/// The sizes of one worker's part and of its exchanges.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shapes {
    /// The worker's number.
    pub rank: u32,
    /// How many rows it owns.
    pub rows: usize,
    /// Rows exchanged with each peer.
    pub links: Vec<PeerRows>,
    /// Rows that each peer needs and is needed for, where sums stand for some of them in exchanges; else nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<PeerRows>,
    /// How it finds out at start-up who owns what it needs.
    pub finding: Finding,
    /// Rows with a label of each split.
    pub split_rows: [usize; 3],
    /// Pairs of each split that are given as no edges, or edges that have such pairs of their own.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub given_pairs: [usize; 2],
    /// Edges of the own block and the halo block.
    pub edges: [usize; 2],
    /// Stored feature values.
    pub feature_values: usize,
    /// Whether they stay in their file.
    #[serde(default)]
    pub features_in_file: bool,
    /// Bytes that each peer is told of each input, where somebody has counted what occurs; else they have bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Vec<usize>>,
    /// What training sees of all that, where it is less.
    pub training: Option<TrainingShapes>,
    /// How many rows are read over how many edges, once somebody has looked; nobody else is told.
    #[serde(skip)]
    pub within: Option<Within>,
}

fn is_nothing(given: &[usize; 2]) -> bool {
    *given == [0; 2]
}

/// How workers find out who owns what they need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// They ask all, and all answer: bytes of the question to every peer, and of the answer to each.
    Asked(usize, Vec<usize>),
    /// They have been told: bytes of the list of rows that each owner gets, 0 where it knows which they are.
    Told(Vec<usize>),
}

impl Default for Finding {
    fn default() -> Finding {
        Finding::Asked(0, Vec::new())
    }
}

impl Finding {
    /// Bytes to each peer besides those that go to all.
    pub fn to_each(&self) -> &[usize] {
        match self {
            Finding::Asked(_, answers) => answers,
            Finding::Told(lists) => lists,
        }
    }
}

/// The sizes of the graph that training sees, where that is not the whole one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TrainingShapes {
    /// Rows exchanged with each peer.
    pub links: Vec<PeerRows>,
    /// Bytes of the question sent to each peer at start-up, and of the answer; `None` where nobody has to be asked.
    pub questions: Option<Vec<[usize; 2]>>,
    /// Edges of the own block and the halo block.
    pub edges: [usize; 2],
}

impl TrainingShapes {
    /// The shapes of a part's training graph whose plan is known; `asked` are bytes of the question to each peer, and
    /// of the answer.
    pub fn of(asked: Vec<[usize; 2]>, plan: &HaloPlan, topology: &Topology) -> TrainingShapes {
        TrainingShapes {
            links: plan.links.iter().map(PeerRows::from).collect(),
            questions: Some(asked),
            edges: [topology.own.edges(), topology.halo.edges()],
        }
    }

    /// No smaller than the shapes of any training graph of a part of these shapes.
    pub fn bound(shapes: &Shapes) -> TrainingShapes {
        let most = |rows: usize| Listed::most(rows as u64, rows as u64) as usize;
        let questions = shapes.links.iter().map(|link| [most(link.receive), most(link.send)]);
        TrainingShapes { links: shapes.links.clone(), questions: Some(questions.collect()), edges: shapes.edges }
    }

    /// The same, or that of the whole graph, without the edges to other parts.
    pub fn own_alone(shapes: &Shapes) -> TrainingShapes {
        let (questions, edges) = match &shapes.training {
            Some(training) => (training.questions.clone(), training.edges),
            None => (None, shapes.edges),
        };
        TrainingShapes { links: vec![PeerRows::default(); shapes.links.len()], questions, edges: [edges[0], 0] }
    }
}

/// Rows with a label of each split.
fn split_rows(part: &Part) -> [usize; 3] {
    let is_of = |row: usize, role: u8| part.roles[row] & role != 0 && part.labels.known(row) > 0;
    let count = |role: u8| (0..part.roles.len()).filter(|&row| is_of(row, role)).count();
    [Split::TRAIN, Split::VAL, Split::TEST].map(count)
}

/// Bytes of a list of ids.
fn length(ids: &[u64]) -> usize {
    Listed::of(ids.iter().copied()).bytes() as usize
}

/// The ids that come along a link.
fn ids<'a>(link: &Link, topology: &'a Topology) -> &'a [u64] {
    &topology.halo_ids[link.receive.start as usize..link.receive.end as usize]
}

/// Bytes of the places of some ids in a list that has them.
fn places(list: &[u64], ids: &[u64]) -> usize {
    Listed::of(places_in(list, ids)).bytes() as usize
}

/// How each of these parts finds out who owns what it needs, all of them having been told or none.
///
/// # Errors
/// If some parts have been told and others not, or one of less than it needs.
fn findings(parts: &[Part], plans: &[(HaloPlan, Topology)]) -> Result<Vec<Finding>> {
    let told: Vec<Option<Told>> = parts.iter().map(Told::of).collect::<std::result::Result<_, _>>()?;
    let knowing = told.iter().filter(|told| told.is_some()).count();
    if knowing > 0 && knowing < parts.len() {
        return Err(TrainError::config(SOME_TOLD));
    }
    let all = 0..parts.len();
    let told: Vec<Told> = told.into_iter().flatten().collect();
    if knowing > 0 {
        let lists = |part| all.clone().map(|owner| Told::list_bytes(&told, part, owner) as usize).collect();
        return Ok(all.clone().map(|part| Finding::Told(lists(part))).collect());
    }
    let asked = |(_, topology): &(HaloPlan, Topology)| {
        let mut asked = topology.halo_ids.clone();
        asked.sort_unstable();
        asked
    };
    let asked: Vec<Vec<u64>> = plans.iter().map(asked).collect();
    let answer = |owner: usize, to: usize| places(&asked[to], ids(&plans[to].0.links[owner], &plans[to].1));
    let answers = |owner| all.clone().map(|to| answer(owner, to)).collect();
    Ok(all.clone().map(|part| Finding::Asked(length(&asked[part]), answers(part))).collect())
}

/// Of a part the bytes of its question to each owner which of what comes from it trains, and of the answer to that.
fn training_questions(
    (asked, training, of_training): &(Vec<u64>, HaloPlan, Topology),
    (links, topology): &(HaloPlan, Topology),
) -> Vec<[usize; 2]> {
    let of_owner = |(link, trained): (&Link, &Link)| {
        let asked = among(asked, ids(link, topology));
        [places(ids(link, topology), &asked), places(&asked, ids(trained, of_training))]
    };
    links.links.iter().zip(&training.links).map(of_owner).collect()
}

/// Those of some ids that a list has; both ascend.
pub fn among(ids: &[u64], list: &[u64]) -> Vec<u64> {
    ids.iter().copied().filter(|id| list.binary_search(id).is_ok()).collect()
}

/// No less than a part says whose neighbours nobody has asked.
fn bound_of_finding(part: &Part, asked: &[u64]) -> Finding {
    let parts = part.parts as usize;
    match &part.owners {
        Some(owners) => {
            let mut lists = vec![Listed::default(); parts];
            let told = owners.parts.iter().enumerate();
            told.for_each(|(place, &owner)| lists[owner as usize].add(owners.told_as(place)));
            Finding::Told(lists.iter().map(|list| list.bytes() as usize).collect())
        }
        None => {
            // Wherever they stand among no more ids than there are nodes.
            let answer = Listed::most(part.rows() as u64, part.global.nodes);
            Finding::Asked(length(asked), vec![answer as usize; parts])
        }
    }
}

/// That parts have been cut differently.
pub const SOME_TOLD: &str = "some parts know who owns the nodes that they need and others do not, since they were cut \
    differently; cut all of them again";

impl Shapes {
    /// Counts links in the place of labelled rows.
    pub fn count_links(&mut self, sets: &LinkSets) {
        (self.split_rows, self.given_pairs) = (sets.counts(), sets.given_counts());
    }

    /// As workers tell each other.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The shapes of worker `rank` of `workers`; `None` if they are not.
    pub fn from_bytes(bytes: &[u8], rank: usize, workers: usize) -> Option<Shapes> {
        let shapes: Shapes = serde_json::from_slice(bytes).ok()?;
        let links = [Some(&shapes.links), shapes.training.as_ref().map(|training| &training.links)];
        let fits = links.into_iter().flatten().all(|links| links.len() == workers);
        let questions = shapes.training.as_ref().and_then(|training| training.questions.as_ref());
        let fits = fits && (shapes.uncovered.is_empty() || shapes.uncovered.len() == workers);
        let fits = fits && shapes.finding.to_each().len() == workers;
        let fits = fits && questions.is_none_or(|questions| questions.len() == workers);
        (fits && shapes.rank as usize == rank).then_some(shapes)
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.links.len()
    }

    /// Rows exchanged with each peer in training.
    pub fn training_links(&self) -> &[PeerRows] {
        self.training.as_ref().map_or(&self.links, |training| &training.links)
    }

    /// Rows that each peer needs and is needed for, whatever crosses in their place.
    pub fn needs(&self) -> &[PeerRows] {
        if self.uncovered.is_empty() { &self.links } else { &self.uncovered }
    }

    /// Counts what crosses where sums may stand for rows.
    pub fn cover(&mut self, covered: &Covered) {
        self.uncovered = std::mem::replace(&mut self.links, covered.links.iter().map(PeerRows::from).collect());
        self.edges[1] = covered.halo.edges();
    }

    /// The same, where nobody has looked: no more than rows.
    pub fn cover_at_most(&mut self) {
        if self.uncovered.is_empty() {
            self.uncovered.clone_from(&self.links);
        }
    }

    /// Rows of the halo.
    pub fn halo_rows(&self) -> usize {
        self.links.iter().map(|link| link.receive).sum()
    }

    /// What can be said of a part before anybody was asked who owns what: the halo as if one peer had all of it and
    /// needed as many rows in return. Enough to estimate memory by.
    pub fn outline(part: &Part, self_loops: bool) -> Shapes {
        let (halo, edges) = count_needed(part);
        let mut links = vec![PeerRows::default(); part.parts as usize];
        let peer = (part.index as usize + 1) % links.len();
        links[peer] = PeerRows { send: halo, receive: halo };
        let own = part.edges.edges() - edges + if self_loops { part.rows() } else { 0 };
        Shapes {
            rank: part.index,
            rows: part.rows(),
            links,
            edges: [own, edges],
            feature_values: part.features.stored().len(),
            features_in_file: part.features_are_in_file(),
            split_rows: split_rows(part),
            given_pairs: [0; 2],
            ..Shapes::default()
        }
    }

    /// No smaller than the shapes of a part of whose neighbours nothing is known: each may have all that is needed
    /// here, and need all that is here.
    pub fn bound(part: &Part, self_loops: bool) -> Shapes {
        let (asked, outline) = (needed(part), Shapes::outline(part, self_loops));
        let link = PeerRows { send: part.rows(), receive: asked.len() };
        let of = |peer| if peer == part.index as usize { PeerRows::default() } else { link };
        Shapes { links: (0..part.parts as usize).map(of).collect(), finding: bound_of_finding(part, &asked), ..outline }
    }

    /// The shapes of all parts of a folder, from what its meta data say of them; `None` if they do not.
    pub fn counted(meta: &Meta, self_loops: bool) -> Option<Vec<Shapes>> {
        let entries: Vec<(&PartEntry, &PartCounts)> =
            meta.files.values().map(|entry| Some((entry, entry.counts.as_ref()?))).collect::<Option<_>>()?;
        if entries.len() != meta.parts as usize {
            return None;
        }
        let nothing = Needs { rows: 0, bytes: Listed::default().bytes(), list: 0 };
        let needs = |of: usize, owner: usize| entries[of].1.needs.get(&(owner as u32)).copied().unwrap_or(nothing);
        let all = 0..entries.len();
        let shapes = |(rank, (entry, counts)): (usize, &(&PartEntry, &PartCounts))| {
            let rows = entry.nodes as usize;
            let own = counts.own_edges as usize;
            let own = if self_loops { own.saturating_sub(counts.loops as usize) + rows } else { own };
            let link =
                |peer| PeerRows { send: needs(peer, rank).rows as usize, receive: needs(rank, peer).rows as usize };
            Shapes {
                rank: rank as u32,
                rows,
                links: all.clone().map(link).collect(),
                finding: match counts.knows_owners {
                    true => Finding::Told(all.clone().map(|peer| needs(rank, peer).list as usize).collect()),
                    false => {
                        let answers = all.clone().map(|peer| needs(peer, rank).bytes as usize);
                        Finding::Asked(counts.asked_bytes as usize, answers.collect())
                    }
                },
                uncovered: Vec::new(),
                split_rows: counts.labelled.map(|rows| rows as usize),
                given_pairs: [0; 2],
                edges: [own, counts.halo_edges as usize],
                feature_values: counts.feature_values as usize,
                features_in_file: false,
                told: Vec::new(),
                training: None,
                within: None,
            }
        };
        Some(entries.iter().enumerate().map(shapes).collect())
    }

    /// The shapes of all parts, with those of the graph that training sees. `found` is what was found of the same parts
    /// before.
    ///
    /// # Errors
    /// If parts contradict each other.
    pub fn of_all(parts: &[Part], plan: &Plan, found: &Found) -> Result<Vec<Shapes>> {
        let plans = plan_all(parts, plan.self_loops)?;
        let findings = findings(parts, &plans)?.into_iter();
        type Planned<'a> = (&'a Part, &'a (HaloPlan, Topology));
        let of = |((part, (plan, topology)), finding): (Planned<'_>, _)| Shapes::of(part, plan, topology, finding);
        let mut shapes: Vec<Shapes> = parts.iter().zip(&plans).zip(findings).map(of).collect();
        shapes.iter_mut().zip(told(parts, &plans, plan, found)?).for_each(|(shapes, told)| shapes.told = told);
        if plan.covers {
            shapes.iter_mut().zip(cover_all(parts, &plans)?).for_each(|(shapes, covered)| shapes.cover(&covered));
        }
        let induced = if plan.inductive { plan_training(parts, plan.self_loops)? } else { Vec::new() };
        let asked = induced.iter().zip(&plans).map(|(training, whole)| training_questions(training, whole));
        let asked: Vec<Vec<[usize; 2]>> = asked.collect();
        for (rank, (shapes, (_, plan, topology))) in shapes.iter_mut().zip(&induced).enumerate() {
            let of_peer = |peer: usize| [asked[rank][peer][0], asked[peer][rank][1]];
            let questions = (0..asked.len()).map(of_peer).collect();
            shapes.training = Some(TrainingShapes::of(questions, plan, topology));
        }
        for (index, (shapes, whole)) in shapes.iter_mut().zip(&plans).enumerate() {
            let whole = (&whole.0, &whole.1);
            let seen = induced.get(index).map_or(whole, |(_, links, topology)| (links, topology));
            let alone = plan.deletes_edges.then(|| (seen.0.own_alone(), seen.1.own_alone()));
            let seen = alone.as_ref().map_or(seen, |(links, topology)| (links, topology));
            // Rows whose features stay in their file are in no other order.
            let stays = parts[index].features_are_in_file();
            let within = (!stays).then(|| Within::of(plan, &parts[index], whole, seen).1);
            shapes.within = Some(within.unwrap_or_default());
        }
        Ok(shapes)
    }

    /// The shapes of a part whose plan is known, and how it was found.
    pub fn of(part: &Part, plan: &HaloPlan, topology: &Topology, finding: Finding) -> Shapes {
        Shapes {
            rank: part.index,
            rows: part.rows(),
            links: plan.links.iter().map(PeerRows::from).collect(),
            uncovered: Vec::new(),
            finding,
            split_rows: split_rows(part),
            given_pairs: [0; 2],
            edges: [topology.own.edges(), topology.halo.edges()],
            feature_values: part.features.stored().len(),
            features_in_file: part.features_are_in_file(),
            told: Vec::new(),
            training: None,
            within: None,
        }
    }
}

/// Bytes that each of these parts tells each peer of each input.
fn told(parts: &[Part], plans: &[(HaloPlan, Topology)], plan: &Plan, found: &Found) -> Result<Vec<Vec<Vec<usize>>>> {
    let response = plan.inputs.response.as_ref();
    // Without the owners' secrets nobody knows what they will answer.
    let unknown = response.is_some_and(|response| !response.has_secret());
    if plan.inputs.told.is_empty() || plan.inputs.given || unknown {
        return Ok(vec![Vec::new(); parts.len()]);
    }
    let terms = Terms { response: response.cloned(), least: plan.inputs.least, self_loops: plan.self_loops };
    found.bytes(&plan.inputs.told, &terms, || told_anew(parts, plans, plan))
}

/// The same, by telling.
fn told_anew(parts: &[Part], plans: &[(HaloPlan, Topology)], plan: &Plan) -> Result<Vec<Vec<Vec<usize>>>> {
    let response = plan.inputs.response.as_ref();
    let learned = |part: &Part, row: usize| match (&part.labels, part.roles.get(row)) {
        (Labels::Single { values, .. }, Some(role)) if role & Split::TRAIN != 0 => u32::try_from(values[row]).ok(),
        _ => None,
    };
    let mut here = Vec::with_capacity(parts.len());
    for (part, (links, topology)) in parts.iter().zip(plans) {
        let labels: Vec<Option<u32>> = (0..part.rows()).map(|row| learned(part, row)).collect();
        let answers = response.map(|response| response.answers(&part.nodes, &labels, plan.inputs.classes));
        let answers = answers.transpose()?.unwrap_or_else(|| labels.clone());
        let features = match plan.inputs.told.iter().any(|kind| kind.content == Some(Content::Features)) {
            true => operand(part.features.clone(), part.rows(), part.global.columns),
            false => Operand::Dense(Matrix::zeros(part.rows(), 0)),
        };
        let (neighbours, least) = (Neighbours::of_topology(topology), plan.inputs.least);
        here.push(Here { links, neighbours, labels, answers, least, features });
    }
    told_bytes((&plan.inputs.told, response), &here, plan.inputs.classes)
}
