"""`python -m penstock`: the command, where scripts are not on the path."""

from penstock.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
