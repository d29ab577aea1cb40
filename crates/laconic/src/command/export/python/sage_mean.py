class SAGE(Module):
    """The weighted mean of neighbours through one linear map, plus the node itself through another."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin_l = Linear(inputs, outputs)
        self.lin_r = Linear(inputs, outputs, bias=False)

    def forward(self, x, edges):
        degree = edges.degree().unsqueeze(1)
        share = torch.where(degree > 0, 1 / degree.clamp(min=1e-30), torch.zeros_like(degree))
        return self.lin_l(edges.weighted_sum(x) * share) + self.lin_r(x)
