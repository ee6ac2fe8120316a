"""`penstock refit`: fit again without what people marked, now or on a schedule; switch only if asked to."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli._console import CommandError, print_text, printable
from penstock.cli._options import chosen_options, plain_errors, with_options
from penstock.live.options import AlarmRules

if TYPE_CHECKING:
    from penstock.live.refit import Refit

_OUT, _FIT = "Output", "Fitting"
_PAUSE = 0.2  # seconds between looks whether the command is to end


@with_options(AlarmRules)
def refit(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="CSV: what to fit to, the labelled time included.", show_default=False),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="As 'penstock fit' wrote it.", show_default=False)
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="What people said of alarms: docs/alarms.md.", show_default=False)
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option("--store", help="Instead of files: that of penstock serve, its readings and labels."),
    ] = None,
    asset: Annotated[str | None, typer.Option("--asset", help="Whose labels; else as the file is called.")] = None,
    hold_out: Annotated[
        float, typer.Option("--hold-out", help="Share of the rows, the last, to compare on.", rich_help_panel=_FIT)
    ] = 0.2,
    fit_unlabelled: Annotated[
        bool,
        typer.Option(
            "--fit-unlabelled", help="Fit also to alarms that no one has labelled: as normal.", rich_help_panel=_FIT
        ),
    ] = False,
    every: Annotated[
        str | None, typer.Option("--every", help="Again after so long, such as 7d, until ended.", rich_help_panel=_FIT)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file for the new model.", rich_help_panel=_OUT)
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace it.", rich_help_panel=_OUT)] = False,
    switch: Annotated[
        bool,
        typer.Option(
            "--switch",
            help="Use the new model: in the place of MODEL, which is kept as MODEL.old, or in the service.",
            rich_help_panel=_OUT,
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=_OUT)] = False,
    **options: Any,
) -> int:
    """Fit again without what people marked, and compare the old model with the new one on rows that are held out.

    Left out are periods marked as fault, sensor defect or maintenance, and alarms that no one has labelled. Nothing is
    switched without --switch. With --every the new model is kept beside the old one, with its date, or as a version of
    the store. Exit code 0: done; 2: a file or an option is wrong.
    """
    from penstock.io import parse_duration

    with plain_errors(context):
        rules = AlarmRules(**chosen_options(AlarmRules, context))
        rules.check()
        if (store is None) != (model is not None and source is not None) or (store is not None and labels is not None):
            raise CommandError("Give FILE and --model, and --labels if there are any; or --store, which has it all.")
        if store is not None and output is not None and every is not None:
            raise CommandError("--output: with --store and --every, new models are versions of the store.")
        pause = None if every is None else parse_duration(every).total_seconds()
        if pause is not None and pause < 1:
            raise CommandError("--every must be at least 1 s.")
    fit = {"rules": rules, "hold_out": hold_out, "fit_unlabelled": fit_unlabelled}

    def once() -> int:
        with plain_errors(context):
            if store is not None:
                _refit_stored(store, asset, output, overwrite, switch, quiet, fit)
            else:
                assert model is not None
                assert source is not None
                place = output
                if every is not None and output is None and not switch:
                    place = model.with_name(f"{model.stem}.{time.strftime('%Y-%m-%d')}{model.suffix}")
                _refit_file(model, source, labels, asset, place, overwrite or every is not None, switch, quiet, fit)
        return 0

    return once() if pause is None else _schedule(once, pause)


def _schedule(once: Callable[[], int], pause: float) -> int:
    """Do something at once and then after each pause, until a signal ends it; what fails is tried again then."""
    from penstock.cli._console import StopSignals

    with StopSignals() as stop:
        while not stop.requested():
            due = time.monotonic() + pause
            try:
                once()
            except CommandError as error:
                typer.echo(f"penstock: {printable(str(error))} Tried again after the pause (--every).", err=True)
            left = pause
            while left > 0 and not stop.requested():
                left = due - time.monotonic()
                _wait(min(_PAUSE, max(0.0, left)))
    return 128 + (stop.number or 0)


def _wait(seconds: float) -> None:
    time.sleep(seconds)


def _refit_file(
    model: Path,
    source: Path,
    labels: Path | None,
    asset: str | None,
    output: Path | None,
    overwrite: bool,
    switch: bool,
    quiet: bool,
    fit: dict[str, Any],
) -> None:
    from penstock._messages import listed
    from penstock._parameters import ParameterError
    from penstock.cli._console import Stages, cleaning_up
    from penstock.detection import Model
    from penstock.explain import read_labels
    from penstock.live.alarm_files import stream_name
    from penstock.live.refit import TableRows
    from penstock.live.refit import refit as fit_again
    from penstock.storage import replace_file

    with cleaning_up(), Stages(quiet=quiet) as stages:
        name = asset or stream_name(source)
        said = [] if labels is None else read_labels(labels)
        if said and not any(label.is_about(name) for label in said):
            labelled = listed(sorted({label.asset for label in said}))
            raise ParameterError("asset", f" must be one that has labels ({labelled}); got {name!r:.100}.")
        found = fit_again(Model.load(model), TableRows(source), said, name, **fit, progress=stages)
        if output is not None:
            found.model.save(output, overwrite=overwrite)
        if switch:
            replace_file(model.with_name(f"{model.name}.old"), [memoryview(model.read_bytes())], private=True)
            found.model.save(model, overwrite=True)
    written = [str(path) for path, is_so in ((output, output is not None), (model, switch)) if is_so]
    last = f"Written: {', '.join(written)}." if written else "Nothing was written: --output or --switch does."
    _say([*_lines(name, found), "", last], quiet)


def _refit_stored(
    path: Path,
    asset: str | None,
    output: Path | None,
    overwrite: bool,
    switch: bool,
    quiet: bool,
    fit: dict[str, Any],
) -> None:
    import tempfile

    from penstock.cli._console import Stages, cleaning_up
    from penstock.cli.model import ask_for, chosen_asset, opened_store
    from penstock.detection import Model
    from penstock.explain import labels_of
    from penstock.live.refit import StoredRows
    from penstock.live.refit import refit as fit_again
    from penstock.live.runtime import add_file

    with cleaning_up(), opened_store(path) as store, tempfile.TemporaryDirectory() as folder:
        name = chosen_asset(store, asset)
        record, file = store.asset(name), Path(folder) / "new.penstock"
        version = store.models(record.id).get(record.version)
        if version is None or not version.source:
            raise CommandError(f"{name} has no model of 'penstock fit': it learns from the rows.")
        file.write_bytes(store.model_file(version.digest))
        old = Model.load(file)
        with Stages(quiet=quiet) as stages:
            rows = StoredRows(store, record, old)
            found = fit_again(old, rows, labels_of(store.labels()), name, **fit, progress=stages)
        found.model.save(file, overwrite=True)
        if output is not None:
            found.model.save(output, overwrite=overwrite)
            _say([*_lines(name, found), "", f"Written: {output}."], quiet)
            return
        note = f"refit: {found.old.per_day:.3g} alarms a day before, {found.new.per_day:.3g} after, on rows held out"
        made = f"refit of version {record.version}"
        new = add_file(store, name, file, made, getpass.getuser(), note)
        how = "" if switch else f" 'penstock model use {new} --store {path} --asset {name}' switches."
        _say([*_lines(name, found), "", f"Kept as version {new}.{how}"], quiet)
        if switch:
            ask_for(store, name, new, getpass.getuser(), other_columns=False)


def _say(lines: list[str], quiet: bool) -> None:
    if not quiet:
        print_text("\n".join(printable(line) for line in lines))


def _lines(name: str, found: Refit) -> list[str]:
    from penstock._messages import counted

    old, new = found.old, found.new
    rows = [
        ("alarms", f"{old.alarms}", f"{new.alarms}"),
        ("known as rare but normal", f"{old.known}", f"{new.known}"),
        ("others, per day", f"{old.per_day:.3g}", f"{new.per_day:.3g}"),
    ]
    since = found.clock.text(found.held_out)
    held = f"the last {old.days:.3g} days{'' if since is None else f' (from {since} on)'}"
    lines = [f"{name}: the new model was fitted to {len(found.model.training_scores):,} rows."]
    lines += [f"  {note}" for note in map(str, found.model.notes) if "not used" in note or "neither" in note][:5]
    if found.unlabelled:
        count, first = counted(len(found.unlabelled), "alarm"), found.unlabelled[0]
        shown = found.clock.text(first.since)
        where = f"the first {first.id}{'' if shown is None else f' at {shown}'}: {first.cause}"
        were = "was" if len(found.unlabelled) == 1 else "were"
        kept = "fitted to as normal (--fit-unlabelled)" if found.fits_unlabelled else "left out of fitting"
        lines.append(f"  {count} without a label {were} {kept}; {where}. Label them, then fit again.")
    lines += ["", f"On {held}, to which the new model was not fitted:", f"{'':<28}{'old':>10}{'new':>10}"]
    lines += [f"{what:<28}{a:>10}{b:>10}" for what, a, b in rows]
    if old.faults:
        counts = [f"{each.found} of {each.faults}" for each in (old, new)]
        lines.append(f"{'labelled faults found':<28}{counts[0]:>10}{counts[1]:>10}  (anywhere: left out of fitting)")
    if found.old_knows is None:
        lines.append("To which rows the old model was fitted is not known: if to these, they favour it.")
    elif found.old_knows:
        lines.append("The old model was fitted to a part of these rows, which favours it.")
    return lines
