"""Why an event is one: its variables, its normal neighbours, a rule for it, and pictures of the whole."""

from penstock.explain._separation import NormalSample
from penstock.explain.drawing import TreeDrawing, tree_layout
from penstock.explain.neighbors import NormalNeighbors, TreeWalker, nearest_normal
from penstock.explain.profiles import Group, describe_groups, group_of_row
from penstock.explain.rule import Condition, Rule, find_rule
from penstock.explain.tree import Leaf, RuleTree, Split, grow_tree
from penstock.explain.units import split_unit
from penstock.explain.variables import rank_variables

__all__ = [
    "Condition",
    "Group",
    "Leaf",
    "NormalNeighbors",
    "NormalSample",
    "Rule",
    "RuleTree",
    "Split",
    "TreeDrawing",
    "TreeWalker",
    "describe_groups",
    "find_rule",
    "group_of_row",
    "grow_tree",
    "nearest_normal",
    "rank_variables",
    "split_unit",
    "tree_layout",
]
