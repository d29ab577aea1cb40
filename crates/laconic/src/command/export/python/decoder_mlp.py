class Decoder(Module):
    """A perceptron on the product of both embeddings."""

    def __init__(self, width, layers, relations):
        super().__init__()
        self.lins = ModuleDict({str(i): Linear(width, width if i < layers else 1) for i in range(layers + 1)})
        self.acts = ModuleDict({str(i): torch.nn.PReLU() for i in range(layers)})

    def forward(self, source, target):
        x = source * target
        for i, act in self.acts.items():
            x = act(self.lins[i](x))
        return self.lins[str(len(self.acts))](x).squeeze(1)
