"""`penstock refit`: learn again without what people marked, and switch to the new model only if asked to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli._options import chosen_options, plain_errors, with_options
from penstock.live.options import AlarmRules

_OUT = "Output"


@with_options(AlarmRules)
def refit(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="As 'penstock fit' wrote it.", show_default=False)],
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV: what to learn from, the labelled time included.", show_default=False),
    ],
    labels: Annotated[
        Path, typer.Option("--labels", help="What people said of alarms: docs/alarms.md.", show_default=False)
    ],
    asset: Annotated[str | None, typer.Option("--asset", help="Whose labels; else as the file is called.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file for the new model.", rich_help_panel=_OUT)
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace it.", rich_help_panel=_OUT)] = False,
    switch: Annotated[
        bool,
        typer.Option(
            "--switch",
            help="Put the new model in the place of MODEL; the old one is kept as MODEL.old.",
            rich_help_panel=_OUT,
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=_OUT)] = False,
    **options: Any,
) -> int:
    """Learn again without what people marked, and compare the old model with the new one on the labelled history.

    Periods marked as real defect, sensor defect or maintenance are left out. Nothing is written without --output or
    --switch. Exit code 0: done; 2: a file or an option is wrong.
    """
    from penstock._messages import listed
    from penstock._parameters import ParameterError
    from penstock.cli._console import Stages, cleaning_up, print_text
    from penstock.detection import load_model
    from penstock.live.alarm_files import read_labels, stream_name
    from penstock.live.refit import fit_again, judge_history, labels_for, watch_record
    from penstock.storage import replace_file

    with cleaning_up(), plain_errors(context), Stages(quiet=quiet) as stages:
        rules = AlarmRules(**chosen_options(AlarmRules, context))
        rules.check()
        name = asset or stream_name(source)
        everything = read_labels(labels)
        said = labels_for(everything, name)
        if everything and not said:
            labelled = listed(sorted({label.asset for label in everything}))
            raise ParameterError("asset", f" must be one that has labels ({labelled}); got {name!r:.100}.")
        old = load_model(model)
        stages(f"judging {source} with {model}")
        before = watch_record(old, source, said, rules, name)
        new = fit_again(old, source, said, before, stages)
        stages(f"judging {source} with the new model")
        after = watch_record(new, source, said, rules, name)
        if output is not None:
            new.save(output, overwrite=overwrite)
        if switch:
            replace_file(model.with_name(f"{model.name}.old"), [memoryview(model.read_bytes())])
            new.save(model, overwrite=True)
    if not quiet:
        histories = [judge_history(record, said) for record in (before, after)]
        written = [path for path, is_so in ((output, output is not None), (model, switch)) if is_so]
        print_text("\n".join(_lines(name, histories, new, written)))
    return 0


def _lines(name: str, histories: list[Any], new: Any, written: list[Any]) -> list[str]:
    from penstock.cli._console import printable

    old, now = histories
    excluded = [str(note) for note in new.notes if note.kind == "excluded period"]
    rows = [
        ("alarms", f"{len(old.alarms)}", f"{len(now.alarms)}"),
        ("alarms per day", f"{old.per_day:.3g}", f"{now.per_day:.3g}"),
        ("labelled defects found", *(f"{each.found} of {len(each.defects)}" for each in histories)),
        ("false alarms again", *(f"{each.again} of {len(each.false_alarms)}" for each in histories)),
        ("alarms without a label", f"{old.unlabelled}", f"{now.unlabelled}"),
    ]
    lines = [f"{name}: {old.days:.3g} days; the new model has learnt from {len(new.training_scores):,} rows."]
    lines += [f"  {text}" for text in excluded]
    lines += ["", f"{'':<26}{'old':>10}{'new':>10}", *(f"{what:<26}{a:>10}{b:>10}" for what, a, b in rows)]
    said = "The new model has learnt from these rows, the old one perhaps not: look at new data before you rely on it."
    lines += ["", said]
    places = ", ".join(str(path) for path in written)
    lines += ["", f"Written: {places}" if written else "Nothing was written: --output or --switch does."]
    return [printable(line) for line in lines]
