class Scale(Module):
    """What was done to the features: each row is divided by its sum, where that is positive."""

    def forward(self, x):
        sums = x.double().sum(1, keepdim=True)
        return (x / torch.where(sums > 0, sums, torch.ones_like(sums))).float()
