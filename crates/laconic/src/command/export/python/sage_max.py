class SAGE(Module):
    """The maximum of transformed neighbours through one linear map, plus the node itself through another."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = Linear(inputs, inputs)
        self.lin_l = Linear(inputs, outputs)
        self.lin_r = Linear(inputs, outputs, bias=False)

    def forward(self, x, edges):
        return self.lin_l(edges.maximum(self.lin(x).relu())) + self.lin_r(x)
