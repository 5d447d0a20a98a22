# make quickstart: collect, learn, look.  make grid: the whole experiment.  make lab: JupyterLab.
# make test: what CI runs.  make gallery: a site of executed notebooks and documentation.
PYTHON ?= python3.11
BIN := .venv/bin
OUT := runs/quickstart
PAPERMILL := $(BIN)/papermill --no-progress-bar --log-level WARNING

# A variable as it was typed, for the shell: with its spaces, apostrophes and dollars.
quoted = '$(subst ','\'',$(value $1))'
TO = $(call quoted,OUT)

# make grid SCALE=laptop ONLY=walker/behavioral-0.5 CORES=2; ARGS are Snakemake's own.
SCALE ?= smoke
PROFILE ?= local
GRID = --scale $(SCALE) --profile $(PROFILE) --only $(call quoted,ONLY) $(if $(CORES),--cores $(CORES)) \
	$(if $(GPUS),--gpus $(GPUS)) $(if $(value RUNS_DIR),--runs-dir $(call quoted,RUNS_DIR))

.PHONY: quickstart grid grid-plan tables report test test-slow test-browser types bench gallery lab format clean

# Packages are compiled at their first import, which takes less time than all of them at once.
unexport PYTHONDONTWRITEBYTECODE

# The environment, built once; again where its description changes.
.venv: .venv/.complete ;
.venv/.complete: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[test]'
	touch $@

# One thread for each process: networks are small, and a second thread beside other work costs more.
quickstart: export OMP_NUM_THREADS := 1
quickstart: .venv
	mkdir -p $(TO)
	$(PAPERMILL) notebooks/04_pretrain.ipynb $(TO)/04_pretrain.ipynb -p scale quickstart -y 'seeds: [0, 1, 2]' -r runs_dir $(TO) </dev/null
	$(PAPERMILL) notebooks/05_offline_rl.ipynb $(TO)/05_offline_rl.ipynb -p scale quickstart -p dataset 'behavioral-0.5-observation-s*' \
		-y '{tasks: [walker_stand], seeds: [0, 1]}' -r runs_dir $(TO) </dev/null
	$(BIN)/jupyter nbconvert --log-level WARN --to html $(TO)/*.ipynb
	@echo; $(BIN)/python -m belib.results $(TO)
	@echo; echo "Figures: "$(TO)"/04_pretrain.html and 05_offline_rl.html; data: "$(TO)"/datasets"

# The whole experiment of params/grid.$(SCALE).yaml, continued where it was left: see workflow/.
grid: .venv/.workflow
	$(BIN)/python workflow/grid.py run $(GRID) $(ARGS)

grid-plan: .venv
	$(BIN)/python workflow/grid.py plan $(GRID)

.venv/.workflow: .venv/.complete
	$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[workflow]'
	touch $@

# What is finished below runs/laptop, as the tidy tables of results/laptop; or SCALE=paper.
tables: SCALE := laptop
tables: .venv
	$(BIN)/python -m belib.gather runs/$(SCALE) results/$(SCALE)

# The report results/README.md: notebook 07, executed on tables, without its code; by default those of
# the study. Of other tables: make report SOURCE=results/paper VARIANT=
report: SOURCE := results/study/*
report: VARIANT := observation
report: .venv
	mkdir -p runs/report
	$(PAPERMILL) notebooks/07_report.ipynb runs/report/07_report.ipynb -r source '$(SOURCE)' -r variant '$(VARIANT)' </dev/null
	$(BIN)/jupyter nbconvert --log-level WARN --to markdown --no-input --template-file docs/report.md.j2 \
		--output README --output-dir results runs/report/07_report.ipynb

test: .venv
	rm -rf runs/test
	$(BIN)/pytest -q --doctest-modules belib
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist loadfile tests
	$(BIN)/pytest -q --nbmake notebooks

# With the packages that some of these tests compare with; what is missing is said.
test-slow: .venv
	-$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[test,compare]'
	$(BIN)/pytest -q -rs -m slow tests

# Ours, the peers from PyPI and the physical limits in one table; 2 to 4 minutes on 2 idle cores.
bench: .venv
	-$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[test,compare]'
	$(BIN)/python benchmarks/bench.py

# Types of the package, by pyright, which the extra brings with its own node.
types: .venv
	$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[types]'
	$(BIN)/pyright --pythonpath $(BIN)/python

# Notebook 03 in JupyterLab, in a headless Chromium of the system's, and the gallery if it was made;
# skipped where there is no Chromium.
test-browser: .venv
	-$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[test,browser]'
	$(BIN)/pytest -q -rs -m browser tests/browser

# Executes what has changed since the last time; all of it takes about 5 minutes on 2 cores.
gallery: .venv
	$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[gallery]'
	$(BIN)/python docs/gallery.py

# The folder .jupyter turns JupyterLab's question about news off; a user's own settings come first.
lab: .venv
	JUPYTER_CONFIG_PATH="$$PWD/.jupyter" $(BIN)/jupyter lab notebooks

format: .venv
	$(BIN)/ruff check --fix . && $(BIN)/ruff format . && $(BIN)/nbstripout --keep-id notebooks/*.ipynb

# The environment and the tests' own runs; never a run of yours.
clean:
	rm -rf .venv runs/test .pytest_cache .ruff_cache
