"""Distances between rows: spanning trees, nearest neighbours, and the similarities made from them."""

from penstock.graph.edges import edge_lengths, nearest_by_tree, shortest_edges, tree_among
from penstock.graph.mst import minimum_spanning_tree, spanning_tree_of_comparable, spanning_tree_of_edges
from penstock.graph.rows import different_rows, first_copies
from penstock.graph.search import RowSearch, nearest_neighbors
from penstock.graph.similarities import (
    binary_knn_graph,
    gaussian_graph,
    neighbor_mean,
    normalize,
    self_tuning_graph,
    similarity,
)

__all__ = [
    "RowSearch", "binary_knn_graph",
    "different_rows", "edge_lengths", "first_copies", "gaussian_graph", "minimum_spanning_tree", "nearest_by_tree",
    "nearest_neighbors", "neighbor_mean", "normalize", "self_tuning_graph", "shortest_edges",
    "similarity", "spanning_tree_of_comparable", "spanning_tree_of_edges", "tree_among",
]  # fmt: skip
