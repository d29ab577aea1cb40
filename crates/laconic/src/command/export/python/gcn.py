class GCN(Module):
    """D^(-1/2) A D^(-1/2) x W + b, with the sums of in-weights as degrees on both sides."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = Linear(inputs, outputs, bias=False)
        self.bias = Parameter(torch.zeros(outputs))

    def forward(self, x, edges):
        degree = edges.degree()
        scale = torch.where(degree > 0, degree.clamp(min=1e-30).pow(-0.5), torch.zeros_like(degree)).unsqueeze(1)
        return edges.weighted_sum(self.lin(x) * scale) * scale + self.bias
