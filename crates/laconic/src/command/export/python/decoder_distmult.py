class Decoder(Module):
    """DistMult: the sum over the product of both embeddings and a vector of the relation, of which there is one."""

    def __init__(self, width, layers):
        super().__init__()
        self.relations = Parameter(torch.zeros(1, width))

    def forward(self, source, target):
        return (source * self.relations[0] * target).sum(1)
