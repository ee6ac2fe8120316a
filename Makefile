# Every target installs what it needs, and no more, in .venv, from the versions pinned in constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Compiled modules are kept: most tests of commands are mostly imports.
unexport PYTHONDONTWRITEBYTECODE
# The twenty benchmark sets, where a copy lies next to the checkout; tests that need them skip without it.
export PENSTOCK_DATA ?= $(wildcard ../shared/data)

.PHONY: help demo demo-live docs package study test test-all coverage lint bench bench-live bench-plant bench-series \
	bench-scale bench-quality constraints clean

help:
	@echo "make demo      simulate a plant, find its faults, write demo/report.html"
	@echo "make demo-live  play the simulated plant into a live server, and open its page"
	@echo "make study     the paper's study, all of it, and docs/reproduction*.md from it (hours; goes on where it stopped)"
	@echo "make test      the tests, with the JIT and (for the kernels) without"
	@echo "make test-all  the slow ones too"
	@echo "make coverage  the tests, and what they do not reach"
	@echo "make docs      the site, in docs/_build/html, and a manual page; a warning or a broken link is an error"
	@echo "make package   build the wheel, install it into an empty environment, find faults with it"
	@echo "make lint      ruff, mypy, and numpydoc on public names"
	@echo "make bench     every number we promise, ours and the peers', in one run (about an hour, most of it waiting for peers)"
	@echo "make bench-quality  the default detector and nine others on the paper's data sets (twenty minutes)"
	@echo "make bench-plant  all detectors on labelled series, by themselves and fitted to a good period (half an hour)"
	@echo "make bench-series  ours and what people would pick instead, on public series, and docs/series.md (hours; goes on where it stopped)"
	@echo "make bench-live  penstock serve: rows a second, delays, listeners, many assets; noise of alarms (half an hour)"
	@echo "make bench-scale  the fit on a Dask cluster of this machine and the plain fit (half an hour)"

# hatchling comes first and from the constraints, so that the build itself is pinned too. Modules are compiled when they are
# first imported: most of those that are installed never are.
INSTALL = $(PIP) install --quiet --no-compile -c constraints.txt
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Penstock needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) hatchling editables
	$(INSTALL) --no-build-isolation -e .
	touch $@

# What a target needs beyond the package itself: an extra of pyproject.toml.
$(VENV)/.installed-%: $(VENV)/.installed
	$(INSTALL) --no-build-isolation -e '.[$*]'
	touch $@

demo: $(VENV)/.installed
	@$(BIN)/python examples/demo.py

demo-live: $(VENV)/.installed-serve
	@$(BIN)/python examples/demo_live.py

# Results are kept in study/: what is there is not run again.
study: $(VENV)/.installed-study
	$(BIN)/python -m studies.ahmed2021 run --folder study
	test -f study/plant.json || $(BIN)/python -m studies.ahmed2021 plant --folder study
	$(BIN)/python -m studies.ahmed2021 report study --pages docs --overwrite

# As many test processes as cores; some tests wait for other processes, so that `make test WORKERS=3` may be quicker.
WORKERS ?= auto
# Without the JIT the lines inside the kernels are run as plain Python. Both runs are made, even if the first fails.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal

test: $(VENV)/.installed-test
	@failed=0; $(PYTEST) -m "not slow" || failed=1; \
	echo "The kernels without the JIT:"; NUMBA_DISABLE_JIT=1 $(PYTEST) -q -m "kernels and not compiled" \
		$$(grep -rl mark.kernels tests --include='test_*.py') || failed=1; exit $$failed

# The same, and which lines and branches it runs: counting them makes the tests half as slow again.
coverage: $(VENV)/.installed-test $(VENV)/.installed-lint
	rm -f .coverage .coverage.*
	$(MAKE) --no-print-directory test PYTEST="$(BIN)/python -m coverage run -m pytest -n auto"
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

test-all: $(VENV)/.installed-test $(VENV)/.installed-study
	PENSTOCK_EXAMPLES=all $(BIN)/python -m pytest

# The site works from the disk, search included. Links between pages are checked; `-b linkcheck` checks the others.
docs: $(VENV)/.installed-test $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	$(BIN)/python -m sphinx -q -b man docs docs/_build/man

package: $(VENV)/.installed-docs
	$(BIN)/python tools/try_package.py

lint: $(VENV)/.installed-test $(VENV)/.installed-lint
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python tools/check_docs.py

bench: $(VENV)/.installed-test $(VENV)/.installed-bench
	@missed=0; for part in start detect fit stream mst; do $(BIN)/python benchmarks/$$part.py || missed=1; done; exit $$missed

bench-plant: $(VENV)/.installed-test
	$(BIN)/python benchmarks/plant.py

bench-series: $(VENV)/.installed-test
	$(BIN)/python benchmarks/series.py

bench-live: $(VENV)/.installed-test
	$(BIN)/python benchmarks/live.py

bench-scale: $(VENV)/.installed-test
	$(BIN)/python benchmarks/scale.py

bench-quality: $(VENV)/.installed-test $(VENV)/.installed-bench
	$(BIN)/python benchmarks/quality.py --folder quality

# Resolve anew what is pinned: run it, look at the difference, run the tests, commit.
constraints:
	rm -rf $(VENV)-fresh
	$(PYTHON) -m venv $(VENV)-fresh
	$(VENV)-fresh/bin/python -m pip install --quiet hatchling editables
	$(VENV)-fresh/bin/python -m pip install --quiet --no-build-isolation -e '.[test,lint,study,bench,docs]'
	$(VENV)-fresh/bin/python -m pip freeze --exclude-editable --exclude penstock | sed 's/+.*//' > constraints.txt
	rm -rf $(VENV)-fresh

clean:
	rm -rf $(VENV) dist docs/_build docs/generated .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src studies tests -name __pycache__ -type d -prune -exec rm -rf {} +
