# Every target sets up what it needs: a fresh machine wants only make and Python 3.10 or newer with its venv module.
#   make demo    train LeNet-5 on the bundled digits          make bench   compare with PyTorch and others, interleaved
#   make test    lint, types, layers, tests, doctests         make docs    API pages under site/
#   make examples   run the programs of examples/ in both modes, minutes; EXAMPLES='gpt vae' runs some
#   make fuzz MINUTES=10    absurd arguments and damaged files, in child processes; DRIVERS='functions' runs some
#   make test-bounds   the tests with every access of compiled code checked   make random-graphs COUNT=2500   against the reference
#   make stubs   written anew after a change of tensors' methods or operations
#   make soak MINUTES=10    whether anything grows over time   make faults KILLS=1000   interrupts and kills at random moments
#   make ranks RANKS=20    ranks that are killed, raise, exit or stand still, in each place; all have to end within 15 s
#   make device   emulated microcontrollers and processors (Cortex-M, AArch64, ARMv7, RISC-V): installs them (apt, as root), tests libraries on them and counts instructions
#   make PYTHON=/path/to/python3 ...   use a certain interpreter

SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.15 python3.14 python3.13 python3.12 python3.11 python3.10 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
JOBS ?= 2

# What the benchmark compares with; pip's own settings decide which build of it is installed.
TORCH ?= torch==2.13.0
PEER_VENV := .venv-torch

.PHONY: help demo examples test lint types layers stubs pytest device test-bounds random-graphs fuzz soak faults ranks bench bench-compare bench-store docs clean

help:
	@sed -n '2,12p' Makefile | sed 's/^# *//'

demo: $(VENV)/.installed-plot
	@$(BIN)/mycel train lenet5

# Scores and seconds of every example in both modes; fails where a score is missed.
examples: $(VENV)/.installed-plot
	@$(BIN)/python examples/run_all.py $(EXAMPLES)

test: lint types layers pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/subjects.py

types: $(VENV)/.installed-dev
	$(BIN)/mypy

layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports

# What editors and type checkers read of methods and operations that are made at run time.
stubs: $(VENV)/.installed-dev
	$(BIN)/python tools/stubs.py

# Hundreds of programs are started: each would compile the package anew if nothing compiled were kept.
pytest: $(VENV)/.installed-dev
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q -n $(JOBS) -W error

# Without the tools the tests of boards and emulators are skipped. Instructions are counted on boards.
EMULATORS := qemu-aarch64 qemu-arm qemu-riscv32 qemu-riscv64 aarch64-linux-gnu-gcc arm-linux-gnueabihf-gcc riscv64-linux-gnu-gcc
CROSS := gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross
device: $(VENV)/.installed-dev
	@command -v qemu-system-arm >/dev/null && command -v arm-none-eabi-gcc >/dev/null \
		|| apt-get install --yes --no-install-recommends qemu-system-arm gcc-arm-none-eabi
	@for tool in $(EMULATORS); do command -v $$tool >/dev/null || missing=1; done; test -z "$$missing" \
		|| apt-get install --yes --no-install-recommends qemu-user $(CROSS)
	@$(BIN)/python -c "from mycel.deploy import boards, emulated; print('boards:', *boards.BOARDS); print('emulators:', *emulated.MACHINES)"
	$(BIN)/python -m pytest -q tests/deploy/test_boards.py tests/deploy/test_emulated.py -W error
	$(BIN)/python benchmarks/devices.py
	$(BIN)/python benchmarks/tiny.py

# Cases drawn anew for every driver in tests/fuzz/drivers; a finding is printed with the command that replays it.
MINUTES ?= 10
fuzz: $(VENV)/.installed-dev
	nice -n 10 $(BIN)/python -m tests.fuzz $(DRIVERS) --minutes $(MINUTES)

# Training, compiling, reading, saving and forking over and over; fails where memory, descriptors, threads or the cache grow.
soak: $(VENV)/.installed-dev
	nice -n 10 $(BIN)/python -m tests.soak --minutes $(MINUTES)
	nice -n 10 $(BIN)/python -m tests.soak.data --minutes $(MINUTES)

# So many interrupts and so many kills of runs that go on from what they saved; each has to end as if nobody had disturbed it.
KILLS ?= 1000
faults: $(VENV)/.installed-dev
	nice -n 10 $(BIN)/python -m tests.faults $(KILLS)
	nice -n 10 $(BIN)/python -m tests.faults.interrupts $(KILLS)

# One of four ranks fails, RANKS times in each way and place; all have to end within 15 seconds, and nobody may be left.
RANKS ?= 20
ranks: $(VENV)/.installed-dev
	nice -n 10 $(BIN)/python -m tests.faults.ranks $(RANKS)

# The same tests with every access of compiled code checked against its buffer, and freed memory poisoned.
test-bounds: $(VENV)/.installed-dev
	MYCEL_CHECK=bounds $(BIN)/python -m pytest -q -n $(JOBS) -W error

# Random graphs against the reference, COUNT of them from FIRST on for each level of the processor, first as they are and then with every access checked.
FIRST ?= 0
COUNT ?= 2500
random-graphs: $(VENV)/.installed-dev
	$(BIN)/python -m tests.engines.random_graphs $(FIRST) $(COUNT) all
	MYCEL_CHECK=bounds $(BIN)/python -m tests.engines.random_graphs $(FIRST) $(COUNT) all

# Peers in environments of their own; further ones by MYCEL_BENCH_JAX and MYCEL_BENCH_MINDSPORE, paths of interpreters. BENCH=options of benchmarks/run.py.
bench: $(VENV)/.installed-plot $(PEER_VENV)/.installed
	$(BIN)/python benchmarks/run.py --torch $(PEER_VENV)/bin/python $(BENCH)

bench-compare: $(VENV)/.installed-plot $(PEER_VENV)/.installed
	$(BIN)/python benchmarks/run.py --torch $(PEER_VENV)/bin/python --compare $(BENCH)

bench-store: $(VENV)/.installed-plot $(PEER_VENV)/.installed
	$(BIN)/python benchmarks/run.py --torch $(PEER_VENV)/bin/python --store $(BENCH)

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build --builder html --fail-on-warning --keep-going --quiet --jobs $(JOBS) --doctree-dir build/doctrees docs site
	@echo "documentation: site/index.html"

clean:
	rm -rf $(VENV) $(PEER_VENV) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A virtual environment that was moved or whose interpreter is gone is made anew.
define make_venv
	@test -n "$(PYTHON)" || { echo "mycel needs Python 3.10 or newer; none was found (make PYTHON=/path/to/python3 ...)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "mycel needs Python 3.10 or newer; $(PYTHON) is older or does not run" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo "$(PYTHON) has no venv module: install it (Debian, Ubuntu: apt install python3-venv) or name another interpreter: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@echo "setting up $(1) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(1)
endef

$(BIN)/.python:
	$(call make_venv,$(VENV))
	@touch $@

$(VENV)/.installed-plot: pyproject.toml $(BIN)/.python
	@echo "installing mycel"
	@$(PIP) --editable '.[plot]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(BIN)/.python
	@echo "installing mycel and its development tools"
	@$(PIP) --editable '.[dev,plot,image]'
	@touch $@

$(VENV)/.installed-docs: pyproject.toml $(BIN)/.python
	@echo "installing mycel and Sphinx"
	@$(PIP) --editable '.[docs]'
	@touch $@

$(PEER_VENV)/.installed:
	$(call make_venv,$(PEER_VENV))
	@echo "installing $(TORCH) for the comparison"
	@$(PEER_VENV)/bin/python -m pip --disable-pip-version-check install --quiet '$(TORCH)' numpy
	@touch $@
