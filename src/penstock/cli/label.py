"""`penstock label`: say what an incident or an alarm was, so that later ones like it are known."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli._console import CommandError, print_text, printable
from penstock.cli._options import plain_errors

if TYPE_CHECKING:
    from penstock.explain import Label

_Model = Annotated[
    Path | None,
    typer.Option("--model", help="A model to keep it in; else the one that made the report.", show_default=False),
]
_Labels = Annotated[
    Path | None, typer.Option("--labels", help="Or a file of labels, which only grows.", show_default=False)
]


def label(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A report (.json) of score or detect, alarms of watch; to list or undo, a model or a file of labels.",
            show_default=False,
        ),
    ],
    which: Annotated[
        str | None, typer.Argument(help="The number of an incident, the id of an alarm or a label.", show_default=False)
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--as", help="normal, fault, sensor defect or maintenance.", show_default=False)
    ] = None,
    model: _Model = None,
    labels: _Labels = None,
    comment: Annotated[str, typer.Option("--comment", help="What it was, in some words.")] = "",
    who: Annotated[str | None, typer.Option("--who", help="Who says so; else the user's name here.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take back the label of this id.")] = False,
) -> int:
    """Say what an incident or an alarm was: penstock label report.json 4 --as normal

    Later ones like it are recognised: by score, watch and serve with the model that keeps the label, or by watch and
    refit with the file of labels. Without a number, the labels of a model or a file are listed.

    Exit code 0: done; 2: there is no such thing, or the label is wrong.
    """
    with plain_errors(context):
        person = who or getpass.getuser()
        kind, content = _read(file)
        if kind in ("model", "labels"):
            if reason is not None:
                raise CommandError(f"{file} holds labels; give a report or alarms to label, or --undo.")
            if which is None:
                return _list(file, content.labels if kind == "model" else content)
            if not undo:
                raise CommandError(f"--undo takes back label {which!r:.80}; without an id, all are listed.")
            return _undo(file, kind, content, which, person)
        if which is None or reason is None:
            what = ", ".join(str(each) for each in list(content)[-10:]) or "none"
            raise CommandError(f"Say which, and what it was (--as normal); {file} has: {what}.")
        if which not in content:
            raise CommandError(
                f"{file}: there is no {which!r:.80}; there are {', '.join(list(content)[-10:]) or 'none'}."
            )
        return _keep(_made(kind, content[which], reason, person, comment), content[which], model, labels)


def _read(file: Path) -> tuple[str, Any]:
    """Return what a file is (report, alarms, labels, model), and its incidents or alarms by number or id, or labels."""
    import json

    from penstock.detection import Model
    from penstock.explain import read_labels
    from penstock.live.alarm_files import read_alarms

    with file.open("rb") as stream:
        head = stream.read(9)
    if head[7:] == b"\0{":  # the length of what follows, as safetensors begin
        return "model", Model.load(file)
    first: Any = None
    try:
        with file.open("rb") as stream:
            first = json.loads(stream.readline(1 << 24))
    except ValueError:
        try:
            document = json.loads(file.read_bytes())
            return "report", {str(each["incident"]): (each, document) for each in document["incidents"]}
        except (LookupError, TypeError, ValueError):
            raise CommandError(
                f"{file} is no report with incidents (.json), no file of alarms or labels, no model."
            ) from None
    if isinstance(first, dict) and {"subject", "pattern"} <= first.keys():
        return "labels", read_labels(file)
    record = read_alarms(file)
    return "alarms", {each.alarm.id: (each.alarm, record.end) for each in record.changes if each.alarm is not None}


def _made(kind: str, found: Any, reason: str, who: str, comment: str) -> Label:
    from dataclasses import replace

    import pandas as pd

    from penstock.detection import label_incident
    from penstock.explain import as_reason
    from penstock.live.alarm_records import label_alarm

    try:
        meant = as_reason(reason)
    except ValueError as error:
        raise CommandError(f"--as {error}.") from None
    if kind == "alarms":
        return label_alarm(found[0], meant, who, found[1], (), comment)
    incident, document = found
    times = [incident["start"], incident["end"]]
    start, end = (pd.Timestamp(each).timestamp() if isinstance(each, str) else float(each) for each in times)
    source = str(document["summary"]["source"])
    made = label_incident(
        f"incident {incident['incident']} of {source}", incident["pattern"], (start, end), meant, who, comment
    )
    return replace(made, asset=Path(source).name.split(".")[0])


def _keep(made: Label, found: Any, model: Path | None, labels: Path | None) -> int:
    """Put a label into a file of labels or a model."""
    from dataclasses import replace

    from penstock.detection import Model
    from penstock.explain import MAINTENANCE, NORMAL, new_label_id, read_labels
    from penstock.live.alarm_files import append_record

    if model is None and labels is None and isinstance(found[1], dict):
        named = found[1]["settings"].get("model")
        model = None if named is None else Path(named)
    if (model is None) == (labels is None):
        raise CommandError("Say where it is kept: in a model (--model), or in a file of labels (--labels).")
    if labels is not None:
        before = read_labels(labels) if labels.exists() else []
        made = replace(made, id=new_label_id(made.subject, before))
        append_record(labels, {"kind": "label", **made.as_dict()})
        place = labels
    else:
        assert model is not None
        known = Model.load(model).with_labels([replace(made, asset="")])
        known.save(model, overwrite=True)
        made, place = known.labels[-1], model
    words = f"{made.id}: {made.subject} is {made.in_words()}; kept in {place}."
    if made.reason != MAINTENANCE:
        listed = "listed as such" if made.reason == NORMAL else "said to be like it"
        words += f" Later ones like it are {listed}." if made.pattern else " No sensor was out of what is usual: "
        words += "" if made.pattern else "later ones cannot be recognised."
    print_text(printable(words))
    return 0


def _list(file: Path, labels: Any) -> int:
    lines = [
        f"{each.id}: {each.subject} is {each.in_words()}, said by {each.who}"
        + ("" if each.holds else f"; taken back by {each.withdrawn_by}")
        for each in labels
    ]
    print_text("\n".join(map(printable, lines or [f"{file} has no labels."])))
    return 0


def _undo(file: Path, kind: str, content: Any, which: str, who: str) -> int:
    """Take back a label: what it did ends; the record in a file of labels stays."""
    import time

    from penstock.live.alarm_files import append_record

    held = content.labels if kind == "model" else [each for each in content if each.holds]
    if all(each.id != which for each in held):
        known = ", ".join(each.id for each in held) or "none"
        raise CommandError(f"{file} has no label {which!r:.80} that could be taken back; there are {known}.")
    if kind == "model":
        content.without_label(which).save(file, overwrite=True)
    else:
        append_record(file, {"kind": "withdrawn", "id": which, "who": who, "at": time.time()})
    print_text(printable(f"{which}: taken back; {file} does not act on it any more."))
    return 0
