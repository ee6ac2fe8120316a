"""Explain flagged rows: group them into events, compare them with labels, and find what is behind each event.

`events.py` joins flagged rows, `incidents.py` events of one cause, `labels.py` compares them with known faults,
`variables.py`, `neighbors.py`, `rule.py` and `tree.py` say why, `groups.py` and `drawing.py` describe what a model has
learnt.
"""

from penstock.explain._incident_sensors import IncidentSensor, condition_in_words
from penstock.explain.drawing import TreeDrawing, tree_layout
from penstock.explain.events import Events, event_days, group_events
from penstock.explain.groups import Group, describe_groups, group_of_row
from penstock.explain.incidents import Incident, find_incidents, incident_table
from penstock.explain.labels import Agreement, Truth, agreement, known_faults
from penstock.explain.neighbors import NormalNeighbors, TreeWalker
from penstock.explain.rule import Condition, NormalSample, Rule, find_rule
from penstock.explain.tree import Leaf, RuleTree, Split, grow_tree
from penstock.explain.variables import rank_variables, split_unit, variables_at

__all__ = [
    "Agreement", "Condition", "Events", "Group", "Incident", "IncidentSensor", "Leaf", "NormalNeighbors",
    "NormalSample", "Rule", "RuleTree", "Split", "TreeDrawing", "TreeWalker", "Truth", "agreement",
    "condition_in_words", "describe_groups", "event_days", "find_incidents", "find_rule", "group_events",
    "group_of_row", "grow_tree", "incident_table", "known_faults", "rank_variables", "split_unit", "tree_layout",
    "variables_at",
]  # fmt: skip
