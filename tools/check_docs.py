"""Check the docstrings of public names with numpydoc: each has sections with types for what it takes and returns.

Run by `make lint`.
"""

from __future__ import annotations

import inspect
import sys

from numpydoc.validate import validate

import penstock

# No docstring; a parameter that is not described, or not there; one without a type; no section on what is returned.
CODES = {"GL08", "PR01", "PR02", "PR04", "RT01"}


def public_names() -> list[str]:
    """Return the names in `penstock.__all__`, and their methods, each under the first class that has it."""
    names, seen = [], set()
    for name in penstock.__all__:
        thing = getattr(penstock, name)
        if not callable(thing):
            continue
        names.append(f"penstock.{name}")
        for method, value in inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else ():
            if not method.startswith("_") and value.__module__.startswith("penstock") and value not in seen:
                names.append(f"penstock.{name}.{method}")
                seen.add(value)
    return names


def problems(name: str) -> list[str]:
    """Return what numpydoc has to say about one name."""
    return [f"{code}: {message}" for code, message in validate(name)["errors"] if code in CODES]


def main() -> int:
    """Print what is wrong, and return 1 if anything is."""
    wrong = {name: found for name in public_names() if (found := problems(name))}
    for name, found in sorted(wrong.items()):
        print(f"{name}: {'; '.join(found)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
