class GIN(Module):
    """A perceptron of (1 + eps) times the node itself plus the weighted sum of its neighbours."""

    def __init__(self, inputs, inner, outputs):
        super().__init__()
        self.nn = Sequential(Linear(inputs, inner), ReLU(), Linear(inner, outputs))
        self.eps = Parameter(torch.zeros(1))

    def forward(self, x, edges):
        return self.nn((1 + self.eps) * x + edges.weighted_sum(x))
