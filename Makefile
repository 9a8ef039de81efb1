# Every target sets up what it needs: a machine with Python 3.11 and make is enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo browser test test-slow test-verdicts test-docs test-integrity test-paper test-all lint docs gallery release-check bench bench-full bench-guard bench-peers bench-scale clean

demo: $(READY)
	$(BIN)/mintmc reproduce tied-means --scale quick --out results/tied-means

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadscope

# What failed is run once more, alone: some tests look at seconds or memory, and others ran beside them. With UNTIL
# (seconds since 1970) no test begins after that; those not reached are skipped, and counted at the end.
test-slow: $(READY) browser
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow $(if $(UNTIL),--until $(UNTIL)) || \
		$(BIN)/python -m pytest -m slow --last-failed --last-failed-no-failures none

# The studies of what is trusted and what is not, and of the law at T = 1 from batches.
test-verdicts: $(READY) browser
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow tests/result tests/control

# Every code block and command of README and docs, and the examples of the gallery.
test-docs: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow tests/test_docs.py tests/examples

# Stores that are damaged, runs that are killed, two writers, crafted files, two thousand mistakes.
test-integrity: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'slow or integrity' tests/store tests/test_fuzz.py

test-paper: $(READY)
	$(BIN)/python -m pytest -m paper

test-all: test test-slow test-integrity test-paper

# Reports are looked at in Chromium. Where it is missing and Debian's may be installed it is; elsewhere those tests are
# skipped, and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium >/dev/null; \
	} || echo "no chromium, and it cannot be installed here: tests of reports in a browser are skipped"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in site/; a warning is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The pictures and printed results of docs/gallery, and the picture of docs/choosing.md.
gallery: $(READY)
	$(BIN)/python tools/draw_choosing.py
	$(BIN)/python examples/gallery.py --out docs/gallery

# Wheel and sdist, installed in clean environments of every Python and with the lowest versions of what they need.
release-check: $(READY)
	$(BIN)/python tools/release_check.py

# Ours, its peers and hand-written C side by side: ten minutes; everything, and the figures: hours.
bench: bench-peers
	$(BIN)/python benchmarks/bench.py

bench-full: bench-peers
	$(BIN)/python benchmarks/bench.py --full

# A few ratios against benchmarks/guard.json, with a margin of 3: under two minutes, and again what seems worse.
bench-guard: $(READY)
	$(BIN)/python benchmarks/bench.py --guard

bench-peers: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[benchmarks]'

bench-scale: $(READY)
	$(BIN)/python benchmarks/scale.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) results build dist site .pytest_cache .ruff_cache .mypy_cache
