class GAT(Module):
    """Attention of several heads over in-edges; heads are concatenated or averaged."""

    def __init__(self, inputs, width, heads, concat):
        super().__init__()
        self.heads, self.width, self.concat = heads, width, concat
        self.lin = Linear(inputs, heads * width, bias=False)
        self.att_src = Parameter(torch.zeros(1, heads, width))
        self.att_dst = Parameter(torch.zeros(1, heads, width))
        self.bias = Parameter(torch.zeros(heads * width if concat else width))

    def forward(self, x, edges):
        x = self.lin(x).reshape(-1, self.heads, self.width)
        of_source, of_target = (x * self.att_src).sum(2), (x * self.att_dst).sum(2)
        x = edges.attention(x, of_source, of_target)
        return (x.flatten(1) if self.concat else x.mean(1)) + self.bias
