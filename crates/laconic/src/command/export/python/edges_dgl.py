class Edges:
    """Sums and maxima over the edges that end at each node, by DGL's kernels."""

    def __init__(self, source, target, weight, nodes):
        self.graph, self.weight = dgl.graph((source, target), num_nodes=nodes), weight

    def degree(self):
        with self.graph.local_scope():
            self.graph.edata["w"] = self.weight
            self.graph.update_all(fn.copy_e("w", "m"), fn.sum("m", "s"))
            return self.graph.ndata["s"]

    def weighted_sum(self, x, weight=None):
        with self.graph.local_scope():
            self.graph.ndata["x"] = x
            self.graph.edata["w"] = self.weight.unsqueeze(1) if weight is None else weight
            self.graph.update_all(fn.u_mul_e("x", "w", "m"), fn.sum("m", "s"))
            return self.graph.ndata["s"]

    def maximum(self, x):
        with self.graph.local_scope():
            self.graph.ndata["x"] = x
            self.graph.update_all(fn.copy_u("x", "m"), fn.max("m", "s"))
            return self.graph.ndata["s"]

    def attention(self, x, of_source, of_target):
        with self.graph.local_scope():
            self.graph.ndata.update(u=of_source, v=of_target)
            self.graph.apply_edges(fn.u_add_v("u", "v", "e"))
            score = leaky_relu(self.graph.edata["e"], 0.2)
        return self.weighted_sum(x, edge_softmax(self.graph, score).unsqueeze(2))
