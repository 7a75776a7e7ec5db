# All tasks. `make help` lists them.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-builtin-rules
.DELETE_ON_ERROR:

GO       ?= go
# The program is the same whether or not the machine has a C compiler.
export CGO_ENABLED := 0
# Compiled packages do not depend on the checkout's folder, so packages that were compiled once are
# reused for programs, checks and tests in every checkout.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))
# The limit ends tests that hang, and is far longer than slow machines need. The checks run go vet.
TEST     := $(GO) test -vet=off -timeout=2h
WASM     := GOOS=js GOARCH=wasm
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
ARGS     ?=
FUZZTIME ?= 60s
BENCH    ?= .
NEED     := tools/setup/need.sh
# Releases are compiled with exactly the Go version that go.mod names, whichever one is installed.
PINNED   := GOTOOLCHAIN=$(shell sed -n 's/^toolchain //p' go.mod)

# The compilers and tools with which the capture tests compile and run programs. Tests whose tools
# cannot be installed are skipped, and say so.
CAPTURE_NEEDS := \
	'gcc:gcc,libc6-dev:compiles programs that are traced without changes' \
	'?clang-14:clang-14,libc6-dev,libstdc++-12-dev:compiles programs that are traced' \
	'?clang-19:clang-19,libc6-dev,libstdc++-12-dev:compiles programs that are traced' \
	'?opt-14:llvm-14:counts references in another way, for comparison' \
	'?opt-19:llvm-19:counts references in another way, for comparison' \
	'?/usr/lib/llvm-19/lib/libomp.so:libomp-19-dev:runs OpenMP programs that are traced' \
	'?flang-new-19:flang-19:compiles Fortran programs that are traced' \
	'?qemu-x86_64:qemu-user:traces programs without recompiling them' \
	'?valgrind:valgrind:traces programs if QEMU is missing'

# Tools that run the command as it is built for other systems, and check its packages.
SYSTEM_NEEDS := \
	'?lintian:lintian:checks the Debian package' \
	'?wine:wine,wine64:runs the command for Windows' \
	'?x86_64-w64-mingw32-ld:binutils-mingw-w64-x86-64:makes a library that older versions of wine lack' \
	'?qemu-aarch64:qemu-user:runs the command for arm64'

# Browsers other than Chromium, in which make soak uses the page. They are not part of make test: their
# test takes one more minute, and these packages take about 400 MB.
BROWSER_NEEDS := \
	'?firefox-esr:firefox-esr:runs the page' \
	'?WebKitWebDriver:webkit2gtk-driver:runs the page in WebKit' \
	'?Xvfb:xvfb:is the display of WebKit'

# Tools that model processor cores, for comparison.
PIPELINE_NEEDS := \
	'llvm-mca-19:llvm-19:has tables of processors, and computes with them' \
	'clang-19:clang-19,libc6-dev:compiles the loops'
PROCESSOR ?= sapphirerapids

# Tools that compile real programs.
REAL_NEEDS := \
	'clang-19:clang-19,libc6-dev,libstdc++-12-dev:compiles the programs' \
	'?flang-new-19:flang-19:compiles LAPACK' \
	'?/usr/lib/llvm-19/lib/libomp.so:libomp-19-dev:runs the OpenMP program' \
	'?rustc:rustc:compiles the Rust program'

# Tools whose results are compared with predictions for many cores.
MULTICORE_NEEDS := \
	'clang-19:clang-19,libc6-dev:compiles the OpenMP programs' \
	'/usr/lib/llvm-19/lib/libomp.so:libomp-19-dev:runs them' \
	'valgrind:valgrind:counts their misses with Cachegrind'

# Packages that run in the browser, and the sources of the page.
WASM_PACKAGES := ./core/... ./workers/... ./wasm/... ./ui/...
# Packages that start goroutines or that several goroutines use, apart from code for the browser only,
# where goroutines share one thread. A test in tools/arch checks the list.
CONCURRENT := ./core/parallel ./core/analysis/... ./core/answers/loopcount ./core/costmodel ./core/diagnose ./core/loops/change \
	./core/profile/memstore/... ./core/trace/sgt ./tools/capture/record ./tools/stackglass/internal/command \
	./tools/stackglass/internal/pass ./tools/wasmtest ./workers/...
WASM_TESTS    := ./wasm/... ./workers/... ./core/stack
SITE_SOURCES  := go.mod go.sum $(shell find core workers wasm ui site tools/sitebuild tools/internal/wasmcode -type f \
	-not -path 'site/node_modules/*' -not -path 'site/dist/*' -not -path 'workers/edge/*' -not -name screenshot.png -not -path '*/testdata/*' -not -name '*_test.go' 2>/dev/null)

.PHONY: FORCE help setup run build site zip single release edge wasm test check vulnerabilities race format vet staticcheck generated unit wasmtest e2e e2e-first e2e-second e2e-needs \
	pipelines runtimes capture-real multicore speed processors probes lint generate fuzz soak bench bench-wasm demos shot golden beam beamtest tests clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- use it

run: build ## build the page and the command, serve the page, print its address (ARGS=--no-browser)
	bin/stackglass serve $(ARGS)

build: site ## bin/stackglass: the command, with the page inside
	@echo "compiling the command; the first time takes about a minute"
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/stackglass ./tools/stackglass

site: build/site.stamp ## site/dist: the page, ready for any static host

single: build/stackglass.html ## the page as one HTML file, which runs from the disk: build/stackglass.html

build/stackglass.html: build/site.stamp
	$(GO) run ./tools/sitebuild -single $@

zip: build/stackglass.zip ## the page for use without a network, to unzip: build/stackglass.zip

build/stackglass.zip: build/site.stamp build/version site/bundle/README.txt
	$(GO) run ./tools/sitebuild -zip $@ -version $(VERSION)

release: ## the files of a release, which nobody publishes from here: make release VERSION=v1.2.3
	@# Make does not notice that a source file was deleted, so a release builds the page again.
	rm -f build/site.stamp
	$(PINNED) $(MAKE) --no-print-directory zip
	$(PINNED) $(GO) run ./tools/release -version $(VERSION)

edge: build/edge/app.wasm build/site.stamp ## build/edge: the Cloudflare worker in Go, which workers/edge/wrangler.jsonc deploys

build/edge/app.wasm: build/go.version go.mod go.sum $(wildcard workers/edge/*.go workers/edge/program/*.go workers/web/*.go workers/*.go site/policy/*.go)
	@echo "compiling the Cloudflare worker; the first time takes about a minute"
	@# It empties its folder first.
	$(GO) tool workers-assets-gen -mode=go -o build/edge
	$(WASM) $(GO) build -trimpath -ldflags '-s -w' -o $@ ./workers/edge/program

# The tools that deploy this worker, and run it in tests in the same way as Cloudflare: 190 MB,
# which nothing else needs. They run in Node.
build/wrangler.stamp: site/package-lock.json
	@command -v node >/dev/null || { echo "Left out: the Cloudflare worker in Cloudflare's runtime; there is no node (20.3 or later)"; exit 0; }; \
	echo "fetching wrangler, which runs the Cloudflare worker in the tests"; \
	$(GO) run ./tools/npmfetch wrangler 2>&1 | tail -1; \
	mkdir -p build && touch $@

wasm: ## compile only the code that runs in the browser
	$(WASM) $(GO) build $(WASM_PACKAGES)

setup: build/npm.stamp ## install the tools for building and testing
	@$(NEED) 'chromium:chromium,ca-certificates:the tests of the browser side run in it'

build/npm.stamp: site/package.json site/package-lock.json
	@# A bare Debian trusts no server, and every download asks.
	@[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -n "$${SSL_CERT_FILE:-$${SSL_CERT_DIR:-}}" ] || ! command -v apt-get >/dev/null || \
		$(NEED) 'update-ca-certificates:ca-certificates:downloads need certificates to trust'
	@echo "fetching the npm packages of the page and its tests; compiling what fetches them takes half a minute the first time"
	$(GO) run ./tools/npmfetch uplot @dagrejs/dagre axe-core
	@mkdir -p build && touch $@

build/site.stamp: build/npm.stamp build/go.version $(SITE_SOURCES)
	@echo "making the page: compiling it for the browser, then compressing; the first time takes a minute or two"
	$(GO) run ./tools/sitebuild
	@mkdir -p build && touch $@

# Changes when another version of Go is used. WebAssembly files must match its wasm_exec.js.
build/go.version: FORCE
	@mkdir -p build
	@version=$$($(GO) env GOVERSION); [ "$$version" = "$$(cat $@ 2>/dev/null)" ] || echo "$$version" >$@

# Changes when VERSION changes, which the archive of the page names.
build/version: FORCE
	@mkdir -p build
	@[ "$(VERSION)" = "$$(cat $@ 2>/dev/null)" ] || echo "$(VERSION)" >$@

# ---- check it

test: setup format generated ## every check and every test, as in CI
	@echo "running checks and tests, three kinds at a time; the output of each is printed when it ends"
	@$(MAKE) --no-print-directory -j3 -Otarget tests FIRST=build
	@echo "make test: formatting, vet, staticcheck, generated files, native, browser and end-to-end tests passed"

# The longest tests run first. The end-to-end tests run as two halves, each with its own browser,
# because they spend much of their time waiting. Tests that do not need the page run while the page
# is built.
tests: e2e-first e2e-second unit wasmtest beamtest vet staticcheck

unit vet staticcheck: | $(FIRST)

# The database of vulnerabilities is https://vuln.go.dev, unless GOVULNDB names another one.
VULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
vulnerabilities: ## search the released command and page for calls of code with known vulnerabilities
	GOBIN=$(CURDIR)/bin $(PINNED) $(GO) install $(VULNCHECK)
	$(PINNED) bin/govulncheck $(if $(GOVULNDB),-db $(GOVULNDB)) ./tools/stackglass
	$(PINNED) $(WASM) bin/govulncheck $(if $(GOVULNDB),-db $(GOVULNDB)) ./wasm/app ./wasm/unpack/program

race: ## the tests of packages with goroutines, with the race detector, which needs a C compiler
	CGO_ENABLED=1 $(TEST) -race -short $(CONCURRENT)
	cd tools/beam && CGO_ENABLED=1 $(TEST) -race -short ./...

check: format vet staticcheck generated ## all checks that are not tests

lint: format vet staticcheck ## formatting, go vet (native and wasm), staticcheck

format:
	@bad=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go' | while read -r f; do [ ! -e "$$f" ] || echo "$$f"; done)); \
	if [ -n "$$bad" ]; then echo "not formatted, run gofmt -w on:" $$bad >&2; exit 1; fi
	@echo "gofmt: all files are formatted"

vet:
	@echo "go vet, for this machine and for the browser; the first time takes a minute or two"
	$(GO) vet ./...
	$(WASM) $(GO) vet $(WASM_PACKAGES)

# In the browser, only packages with files for js/wasm differ from the native ones.
FILES := {{.ImportPath}} {{.GoFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}
staticcheck: bin/staticcheck
	bin/staticcheck ./...
	$(WASM) bin/staticcheck $$(comm -13 <($(GO) list -e -f '$(FILES)' $(WASM_PACKAGES) | sort) \
		<($(WASM) $(GO) list -f '$(FILES)' $(WASM_PACKAGES) | sort) | cut -d' ' -f1)

bin/staticcheck: build/go.version go.mod
	@echo "compiling staticcheck; this happens once and takes about a minute"
	$(GO) build -o $@ honnef.co/go/tools/cmd/staticcheck

# Generated files are in the repository, so that a checkout can be built at once. Generating them
# again must not change them.
generated:
	@before=$$(find ui -name '*_gen.go' -exec sha256sum {} + | sort); \
	$(GO) generate ./ui/...; \
	after=$$(find ui -name '*_gen.go' -exec sha256sum {} + | sort); \
	if [ "$$before" != "$$after" ]; then \
		echo "generated files were out of date; they are made again now: look at git diff, and commit them" >&2; exit 1; fi
	@echo "go generate: generated files are up to date"

unit: ## tests that run natively
	@[ -d "$${STACKGLASS_DATA:-../shared/data}/truth" ] || \
		echo "Left out: comparisons with other programs' results on large traces; STACKGLASS_DATA names no folder with traces/ and truth/"
	@$(NEED) $(CAPTURE_NEEDS) $(SYSTEM_NEEDS)
	@echo "compiling and running the native tests; the first time takes a few minutes"
	$(TEST) ./...

wasmtest: bin/wasmtest ## tests that run in Chromium
	@$(NEED) 'chromium:chromium,ca-certificates:the tests of the browser side run in it'
	@echo "compiling the browser side's tests and running them in Chromium; this takes a minute or more"
	$(WASM) $(TEST) -exec="$(CURDIR)/bin/wasmtest" $(WASM_TESTS)

bin/wasmtest: build/go.version go.mod $(wildcard tools/wasmtest/*.go tools/wasmtest/*/*)
	$(GO) build -o $@ ./tools/wasmtest

# The test cache is not used: these tests run programs, and the cache does not notice when the
# programs change.
E2E      := STACKGLASS_E2E=1 $(TEST) -count=1 ./tools/e2e/...

e2e: e2e-first e2e-second ## the built page and command together, in Chromium, with every way to host the page

e2e-first: e2e-needs
	$(E2E) -run '^Test[A-L]'

e2e-second: e2e-needs
	$(E2E) -skip '^Test[A-L]'

e2e-needs: build single zip edge build/wrangler.stamp
	@$(NEED) 'chromium:chromium,ca-certificates:the tests of the browser side run in it'
	@echo "trying the page and the command in Chromium, from end to end; this takes a few minutes"

# Beam needs many modules, which only tools/beam uses.
beamtest: ## tests of analyses on Apache Beam, if its modules can be downloaded
	@echo "compiling and running the tests of analyses on Apache Beam; the first time fetches its modules"
	@mkdir -p build
	@if (cd tools/beam && $(GO) list -deps -test ./...) >build/beam.log 2>&1; then \
		cd tools/beam && $(GO) vet ./... && $(TEST) ./...; \
	else echo "Left out: analyses on Apache Beam; its modules are not here, and cannot be fetched: $$(tail -1 build/beam.log)"; fi

beam: build bin/beam ## analyse the demos on Apache Beam, by two worker processes, and compare with the command
	@rm -rf build/beam && mkdir -p build/beam/alone
	bin/beam --workers 2 --metrics --output build/beam/profiles $(wildcard site/demos/*.sgt)
	@for trace in $(wildcard site/demos/*.sgt); do name=$$(basename $$trace .sgt); \
		bin/stackglass analyze $$trace --analyses default -o build/beam/alone/$$name.sgp >build/beam/alone/$$name.txt 2>&1; \
		cmp build/beam/alone/$$name.sgp build/beam/profiles/$$name.sgp; done
	@echo "the profiles in build/beam/profiles are those of bin/stackglass analyze, byte for byte"

bin/beam: tools/beam/go.mod $(shell find core tools/beam -name '*.go' -not -name '*_test.go' 2>/dev/null)
	@echo "compiling what runs on Apache Beam; the first time fetches its modules, which takes some minutes"
	cd tools/beam && $(GO) build -ldflags '-s -w' -o ../../bin/beam .

fuzz: ## every fuzzer for FUZZTIME (60s), one after the other
	@grep -rlE '^func Fuzz' --include='*_test.go' --exclude-dir=testdata core workers wasm ui | sort | while read -r file; do \
		grep -oE '^func Fuzz[A-Za-z0-9_]*' "$$file" | cut -d' ' -f2 | while read -r name; do \
			echo "== $$name in $$(dirname "$$file")"; \
			$(GO) test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) -parallel=1 "./$$(dirname "$$file")" </dev/null; \
		done; done

# ---- measure it

soak: build edge build/wrangler.stamp bin/wasmtest race ## tests that take hours: samplers over a hundred seeds and 10^9 accesses, stacks of 10^8 lines in 1 GB, 25,000 loop nests, the blocks of SQLite, every compiler on every traced program, 200 runs with cancelled threads, forty kills of pages and browsers, jobs on Apache Beam whose workers are killed or whose states have 10^7 lines (STACKGLASS_LINES=N for others), the page in Firefox and WebKit, response times of the Cloudflare worker in Cloudflare's runtime, Lighthouse's scores, the worked examples of the manual
	@$(NEED) $(BROWSER_NEEDS)
	STACKGLASS_E2E=1 STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=1h -v -run 'TestOtherBrowsers|TestWorkerKilledAtRandom|TestBrowserKilled|TestEightWorkers|TestBudgetCoversTheWholeTab' ./tools/e2e
	STACKGLASS_E2E=1 STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=1h -v -run 'TestRequests|TestLighthouse' ./tools/e2e
	STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=1h -v -run TestKilledAnalysisResumes ./tools/stackglass/internal/command
	STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=3h -v -run 'IntervalsCoverExactCurve|LongRun' ./core/analysis/sample/estimate
	STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=3h -v -run "Cyclic|Random" ./tools/stackglass/internal/shelf
	STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=3h -v ./core/loops/misses -rapid.checks=25000
	STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=3h -v -run DineroIV ./core/simulate
	STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=3h -v -run RewrittenPrograms ./core/ir
	STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=3h -v ./tools/capture
	STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=1h -v -run ExamplesOfManual ./tools/arch
	cd tools/beam && STACKGLASS_SOAK=1 $(GO) test -count=1 -timeout=3h -v -run "Captured|ManyLines" ./pass
	STACKGLASS_SOAK=1 $(WASM) $(GO) test -count=1 -timeout=3h -v -run SoakSpilling -exec="$(CURDIR)/bin/wasmtest" ./wasm/host

bench: ## native benchmarks (BENCH=Stack selects some)
	$(GO) test -run='^$$' -bench='$(BENCH)' ./core/...

bench-wasm: bin/wasmtest ## the same benchmarks in Chromium
	$(WASM) $(GO) test -run='^$$' -bench='$(BENCH)' -exec="$(CURDIR)/bin/wasmtest" ./core/stack/... ./core/trace/...

speed: ## tools/speed/SPEED.md: how long users wait, for programs of many kinds, and which targets are reached (clang-19; STACKGLASS_BASELINE names the folder of the baseline; make build first to measure the page, too)
	@$(NEED) $(CAPTURE_NEEDS)
	$(GO) run ./tools/speed

pipelines: ## cycles of loop bodies by the model, by llvm-mca, and measured (llvm-19, clang-19)
	@$(NEED) $(PIPELINE_NEEDS)
	$(GO) run ./tools/pipelines compare

runtimes: ## tools/pipelines/RUNTIMES.md: runtimes of kernels by the model, and measured (llvm-19, clang-19)
	@$(NEED) $(PIPELINE_NEEDS)
	$(GO) run ./tools/pipelines runtimes tools/pipelines/RUNTIMES.md

scaling: ## references, misses and runtimes of larger inputs, predicted from small ones, counted and measured (llvm-19, clang-19)
	@$(NEED) $(PIPELINE_NEEDS)
	$(GO) run ./tools/pipelines scaling

multicore: ## core/multicore/ACCURACY.md: predictions for many cores, compared with runs of OpenMP programs; 20 minutes (clang-19, libomp, valgrind)
	@$(NEED) $(MULTICORE_NEEDS)
	$(GO) run ./tools/multicore -o core/multicore/ACCURACY.md

capture-real: ## tools/real/REAL.md: real programs with and without recording; the first time downloads and compiles them, which takes half an hour (clang-19; flang-19, libomp, rustc)
	@$(NEED) $(REAL_NEEDS)
	$(GO) run ./tools/real

# ---- generate its parts again

generate: ## the Go files that are generated from Vugu components
	$(GO) generate ./ui/...

processors: ## descriptions of processor cores, from llvm-mca's tables (llvm-19)
	@$(NEED) $(PIPELINE_NEEDS)
	$(GO) run ./tools/pipelines describe core/pipeline/processors
	$(GO) test ./core/pipeline

probes: ## the same for this machine, with measured latencies and throughputs: PROCESSOR=sapphirerapids
	@$(NEED) $(PIPELINE_NEEDS)
	$(GO) run ./tools/pipelines tune core/pipeline/processors $(PROCESSOR)

demos: ## the traces of the demos, from their C sources (clang-19, libomp)
	@$(NEED) 'clang-19:clang-19,libc6-dev:compiles the demos' \
		'/usr/lib/llvm-19/lib/libomp.so:libomp-19-dev:runs the demo with OpenMP'
	site/demos/remake.sh
	$(GO) test ./site/...

golden: ## the expected outputs of the command's tests
	$(GO) test ./tools/stackglass/... -update

shot: build ## the picture in README.md, site/screenshot.png
	@$(NEED) 'chromium:chromium,ca-certificates:takes the picture'
	STACKGLASS_E2E=1 STACKGLASS_PICTURE=$(CURDIR)/site/screenshot.png $(TEST) -count=1 -run TestReadmePicture ./tools/e2e

clean: ## remove everything that was built
	rm -rf bin build site/node_modules workers/edge/.wrangler
	find site/dist -mindepth 1 -not -name .gitkeep -delete
