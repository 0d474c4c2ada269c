# The two commands of this project are `make demo` and `make test`; both build .venv first.
VENV := .venv
BIN := $(VENV)/bin
# The first interpreter on the path that is new enough (a version manager's stand-in may exist and refuse).
PYTHON ?= $(shell for p in python3.12 python3.13 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && { echo $$p; break; }; done)

.PHONY: demo test bench docs clean
.DELETE_ON_ERROR:

$(VENV)/installed: pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] || { echo "predcube needs Python 3.12 or newer on the path; set PYTHON=/path/to/python3.12" >&2; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/predcube run examples/quickstart.toml --store demo/quickstart.zarr
	$(BIN)/predcube query demo/quickstart.zarr --smallest n
	$(BIN)/predcube report demo/quickstart.zarr -o report.html

test: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

bench: $(VENV)/installed
	for program in benchmarks/[a-z]*.py; do echo "== $$program"; $(BIN)/python "$$program" || exit 1; done

docs: $(VENV)/installed
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/examples.py
	$(BIN)/python docs/findings.py
	$(BIN)/python docs/predictability.py

clean:
	rm -rf $(VENV) demo report.html
