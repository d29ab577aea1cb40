//! The Python file beside exported weights: the model as PyTorch Geometric builds it.

use laconic_nn::network::{After, BOTTLENECKS, HEADS, MLP, NORMS, Unit};
use laconic_train::Plan;
use laconic_train::schedule::HandOn;

/// What the parts of the text share.
struct Loader<'a> {
    plan: &'a Plan,
    /// Whether the model adds self-loops that the layer itself does not add.
    adds_loops: bool,
}

/// A Python file that builds the model and loads its weights.
pub fn loader(plan: &Plan) -> String {
    let adds_loops = plan.self_loops && !plan.layer.self_loops && plan.layer.is_convolution();
    let loader = Loader { plan, adds_loops };
    loader.imports() + &loader.constructor() + &loader.forward() + &loader.rest()
}

/// The layers of the finished model: all but the classifiers of stages that hand on what these read.
pub fn kept(plan: &Plan) -> impl Iterator<Item = &Unit> {
    plan.stages.iter().flat_map(|stage| {
        let units = stage.network.units();
        &units[..units.len() - usize::from(stage.hand_on == HandOn::Hidden)]
    })
}

impl Loader<'_> {
    fn units(&self) -> impl Iterator<Item = &Unit> {
        kept(self.plan)
    }

    /// The layer as Python constructs it.
    fn call(&self, unit: &Unit) -> String {
        unit.layer.pyg_constructor(self.plan.self_loops)
    }

    fn imports(&self) -> String {
        let mut text = String::from("\"\"\"Builds the model and loads its weights; made by `laconic export`.\"\"\"\n");
        text += "import torch\nfrom pathlib import Path\nfrom safetensors.torch import load_file\n";
        text += "from torch.nn import LayerNorm, Linear, ModuleDict, ReLU, Sequential\n";
        if self.plan.layer.is_convolution() {
            let call = self.units().find(|unit| unit.place().0 == self.plan.layer.prefix).map(|unit| self.call(unit));
            let call = call.unwrap_or_default();
            text += &format!("from torch_geometric.nn import {}\n", call.split('(').next().unwrap_or_default());
        }
        if self.adds_loops {
            text += "from torch_geometric.utils import add_self_loops, remove_self_loops\n";
        }
        text
    }

    /// The class up to the end of `__init__`: a dictionary for each list that has a layer in it.
    fn constructor(&self) -> String {
        let mut text = String::from("\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n");
        text += "        super().__init__()\n";
        for list in [self.plan.layer.prefix, NORMS, BOTTLENECKS, HEADS, MLP] {
            let entries: String = self.units().filter_map(|unit| self.entry(list, unit)).collect();
            if !entries.is_empty() {
                text += &format!("        self.{list} = ModuleDict({{\n{entries}        }})\n");
            }
        }
        text
    }

    /// What a layer adds to a list.
    fn entry(&self, list: &str, unit: &Unit) -> Option<String> {
        let (inputs, outputs) = (unit.layer.inputs(), unit.layer.outputs());
        let (own, index) = unit.place();
        let (index, value) = match &unit.after {
            After::NormRelu(norm) if list == NORMS => {
                (norm.rsplit('.').next().unwrap_or_default(), format!("LayerNorm({outputs})"))
            }
            _ if list != own => return None,
            _ if [BOTTLENECKS, HEADS, MLP].contains(&list) => (index, format!("Linear({inputs}, {outputs})")),
            _ => (index, self.call(unit)),
        };
        Some(format!("            \"{index}\": {value},\n"))
    }

    fn forward(&self) -> String {
        let mut text = String::from("\n    def forward(self, x, edge_index):\n");
        if self.adds_loops {
            text += "        edge_index = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=x.size(0))[0]\n";
        }
        for unit in self.units() {
            let (list, index) = unit.place();
            let convolves = list == self.plan.layer.prefix && self.plan.layer.is_convolution();
            let arguments = if convolves { "x, edge_index" } else { "x" };
            text += &format!("        x = self.{list}[\"{index}\"]({arguments})\n");
            match &unit.after {
                After::NormRelu(norm) => {
                    let index = norm.rsplit('.').next().unwrap_or_default();
                    text += &format!("        x = self.{NORMS}[\"{index}\"](x).relu()\n");
                }
                After::Relu => text += "        x = x.relu()\n",
                After::Nothing => {}
            }
        }
        text + "        return x\n"
    }

    fn rest(&self) -> String {
        let data = &self.plan.config.data;
        let mut text = String::from("\n\ndef load(path=Path(__file__).with_name(\"model.safetensors\")):\n");
        text += "    model = Model()\n    model.load_state_dict(load_file(path))\n    return model.eval()\n";
        text += "\n\n# logits = load()(x, edge_index), with features and edges prepared as the run did:\n";
        let features = format!("{:?}", data.features).to_lowercase();
        let reversed = data.symmetrise;
        text + &format!("# features: {features}; reverse edges added: {reversed}; self-loops in the data removed.\n")
    }
}
