def with_loops(source, target, weight, nodes):
    """One edge from each node to itself, of the weight that it had, or 1."""
    others, each = source != target, torch.arange(nodes, device=source.device)
    loops = weight.new_ones(nodes).scatter(0, target[~others], weight[~others])
    return torch.cat([source[others], each]), torch.cat([target[others], each]), torch.cat([weight[others], loops])
