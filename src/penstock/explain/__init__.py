"""Explain flagged rows: group them into events, compare them with labels, and find what is behind each event.

`events.py` joins flagged rows, `incidents.py` events of one cause, `labels.py` compares them with known faults,
`situations.py` with what people said of earlier ones, `variables.py` and `rules.py` say why, and `groups.py` describes
what a model has fitted.
"""

from penstock.explain._sensor_conditions import IncidentSensor, condition_in_words
from penstock.explain._spans import Circumstance
from penstock.explain.events import Events, event_days, group_events
from penstock.explain.groups import Group, describe_groups, group_of_row
from penstock.explain.incidents import NEW_STATE, Incident, find_incidents, incident_table
from penstock.explain.labels import Agreement, Truth, agreement, known_faults
from penstock.explain.rules import Condition, Rule, find_rule, grow_tree
from penstock.explain.situations import (
    FAULT,
    MAINTENANCE,
    MOST_LABELS,
    NORMAL,
    NOT_FITTED,
    REASONS,
    SENSOR_DEFECT,
    Label,
    Pattern,
    as_reason,
    excluded_periods,
    find_known,
    joined_patterns,
    joined_periods,
    labels_of,
    likeness,
    new_label_id,
    read_labels,
    strongest,
)
from penstock.explain.variables import rank_variables, split_unit

__all__ = [
    "FAULT", "MAINTENANCE", "MOST_LABELS", "NEW_STATE", "NORMAL", "NOT_FITTED", "REASONS", "SENSOR_DEFECT",
    "Agreement", "Circumstance", "Condition", "Events", "Group", "Incident", "IncidentSensor", "Label",
    "Pattern", "Rule", "Truth",
    "agreement", "as_reason", "condition_in_words", "describe_groups", "event_days", "excluded_periods",
    "find_incidents", "find_known", "find_rule", "group_events", "group_of_row", "grow_tree", "incident_table",
    "joined_patterns", "joined_periods", "known_faults", "labels_of", "likeness", "new_label_id", "rank_variables",
    "read_labels", "split_unit", "strongest",
]  # fmt: skip
