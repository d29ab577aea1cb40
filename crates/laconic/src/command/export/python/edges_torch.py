class Edges:
    """Sums and maxima over the edges that end at each node, in plain torch."""

    def __init__(self, source, target, weight, nodes):
        self.source, self.target, self.weight, self.nodes = source, target, weight, nodes

    def index(self, values):
        return self.target.reshape([-1] + [1] * (values.dim() - 1)).expand_as(values)

    def sum_of_edges(self, values):
        return values.new_zeros([self.nodes, *values.shape[1:]]).scatter_add(0, self.index(values), values)

    def max_of_edges(self, values):
        least = values.new_full([self.nodes, *values.shape[1:]], -float("inf"))
        return least.scatter_reduce(0, self.index(values), values, "amax")

    def degree(self):
        return self.sum_of_edges(self.weight)

    def weighted_sum(self, x):
        return self.sum_of_edges(x[self.source] * self.weight.unsqueeze(1))

    def maximum(self, x):
        most = self.max_of_edges(x[self.source])
        return torch.where(most == -float("inf"), torch.zeros_like(most), most)

    def attention(self, x, of_source, of_target):
        score = leaky_relu(of_source[self.source] + of_target[self.target], 0.2)
        score = (score - self.max_of_edges(score)[self.target]).exp()
        share = score / self.sum_of_edges(score)[self.target]
        return self.sum_of_edges(x[self.source] * share.unsqueeze(2))
