class Scale(Module):
    """What was done to the features: of each column its mean is subtracted, the rest divided by its deviation."""

    def __init__(self, columns):
        super().__init__()
        self.register_buffer("mean", torch.zeros(columns, dtype=torch.float64))
        self.register_buffer("deviation", torch.ones(columns, dtype=torch.float64))

    def forward(self, x):
        return ((x.double() - self.mean) / self.deviation).float()
