class Decoder(Module):
    """DistMult: the sum over the product of both embeddings and a vector of the relation, here by its number."""

    def __init__(self, width, layers, relations):
        super().__init__()
        self.relations = Parameter(torch.zeros(relations, width))

    def forward(self, source, target, edge_type=0):
        return (source * self.relations[edge_type] * target).sum(1)
