//! The Python file beside exported weights: the model as it is built there, with all that it needs to know.

use laconic_graph::about::Scale;
use laconic_nn::after::{After, NormKind};
use laconic_nn::decoder::DECODER;
use laconic_nn::kernels::joining::Joining;
use laconic_nn::network::{ACT, ACTS, BOTTLENECKS, HEADS, INPUTS, LIN, MLP, NORMS, RESIDUALS, Unit};
use laconic_train::Plan;
use laconic_train::record::card::Card;
use laconic_train::schedule::HandOn;

use super::Target;

/// Layers in plain PyTorch, on sums and maxima over the edges that end at each node.
mod python {
    pub const EDGES_OF_TORCH: &str = include_str!("python/edges_torch.py");
    pub const EDGES_OF_DGL: &str = include_str!("python/edges_dgl.py");
    pub const GCN: &str = include_str!("python/gcn.py");
    pub const SAGE_MEAN: &str = include_str!("python/sage_mean.py");
    pub const SAGE_MAX: &str = include_str!("python/sage_max.py");
    pub const GIN: &str = include_str!("python/gin.py");
    pub const GAT: &str = include_str!("python/gat.py");
    pub const LOOPS: &str = include_str!("python/loops.py");
    pub const STANDARDISE: &str = include_str!("python/standardise.py");
    pub const STANDARDISE_TYPES: &str = include_str!("python/standardise_types.py");
    pub const ROW_NORMALISE: &str = include_str!("python/row_normalise.py");
    pub const READ: &str = include_str!("python/read.py");
    pub const DOT: &str = include_str!("python/decoder_dot.py");
    pub const PERCEPTRON: &str = include_str!("python/decoder_mlp.py");
    pub const DISTMULT: &str = include_str!("python/decoder_distmult.py");
    pub const ONNX: &str = include_str!("python/onnx.py");
}

/// What the parts of the text share.
pub struct Loader<'a> {
    plan: &'a Plan,
    card: &'a Card,
    target: Target,
    /// The layer as text, where the library has none that computes the same.
    layer: Option<&'static str>,
    /// Whether edges have weights that the layer reads.
    weighted: bool,
    /// Whether the model adds self-loops that the layer itself does not add.
    adds_loops: bool,
    /// What scores pairs as text, where the model is one of links.
    decoder: Option<&'static str>,
}

/// The layers of the finished model: all but the classifiers of stages that hand on what these read.
pub fn kept(plan: &Plan) -> impl Iterator<Item = &Unit> {
    plan.stages.iter().flat_map(|stage| {
        let units = stage.network.units();
        &units[..units.len() - usize::from(stage.hand_on == HandOn::Hidden)]
    })
}

/// A layer of ours as text, and whether it reads weights of edges; nothing for one that reads no neighbours.
///
/// # Errors
/// If it is nobody's that we know.
fn layer_text(plan: &Plan) -> Result<Option<(&'static str, bool)>, String> {
    match (plan.layer.name, plan.config.model.aggregator.as_str()) {
        _ if !plan.layer.is_convolution() => Ok(None),
        ("gcn", _) => Ok(Some((python::GCN, true))),
        ("sage", "mean") => Ok(Some((python::SAGE_MEAN, true))),
        ("sage", "max") => Ok(Some((python::SAGE_MAX, false))),
        ("gin", _) => Ok(Some((python::GIN, true))),
        ("gat", _) => Ok(Some((python::GAT, false))),
        (other, _) => Err(format!("model.arch = {other:?}: there is no such layer in Python")),
    }
}

/// The decoder of a model of links as text.
///
/// # Errors
/// If it is nobody's that we know.
fn decoder_text(plan: &Plan) -> Result<Option<&'static str>, String> {
    match (plan.links.is_some(), plan.config.task.decoder.as_str()) {
        (false, _) => Ok(None),
        (true, "dot") => Ok(Some(python::DOT)),
        (true, "mlp") => Ok(Some(python::PERCEPTRON)),
        (true, "distmult") => Ok(Some(python::DISTMULT)),
        (true, other) => Err(format!("task.decoder = {other:?}: there is no such decoder in Python")),
    }
}

/// `norms.0` is `self.norms["0"]`, and `act` is `self.act`.
fn place(name: &str) -> String {
    match name.split_once('.') {
        Some((list, index)) => format!("self.{list}[\"{index}\"]"),
        None => format!("self.{name}"),
    }
}

/// What follows a layer.
fn following(after: &After) -> String {
    let normalised = after.norm().map_or("x".to_owned(), |norm| format!("{}(x)", place(&norm.name)));
    match (after, after.slope()) {
        (After::Nothing, _) => String::new(),
        (_, Some(slope)) => format!("        x = {}({normalised})\n", place(slope)),
        (_, None) => format!("        x = {normalised}.relu()\n"),
    }
}

impl Loader<'_> {
    /// What writes the file of a model.
    ///
    /// # Errors
    /// If its layers have no form there.
    pub fn new<'a>(plan: &'a Plan, card: &'a Card, target: Target) -> Result<Loader<'a>, String> {
        if let Some(told) = plan.inputs.told.first() {
            let what = "is made from labels around each node, and load.py makes no inputs; laconic predict does";
            return Err(format!("model.inputs has {:?}, which {what}", told.name));
        }
        if plan.propagates() {
            let what = "its scores are made of training labels, and no layer outputs them; laconic predict makes them";
            return Err(format!("schedule.kind = {:?}: {what}", plan.config.schedule.kind));
        }
        if plan.layer.is_relational && (target != Target::Pyg || card.weighted) {
            let where_to = "has a form in PyTorch Geometric alone (--to pyg), whose layer reads no weights of edges";
            return Err(format!("model.arch = {:?} {where_to}", plan.layer.name));
        }
        let own = match layer_text(plan) {
            // A layer that PyTorch Geometric has needs no text of ours.
            Err(_) if target == Target::Pyg && !card.weighted => None,
            own => own?,
        };
        let weighted = card.weighted && own.is_some_and(|(_, reads_weights)| reads_weights);
        // Of PyTorch Geometric's layers only GCNConv takes weights as ours does.
        let is_theirs = target == Target::Pyg && (!weighted || plan.layer.name == "gcn");
        let layer = own.filter(|_| !is_theirs).map(|(text, _)| text);
        let by_itself = plan.layer.self_loops && layer.is_none();
        let adds_loops = plan.self_loops && !by_itself && plan.layer.is_convolution();
        let decoder = decoder_text(plan)?;
        Ok(Loader { plan, card, target, layer, weighted, adds_loops, decoder })
    }

    /// A Python file that builds the model and loads its weights.
    pub fn text(&self) -> String {
        let mut text = self.head();
        let edges = if self.target == Target::Dgl { python::EDGES_OF_DGL } else { python::EDGES_OF_TORCH };
        let loops = self.layer.filter(|_| self.adds_loops).map(|_| python::LOOPS);
        let scale = match self.card.about.scale {
            Scale::Given => None,
            Scale::RowNormalised => Some(python::ROW_NORMALISE),
            Scale::Standardised { by_type: true, .. } => Some(python::STANDARDISE_TYPES),
            Scale::Standardised { .. } => Some(python::STANDARDISE),
        };
        let edges = self.layer.map(|_| edges);
        for part in [edges, self.layer, loops, scale, self.decoder].into_iter().flatten() {
            text += &format!("\n\n{part}");
        }
        text += &self.constructor();
        text += &self.forward();
        text += &format!("\n\n{}", python::READ);
        if self.target == Target::Torch {
            let weight = if self.weighted { ", torch.ones(3)" } else { "" };
            let names = if self.weighted { ", \"edge_weight\"" } else { "" };
            let written = python::ONNX.replace("INPUTS", &self.card.inputs.to_string());
            text += &format!("\n\n{}", written.replace(", WEIGHT", weight).replace(", NAME", names));
        }
        text
    }

    /// The packages that the file imports.
    pub fn needs(&self) -> &'static [&'static str] {
        match self.target {
            Target::Pyg if self.plan.layer.is_convolution() => &["torch", "torch_geometric"],
            Target::Dgl if self.plan.layer.is_convolution() => &["torch", "dgl"],
            _ => &["torch"],
        }
    }

    fn units(&self) -> impl Iterator<Item = &Unit> {
        kept(self.plan)
    }

    /// What the file is, what it needs, and what goes in and comes out.
    fn head(&self) -> String {
        let Card { version, digest, dataset, about, classes, multi_label, .. } = self.card;
        let graph = if self.target == Target::Dgl { "graph, x" } else { "x, edge_index" };
        let weight = self.of_edges();
        let (needs, data) = (self.needs().join(" and "), &self.plan.config.data);
        let out = if self.decoder.is_some() { "embeddings" } else { "logits" };
        let mut text = format!(
            "\"\"\"Builds the model and loads its weights; made by `laconic export` {version}.\n\n\
             {out} = load()({graph}{weight})\n\n\
             x: features as they were given, float32, in the order of FEATURES where that is not empty. What was\n\
             done to them in training is done in here; what becomes of the columns of a table is in about.json.\n\
             Edges: from source to target, each once, {}{};\n{}{}.\n\n\
             Needs {needs}, and no package besides.\n\
             Trained on {dataset:?}; the parameters' digest is\n{digest}.\n\"\"\"\n\n",
            if data.keep_self_loops { "those from a node to itself too" } else { "none from a node to itself" },
            if data.symmetrise { ", the other direction of every edge added" } else { "" },
            match (self.weighted, self.card.weighted) {
                (true, _) => "edge_weight is the weight of each",
                (false, true) => "this layer reads no weights of theirs",
                (false, false) => "in training they had no weights",
            },
            if self.plan.layer.is_relational {
                ";\nedge_type is the number of the relation of each, see RELATIONS"
            } else {
                ""
            },
        );
        text += if self.target == Target::Torch { "import json\nimport sys\n" } else { "import json\n" };
        text += "from pathlib import Path\n\nimport torch\n";
        text += "from torch.nn import BatchNorm1d, LayerNorm, Linear, Module, ModuleDict, Parameter, PReLU, ReLU\n";
        text += "from torch.nn import Sequential\n";
        text += "from torch.nn.functional import leaky_relu\n";
        text += &self.imports();
        let list = |names: &[String]| serde_json::Value::from(names.to_vec()).to_string();
        let shown = if self.decoder.is_some() { 0 } else { *classes };
        let names: Vec<String> = (0..shown).map(|class| about.class(class)).collect();
        let how = if *multi_label { "any number of them a node" } else { "one a node" };
        text += &format!("\n# Classes in the order of logits, {how}; feature columns in the order of x.\n");
        text += &format!("CLASSES = {}\nFEATURES = {}\n", list(&names), list(&about.features));
        if self.plan.is_relational() {
            text += &format!("RELATIONS = {}\n", list(&about.relations));
        }
        text
    }

    fn imports(&self) -> String {
        if !self.plan.layer.is_convolution() {
            return String::new();
        }
        if self.target == Target::Dgl {
            let text = "import dgl\nimport dgl.function as fn\nfrom dgl.nn.functional import edge_softmax\n";
            return text.to_owned();
        }
        if self.target != Target::Pyg || self.layer.is_some() {
            return String::new();
        }
        let call = self.units().find(|unit| unit.place().0 == self.plan.layer.prefix).map(|unit| self.call(unit));
        let call = call.unwrap_or_default();
        let mut text = format!("from torch_geometric.nn import {}\n", call.split('(').next().unwrap_or_default());
        if self.adds_loops {
            text += "from torch_geometric.utils import add_remaining_self_loops\n";
        }
        text
    }

    /// The layer as Python constructs it.
    fn call(&self, unit: &Unit) -> String {
        if self.layer.is_none() {
            let adds = if self.plan.self_loops { "True" } else { "False" };
            return unit.layer.facts().pyg.replace("{self_loops}", adds);
        }
        let (inputs, outputs) = (unit.layer.facts().inputs, unit.layer.facts().outputs);
        let parameters = &unit.layer.facts().parameters;
        let shape = |name: &str| parameters.iter().find(|spec| spec.name == name).map_or(&[][..], |spec| &spec.shape);
        match (shape("nn.0.weight"), shape("att_src"), self.plan.layer.name) {
            (&[inner, _], ..) => format!("GIN({inputs}, {inner}, {outputs})"),
            (_, &[_, heads, width], _) => {
                let concat = if outputs == heads * width { "True" } else { "False" };
                format!("GAT({inputs}, {width}, {heads}, {concat})")
            }
            (.., name) => format!("{}({inputs}, {outputs})", name.to_uppercase()),
        }
    }

    /// The class up to the end of `__init__`: a dictionary for each list that has a layer in it.
    fn constructor(&self) -> String {
        let mut text = String::from("\n\nclass Model(Module):\n    def __init__(self):\n");
        text += "        super().__init__()\n";
        match &self.card.about.scale {
            Scale::Given => {}
            Scale::RowNormalised => text += "        self.scale = Scale()\n",
            Scale::Standardised { means, .. } => text += &format!("        self.scale = Scale({})\n", means.len()),
        }
        for list in [self.plan.layer.prefix, INPUTS, RESIDUALS, NORMS, ACTS, BOTTLENECKS, HEADS, MLP] {
            let entries: String = self.units().filter_map(|unit| self.entry(list, unit)).collect();
            if !entries.is_empty() {
                text += &format!("        self.{list} = ModuleDict({{\n{entries}        }})\n");
            }
        }
        if let Some(lin) = self.units().find(|unit| unit.name == LIN) {
            let (inputs, outputs) = (lin.layer.facts().inputs, lin.layer.facts().outputs);
            text += &format!("        self.{LIN} = Linear({inputs}, {outputs})\n");
        }
        if self.units().any(|unit| unit.after.slope() == Some(ACT)) {
            text += &format!("        self.{ACT} = PReLU()\n");
        }
        if let Some(links) = &self.plan.links {
            let (width, layers) = (links.decoder.width(), self.plan.config.task.decoder_layers);
            text += &format!("        self.{DECODER} = Decoder({width}, {layers}, {})\n", links.relations);
        }
        text
    }

    /// What a layer adds to a list.
    fn entry(&self, list: &str, unit: &Unit) -> Option<String> {
        let (inputs, outputs) = (unit.layer.facts().inputs, unit.layer.facts().outputs);
        let (own, index) = unit.place();
        let last = |name: &'_ str| name.rsplit('.').next().unwrap_or_default().to_owned();
        let (index, value) = match (unit.after.norm(), unit.after.slope()) {
            (Some(norm), _) if list == NORMS => {
                let kind = if norm.kind == NormKind::Batch { "BatchNorm1d" } else { "LayerNorm" };
                (last(&norm.name), format!("{kind}({outputs})"))
            }
            (_, Some(slope)) if list == ACTS && slope != ACT => (last(slope), "PReLU()".to_owned()),
            _ if list == RESIDUALS && self.is_residual(unit) && inputs != outputs => {
                (index.to_owned(), format!("Linear({inputs}, {outputs}, bias=False)"))
            }
            _ if list != own => return None,
            _ if [INPUTS, BOTTLENECKS, HEADS, MLP].contains(&list) => {
                (index.to_owned(), format!("Linear({inputs}, {outputs})"))
            }
            _ => (index.to_owned(), self.call(unit)),
        };
        Some(format!("            \"{index}\": {value},\n"))
    }

    /// Whether what goes into a layer is added to what comes out.
    fn is_residual(&self, unit: &Unit) -> bool {
        self.plan.config.model.residual && unit.place().0 == self.plan.layer.prefix
    }

    /// What is added to what comes out of a layer.
    fn added(&self, unit: &Unit) -> String {
        match (self.is_residual(unit), unit.layer.facts().inputs == unit.layer.facts().outputs) {
            (false, _) => String::new(),
            (true, true) => " + x".to_owned(),
            (true, false) => format!(" + self.{RESIDUALS}[\"{}\"](x)", unit.place().1),
        }
    }

    /// What the model is given of edges besides their ends.
    fn of_edges(&self) -> &'static str {
        match (self.plan.layer.is_relational, self.weighted) {
            (true, _) => ", edge_type",
            (false, true) => ", edge_weight",
            (false, false) => "",
        }
    }

    /// The signature of `forward` and what is done before the first layer; and what each convolution reads.
    fn begin(&self) -> (String, &'static str) {
        let weight = self.of_edges();
        let graph = if self.target == Target::Dgl { "graph, x" } else { "x, edge_index" };
        let mut text = format!("\n    def forward(self, {graph}{weight}):\n");
        if !self.card.about.scale.is_given() {
            text += "        x = self.scale(x)\n";
        }
        if self.layer.is_some() {
            let dgl = self.target == Target::Dgl;
            let ends = if dgl { "graph.edges(order=\"eid\")" } else { "edge_index[0], edge_index[1]" };
            let weights = if self.weighted { "edge_weight" } else { "x.new_ones(source.size(0))" };
            text += &format!("        source, target = {ends}\n        weight = {weights}\n");
            if self.adds_loops {
                text += "        source, target, weight = with_loops(source, target, weight, x.size(0))\n";
            }
            text += "        edges = Edges(source, target, weight, x.size(0))\n";
            return (text, "x, edges");
        }
        if self.adds_loops {
            text += "        edge_index = add_remaining_self_loops(edge_index, num_nodes=x.size(0))[0]\n";
        }
        let reads = match self.of_edges() {
            ", edge_type" => "x, edge_index, edge_type",
            ", edge_weight" => "x, edge_index, edge_weight",
            _ => "x, edge_index",
        };
        (text, reads)
    }

    /// What scores pairs of nodes, in a model of links.
    fn score(&self) -> String {
        let ends = "Logits of edges from the nodes of pairs[0] to those of pairs[1], whose embeddings are in rows";
        let is_relational = self.plan.links.as_ref().is_some_and(|links| links.relations > 1);
        let (relation, what) = if is_relational {
            (", edge_type", ";\n        edge_type is the number of the relation of each")
        } else {
            ("", "")
        };
        format!(
            "    def score(self, rows, pairs{relation}):\n        \"\"\"{ends}{what}.\"\"\"\n        \
             return self.{DECODER}(rows[pairs[0]], rows[pairs[1]]{relation})\n"
        )
    }

    fn forward(&self) -> String {
        let (mut text, reads) = self.begin();
        let joined = self.plan.stages.iter().find_map(|stage| stage.network.joined());
        if joined.is_some() {
            text += "        xs = []\n";
        }
        for unit in self.units() {
            let list = unit.place().0;
            if let Some(joined) = joined.filter(|_| unit.name == LIN) {
                text += match joined.joining {
                    Joining::Concatenated => "        x = torch.cat(xs, dim=1)\n",
                    Joining::Largest => "        x = torch.stack(xs).max(dim=0)[0]\n",
                };
            }
            let convolves = list == self.plan.layer.prefix && self.plan.layer.is_convolution();
            let arguments = if convolves { reads } else { "x" };
            text += &format!("        x = {}({arguments}){}\n", place(&unit.name), self.added(unit));
            text += &following(&unit.after);
            if joined.is_some() && list == self.plan.layer.prefix {
                text += "        xs.append(x)\n";
            }
        }
        if self.decoder.is_some() {
            return text + "        return x\n\n" + &self.score();
        }
        let (how, which) = match self.card.multi_label {
            true => ("sigmoid()", "those above 0.5 are the predicted ones"),
            false => ("softmax(1)", "the largest is the predicted one"),
        };
        text + "        return x\n\n    def probabilities(self, *inputs):\n"
            + &format!("        \"\"\"Of each class: {which}.\"\"\"\n        return self(*inputs).{how}\n")
    }
}
