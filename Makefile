# raddle's commands. Each works as the first command in a fresh clone and fetches its own requirements.
#   make demo    generate NOvA-like files, plan, merge, verify, compare with h5py
#   make test    everything that CI runs
#   make test-mpi  only the tests that need MPI, if it is installed; make test-python  only the package in python/ and the documentation;
#                make test-capi  only the IDX C library
#   make test-mpich  test-mpi with MPICH, if it is installed next to another MPI; rebuilds everything
#   make soak    the long versions of the fault tests: every call, 200 kills, 5,000 inputs; 6,400 x 12,931 datasets
#                planned for 1,600 ranks; make judge
#   make judge   compares merges of CASES random sets of files with their inputs by h5py, and merges of MEANING_CASES sets for
#                each property of each convention by its own library
#   make fuzz    each parser of bytes under libFuzzer for FUZZ_TIME_S seconds (nightly compiler; installs cargo-fuzz)
#   make loom    the engine's shared state in every interleaving of up to LOOM_MAX_PREEMPTIONS preemptions
#   make check   formatting, lints, documentation
#   make msrv    check with the oldest supported compiler, which rustup installs
#   make test-portable  the unit tests that need neither HDF5's tools nor Linux
#   make test-qemu TARGET=s390x-unknown-linux-gnu  unit tests for another processor under qemu-user, with Debian's cross-compiler
#                (PACKAGES='raddle-codec raddle-hdf5' chooses crates)
#   make release-check RELEASE=v0.1.0  everything about a release that needs no compilation; without RELEASE, before the tag
#   make test-crates  compile the crates as they are packed for crates.io; publishes nothing
#   make sdist   the source distribution, in dist/
#   make wheel   a wheel for this machine, in dist/; make test-wheel  installs it elsewhere and merges with it
#   make wheels  wheels for Linux with glibc 2.28 or musl 1.2 on x86_64 and aarch64, in dist/, each of at most 12 MB
#                (WHEEL_TARGETS=x86_64-unknown-linux-gnu chooses; each target needs `rustup target add`)
#   make archive the command with manual pages, completions and licences for this machine, in dist/
#   make deb     a Debian package of the command (needs cargo-deb)
#   make site    the documentation, in site/, with reports of the optimised command (RADDLE=COMMAND runs another, and builds none)
#   make build   the optimised command, target/release/raddle
#   make install-capi PREFIX=FOLDER  the IDX C library, optimised, with headers, Fortran module and pkg-config file
#   make python  the package in python/, with the compiled part from the test build
#   make bench   measure against an h5py loop (CONTENDER='command {inputs} {output}' adds another)
#   make bench-python  measure reading with the package against h5py (BENCH_PYTHON='--rounds 7 --out FOLDER')
#   make bench-events  measure events against uproot and h5py (BENCH_EVENTS='--rounds 7 --out FOLDER')
#   make bench-gpu  measure columns decoded on a GPU (BENCH_GPU='--rounds 7 --keep FOLDER --out FOLDER'; needs pip install .[gpu])
#   make bench-layouts  measure every layout of events, for docs/reference/event-layouts.md
#   make bench-idx  measure the loops that fill IDX blocks against memcpy, and writing against raw files and OpenVisus
#                (BENCH_IDX='--rounds 7 --out FOLDER')
#   make bench-papers  measure a paper, as a table (BENCH_PAPERS='pidx-sc12 --scale small --keep FOLDER')
#   make bench-pidx  measure writing boxes by ranks against PnetCDF, MPI-IO and raw files (BENCH_PIDX='--rounds 7 --out FOLDER')
#   make bench-cmip7  measure packing for CMIP7 against cmip7repack (BENCH_CMIP7='--rounds 5 --out FOLDER'; needs hdf5-tools)
#   make bench-conventions  measure merges of netCDF files and of tiles against ncrcat and CDO, and of AnnData against anndata.concat
#                (BENCH_CONVENTIONS='--rounds 7 --only netcdf --out FOLDER'; 20 GB of disk and memory)
#   make bench-transpose  measure layouts across the chunks of the input against h5repack (BENCH_TRANSPOSE='--rounds 5 --out FOLDER')
#   make bench-query  measure cuts on a table against h5py, and Polars and DuckDB on Parquet (BENCH_QUERY='--rounds 9 --out FOLDER')
#   make bench-histograms  measure histograms of all columns against h5py with numpy (BENCH_HISTOGRAMS='--rounds 5 --keep FOLDER --out FOLDER')
#   make bench-skim  measure selections of events against h5py, and what --index adds to a merge (BENCH_SKIM='--rounds 5 --out FOLDER')
#   make bench-prediction  compare the predictions of plan with the sizes, memory and times of merges (BENCH_PREDICTION='--corpora csr texts --rounds 5')

PYTHON ?= python3
RELEASE ?=
RADDLE ?=
PREFIX ?= /usr/local
VENV := .venv
BIN := $(abspath $(VENV)/bin)
# Bundled HDF5 needs cmake >= 3.26; that of the virtual environment comes first on PATH.
export PATH := $(BIN):$(PATH)
# pip would compile every module, which takes a minute.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# uv downloads in parallel, but does not read pip's configuration: where that names another index, pip does the work.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
# A notice about another program, not a warning about these pages.
export NO_MKDOCS_2_WARNING := 1
CARGO ?= cargo
BENCH_WORKLOADS ?= small wide nova
CONTENDER ?=
BENCH_PYTHON ?=
BENCH_EVENTS ?=
BENCH_GPU ?=
BENCH_HISTOGRAMS ?=
BENCH_IDX ?=
BENCH_PAPERS ?=
BENCH_PIDX ?=
BENCH_CONVENTIONS ?=
CMIP7_FOLDER ?= target/cmip7
QUERY_FOLDER ?= target/query
CONVENTIONS_FOLDER ?= target/conventions
BENCH_PREDICTION ?=
PREDICTION_FOLDER ?= target/prediction
CASES ?= 10000
FIRST_CASE ?= 0
MEANING_CASES ?= 100
FUZZ_TARGETS ?= pipeline deflate encode file edited_file library merge digests journal protocol idx_header idx_blocks index zarr_folder tree stream event_file arguments
FUZZ_TIME_S ?= 600
# Target and crates of test-qemu; without PACKAGES, the crates that read and write bytes.
TARGET ?= s390x-unknown-linux-gnu
PACKAGES ?=
WHEEL_TARGETS ?= x86_64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-gnu aarch64-unknown-linux-musl
# Property tests draw the same cases in every CI run; another seed draws other cases.
PROPTEST_RNG_SEED ?= 1
# Processes that share the tests of a suite. Suites that measure time run in one. Ranks wait for each other most of the time, so
# two files of such tests run at once.
PYTEST_JOBS ?= 2
LOOM_MAX_PREEMPTIONS ?= 2
# The oldest supported compiler.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# Tests over MPI need both; without them they are left out.
HAS_MPI := command -v mpicc > /dev/null && command -v mpirun > /dev/null
# Lints include MPI where it is installed. It is looked for when a recipe runs, since setup-tests may install it.
MPI_FEATURE = $(shell $(HAS_MPI) && echo --features raddle-cli/mpi)

.PHONY: demo test test-python test-capi test-mpi test-mpich soak judge fuzz loom check build python install-capi bench bench-python \
	bench-events bench-gpu bench-layouts bench-idx bench-papers bench-pidx bench-cmip7 bench-conventions bench-compressions \
	bench-histograms bench-prediction bench-query bench-skim bench-transpose docs setup setup-tests clean msrv test-package \
	test-pages test-site test-small test-portable test-qemu test-crates fuzz-targets release-check sdist wheel wheels test-wheel archive deb site

demo: build $(VENV)/.demo-ready
	target/release/raddle demo

# Builds for users record their commit. Others do not get the variable: cargo would repeat them whenever it changes.
build wheel wheels: export RADDLE_COMMIT = $(shell git describe --always --dirty --abbrev=40 --exclude '*' 2> /dev/null)

build: setup
	$(CARGO) build --release --locked --package raddle-cli

# The tests of the command build the command with the same dependency features as all other tests. A separate build would
# enable fewer features and rebuild the dependencies.
test: check
	PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED) $(CARGO) test --locked --workspace
	RADDLE=target/debug/raddle $(BIN)/python -m pytest -n $(PYTEST_JOBS) tests/interop
	RADDLE=target/debug/raddle $(BIN)/python -m pytest -n $(PYTEST_JOBS) tests/meaning
	RADDLE=target/debug/raddle $(BIN)/python -m pytest -n $(PYTEST_JOBS) tests/events
	RADDLE=target/debug/raddle $(BIN)/python -m pytest -n $(PYTEST_JOBS) tests/apply
	$(MAKE) test-package
	$(MAKE) --jobs 2 --output-sync test-pages test-small
	$(MAKE) test-mpi

test-python: test-package test-site

test-package: setup-tests python
	$(BIN)/python -m pytest -n $(PYTEST_JOBS) tests/python

# In one process, because its tests share a browser.
test-site: setup-tests python
	$(BIN)/python -m pytest tests/site

test-pages: test-site
	RADDLE=target/debug/raddle $(BIN)/python -m pytest tests/report

# Together they take as long as test-pages, which runs next to them.
test-small: test-capi
	RADDLE=target/debug/raddle $(BIN)/python -m pytest tests/kept
	RADDLE=target/debug/raddle $(BIN)/python -m pytest tests/papers

# The library comes from the build of the package, and its files are compared with the package's. Tests over ranks are
# included, because the library links no MPI and is the same for any.
test-capi: setup-tests python
	$(BIN)/python -m pytest tests/capi

# Not through pip, which would build HDF5 again in another folder. The crate has no feature that only maturin enables, so
# cargo reuses HDF5 and everything else from `cargo test --workspace`: with `--lib --examples` the enabled features are the
# same, including those of development dependencies. The library is copied, not linked, because cargo may replace its file
# while a test has it mapped.
python: setup
	$(CARGO) build --locked --workspace --lib --examples
	cp target/debug/lib_core.so python/raddle/_core.abi3.so.new
	mv python/raddle/_core.abi3.so.new python/raddle/_core.abi3.so

install-capi:
	CARGO=$(CARGO) sh scripts/install-capi.sh $(PREFIX)

# The command with MPI replaces the one without; nothing below it is rebuilt.
test-mpi: setup-tests
	@$(HAS_MPI) || echo "note: mpicc or mpirun is not installed: tests over MPI are left out"
	! ($(HAS_MPI)) || $(CARGO) test --locked --workspace --features raddle-cli/mpi --test ranks
	! ($(HAS_MPI)) || $(CARGO) build --locked --workspace --features raddle-cli/mpi --bin raddle --test ranks
	! ($(HAS_MPI)) || RADDLE=target/debug/raddle $(BIN)/python -m pytest -n $(PYTEST_JOBS) --dist loadfile tests/mpi

# A separate target folder: cargo does not notice that MPICC names another MPI.
test-mpich: setup-tests
	MPICC=mpicc.mpich RADDLE_MPIRUN=mpirun.mpich \
		$(CARGO) test --locked --workspace --features raddle-cli/mpi --target-dir target/mpich --test ranks
	MPICC=mpicc.mpich $(CARGO) build --locked --workspace --features raddle-cli/mpi --target-dir target/mpich --bin raddle
	RADDLE=target/mpich/debug/raddle MPIRUN=mpirun.mpich $(BIN)/python -m pytest tests/mpi
	$(MAKE) python
	MPICC=mpicc.mpich MPIF90=mpif90.mpich MPIRUN=mpirun.mpich $(BIN)/python -m pytest tests/capi -k rank

soak: export RADDLE_SOAK = 1
soak: judge loom
	! ($(HAS_MPI)) || $(CARGO) build --locked --workspace --features raddle-cli/mpi --bin raddle --test ranks
	! ($(HAS_MPI)) || RADDLE=target/debug/raddle $(BIN)/python -m pytest tests/mpi/test_failures.py
	$(CARGO) test --locked --workspace --test faults --test mutated --test merges -- --include-ignored --test-threads 1

judge: setup-tests
	$(CARGO) build --locked --workspace --bin raddle --example cases
	$(BIN)/python tests/interop/judge.py target/debug/raddle target/debug/examples/cases \
		--first $(FIRST_CASE) --count $(CASES)
	RADDLE=target/debug/raddle RADDLE_MEANING_EXAMPLES=$(MEANING_CASES) $(BIN)/python -m pytest tests/meaning

# Findings are in fuzz/artifacts, inputs that reached new code in fuzz/corpus.
fuzz: setup
	command -v cargo-fuzz > /dev/null || $(CARGO) install --locked cargo-fuzz
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target && \
		$(CARGO) run --quiet --locked --package raddle-fuzzing --example seeds -- $$target fuzz/corpus/$$target && \
		(cd fuzz && ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 $(CARGO) +nightly fuzz run --dev $$target -- \
			-max_total_time=$(FUZZ_TIME_S) -timeout=20 -rss_limit_mb=2048) || exit 1; \
	done

# For workflows, which fuzz each target on a machine of its own.
fuzz-targets:
	@echo $(FUZZ_TARGETS)

# A separate target folder, because the flag applies to the whole build. HDF5 is not needed.
loom:
	RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=$(LOOM_MAX_PREEMPTIONS) \
		$(CARGO) test --locked --package raddle-core --lib --target-dir target/loom

check: setup-tests
	scripts/tracked-files.sh
	$(BIN)/ruff check --quiet
	$(BIN)/python scripts/prose.py check
	$(BIN)/python scripts/map.py --check
	$(BIN)/python scripts/circles.py
	$(BIN)/python tests/papers/audit.py --check-names
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace $(MPI_FEATURE) --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --quiet --locked --workspace --no-deps
	$(BIN)/mkdocs build --strict
	$(BIN)/python scripts/links.py site

bench: build setup-tests
	$(CARGO) build --release --locked --package raddle-hdf5 --example scan_with_libhdf5
	$(BIN)/python benches/run.py --workloads $(BENCH_WORKLOADS) $(if $(CONTENDER),--contender '$(CONTENDER)')

# Both packages in one build: separate builds would enable different dependency features and rebuild the dependencies.
bench-python: setup-tests
	$(CARGO) build --release --locked --package raddle-cli --package raddle-python
	$(BIN)/python benches/python.py $(BENCH_PYTHON)

bench-events: setup-tests
	$(CARGO) build --release --locked --package raddle-cli --package raddle-python
	$(BIN)/python benches/events.py $(BENCH_EVENTS)

bench-gpu: setup-tests
	$(CARGO) build --release --locked --package raddle-cli --package raddle-python
	$(BIN)/python benches/gpu.py $(BENCH_GPU)

bench-layouts: setup-tests
	$(CARGO) build --release --locked --package raddle-cli --package raddle-python
	$(BIN)/python benches/layouts.py $(BENCH_EVENTS)

# The table of docs/howto/reproduce-the-papers.md.
bench-papers: build setup-tests
	$(BIN)/python benches/papers.py $(BENCH_PAPERS)

# Inputs are generated in CMIP7_FOLDER.
bench-cmip7: build setup-tests
	$(BIN)/python benches/cmip7.py --folder $(CMIP7_FOLDER) $(BENCH_CMIP7)

# Inputs are generated in QUERY_FOLDER.
bench-query: setup-tests
	$(CARGO) build --release --locked --package raddle-cli --package raddle-python
	$(BIN)/python benches/query.py --folder $(QUERY_FOLDER) $(BENCH_QUERY)

bench-compressions: setup-tests
	$(CARGO) build --release --locked --package raddle-cli --package raddle-python
	$(BIN)/python benches/compressions.py $(BENCH_COMPRESSIONS)

bench-histograms: setup-tests
	$(CARGO) build --release --locked --package raddle-cli --package raddle-python
	$(BIN)/python benches/histograms.py $(BENCH_HISTOGRAMS)

bench-skim: build setup-tests
	$(BIN)/python benches/skim.py $(BENCH_SKIM)

# Inputs are generated in CONVENTIONS_FOLDER.
bench-conventions: build setup-tests
	$(BIN)/python benches/conventions.py --folder $(CONVENTIONS_FOLDER) $(BENCH_CONVENTIONS)

# Compares predictions of `plan` with merges, over generated sets of files in PREDICTION_FOLDER.
bench-prediction: build setup-tests
	$(BIN)/python benches/prediction.py --folder $(PREDICTION_FOLDER) $(BENCH_PREDICTION)

bench-transpose: build setup-tests
	$(BIN)/python benches/transpose.py $(BENCH_TRANSPOSE)

bench-idx: setup-tests
	$(CARGO) bench --locked --package raddle-idx --bench kernels
	$(CARGO) build --release --locked --package raddle-cli --package raddle-python
	$(BIN)/python benches/idx.py $(BENCH_IDX)

bench-pidx: setup-tests
	$(CARGO) build --release --locked --package raddle-cli --package raddle-python
	$(BIN)/python benches/pidx.py $(BENCH_PIDX)

msrv: setup
	rustup toolchain install --profile minimal $(MSRV)
	rustup run $(MSRV) cargo check --locked --workspace --target-dir target/msrv

test-portable: setup
	$(CARGO) test --locked --workspace --lib

test-qemu: setup
	CARGO=$(CARGO) PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED) sh scripts/test-qemu.sh $(TARGET) $(PACKAGES)

release-check: $(VENV)/.release-ready
	RELEASE=$(RELEASE) sh scripts/release-check.sh

test-crates: setup
	$(CARGO) publish --dry-run --locked $$(scripts/publish-order.py | sed 's/^/--package /')

sdist: $(VENV)/.release-ready
	$(BIN)/maturin sdist --out dist

wheel: $(VENV)/.release-ready
	$(BIN)/maturin build --release --out dist

wheels: $(VENV)/.release-ready
	sh scripts/wheels.sh dist $(WHEEL_TARGETS)

test-wheel:
	PYTHON=$(PYTHON) sh scripts/test-wheel.sh dist

archive: build
	sh scripts/archive.sh $$(rustc -vV | sed -n 's/^host: //p') target/release/raddle dist

deb: build
	sh scripts/man-and-completions.sh target/release/raddle target/deb
	$(CARGO) deb --no-build --strip --package raddle-cli --output dist/

site: $(VENV)/.docs-ready $(if $(RADDLE),,build)
	$(BIN)/python scripts/gallery.py $(or $(RADDLE),target/release/raddle) target/gallery
	$(BIN)/mkdocs build --strict
	$(BIN)/python scripts/links.py site

docs: setup-tests
	$(BIN)/mkdocs serve

setup: $(VENV)/.build-ready
setup-tests: $(VENV)/.tests-ready

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Optional: without uv, pip installs everything.
$(VENV)/.uv-ready: requirements/uv.txt | $(VENV)/bin/python
	-$(PIP) --only-binary uv --requirement $<
	touch $@

$(VENV)/.%-ready: requirements/%.txt | $(VENV)/.uv-ready
	$(UV) --requirement $< || $(PIP) --requirement $<
	touch $@

$(VENV)/.tests-ready: requirements/tests.txt requirements/demo.txt requirements/docs.txt scripts/install-system-packages.sh | $(VENV)/.build-ready
	$(UV) --requirement requirements/tests.txt || $(PIP) --requirement requirements/tests.txt
	sh scripts/install-system-packages.sh
	touch $@

clean:
	rm -rf target $(VENV) site
