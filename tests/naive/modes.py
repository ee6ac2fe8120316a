"""Operating modes as slow loops. Imports nothing of ours."""

from __future__ import annotations


def first_rule(rows, rules):
    """The name of the first rule that holds; a rule is a function that returns True, False or None (not known)."""
    modes = []
    for row in rows:
        mode = "other"
        for name, rule in rules:
            held = rule(row)
            if held is None:
                mode = "unknown"
                break
            if held:
                mode = name
                break
        modes.append(mode)
    return modes


def with_changes(modes, places, span):
    """ "changing" for the last row before a change of the known mode, and for rows less than `span` after the first."""
    changing = set()
    last = None
    for i, mode in enumerate(modes):
        if mode == "unknown":
            continue
        if last is not None and modes[last] != mode:
            changing.add(last)
            changing.update(j for j in range(i, len(modes)) if places[j] < places[i] + span)
        last = i
    return ["changing" if i in changing and mode != "unknown" else mode for i, mode in enumerate(modes)]
