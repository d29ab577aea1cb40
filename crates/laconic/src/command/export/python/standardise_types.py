class Scale(Module):
    """What was done to the features: of each column of a node's own type its mean is subtracted, the rest divided by its
    deviation. The columns of other types stay 0."""

    def __init__(self, columns):
        super().__init__()
        self.register_buffer("mean", torch.zeros(columns, dtype=torch.float64))
        self.register_buffer("deviation", torch.ones(columns, dtype=torch.float64))
        # For each column the one that is 1 for the nodes of its type.
        self.register_buffer("flag", torch.zeros(columns, dtype=torch.float64))

    def forward(self, x):
        x = x.double()
        return ((x - self.mean) / self.deviation * x[:, self.flag.long()]).float()
