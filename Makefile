# make test needs Go and nothing else. What the others need they install, as
# Debian packages and npm and Go modules.
GO ?= go

PREFIX ?= /usr/local
UNITS ?= /etc/systemd/system
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0)
ARCH ?= $(shell $(GO) env GOARCH)

.PHONY: all build test race busy test-32 lint scan vulncheck interop fuzz sim model crash soak cluster-soak budget bench bench-compare install manual package release image clean

all: lint test build

# What a binary says that it is, and without symbols; without RELEASE, what the history says.
RELEASED = $(if $(RELEASE),-ldflags "-s -w -X main.release=$(RELEASE)")

build: ## the binary, bin/beanpole, which needs no library of the system
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -o bin/beanpole ./cmd/beanpole

test: ## everything that needs only Go; what needs beanstalkd is skipped where it is not installed
	$(GO) vet ./...
	$(GO) test -timeout 20m -vet=off ./...

# These run a process of the real program, which is not built with the race
# detector: it would look for races in the test alone.
PROCESSES := /internal/test/(soak|conformance|conformance/interop)$$

# One goroutine owns an engine, and one steps the members of a cluster in these simulations: there is nothing to race.
ALONE := /internal/(engine|cluster/core|test/model)$$

# These measure other programs.
MEASURES := /internal/bench/

# With -short, as in make test-32: simulations have fewer seeds, and what takes long and runs in make test is left out. That vets, too.
race: ## the same under the race detector; needs a C compiler
	$(GO) test -timeout 20m -vet=off -short -race $$($(GO) list ./... | grep -vE '$(PROCESSES)|$(ALONE)|$(MEASURES)')

busy: ## make test and make race ROUNDS times, beside BUSY processes that only compute
	.ci/busy $(or $(ROUNDS),20) $(or $(BUSY),8)

# Linux on amd64 runs programs of 32 bits, unless its kernel was built without that.
test-32: ## the server and the client with integers of 32 bits
	GOOS=linux GOARCH=386 CGO_ENABLED=0 $(GO) test -timeout 20m -vet=off -short $$($(GO) list ./client/... ./internal/... | grep -vE '$(PROCESSES)|/internal/(bench|load|test/(budget|model|sim))')

# What is only compiled, and never run.
UNOPTIMISED = -gcflags='all=-N -l'

lint: ## gofmt, vet, staticcheck, and that it builds for the other systems
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	GOOS=darwin $(GO) build $(UNOPTIMISED) ./...
	GOOS=freebsd $(GO) build $(UNOPTIMISED) ./...
	GOOS=linux GOARCH=386 $(GO) build ./...

# Of gosec's rules these are off:
#   G104  errors that are not looked at: closing, deadlines, and writes to a
#         connection whose failure the next read reports; staticcheck looks at others
#   G115  conversions of integers: the parser, the decoders of the journal and the
#         options check their ranges, and are fuzzed
#   G304  names of files in variables: an operator names them, never a client
# Without assembly (purego), which it does not read.
# A line that another rule would stop says why it is right, after "#nosec".
scan: ## gosec: what a program on a network had better not do
	$(GO) run github.com/securego/gosec/v2/cmd/gosec@v2.27.1 -quiet -tags purego -exclude=G104,G115,G304 ./...

vulncheck: ## govulncheck: known vulnerabilities that our code reaches; asks VULNDB
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0 -db $(or $(VULNDB),https://vuln.go.dev) ./...

interop: build ## the real beanstalkd as twin, and real clients of four languages, also with TLS and tokens, and a real Prometheus; installs what it needs
	internal/test/conformance/interop/run -md doc/clients.md bin/beanpole
	$(GO) test ./internal/test/conformance/interop -timeout 20m -count=1 -interop.all
	$(GO) test ./internal/test/conformance/interop -timeout 20m -count=1 -interop.all -interop.follower -run 'TestTLS/somebody|TestTokenInPut'
	$(GO) test ./contrib -count=1 -contrib.prometheus
	contrib/grafana/check
	$(GO) test ./internal/test/conformance -count=1 -run 'TestTwin|TestReference|TestBeanpole' -seeds=$(or $(ROUNDS),20)

fuzz: ## each fuzz target for FUZZTIME
	@for p in $$($(GO) list ./client/... ./internal/...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			$(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(FUZZTIME),30s) $$p || exit 1; \
		done; \
	done

sim: ## the whole server with power cuts, members of a cluster and their journals with everything that fails, SEEDS seeds each
	$(GO) test ./internal/test/sim -timeout 0 -seeds=$(or $(SEEDS),5000)
	$(GO) test ./internal/cluster/core -timeout 0 -run 'TestSimulation|TestPlanted|TestMembers' -seeds=$(or $(SEEDS),5000)
	$(GO) test ./internal/cluster -timeout 0 -run TestLives -seeds=$(or $(SEEDS),5000)
	$(GO) test ./internal/journal -timeout 0 -run 'TestMembers' -seeds=$(or $(SEEDS),5000)

model: ## all states of a model of the cluster's own parts, up to STATES for each run, a minute for ten million
	$(GO) test ./internal/test/model -timeout 0 -v -count=1 -model.states=$(or $(STATES),30000000)

crash: ## kill -9 of the real process under load, ROUNDS times
	$(GO) test ./internal/test/soak -run Crash -timeout 0 -seeds=$(or $(ROUNDS),200)

soak: ## random clients, faults and restarts for DURATION, against a ledger; takes a SEED and a PROGRAM; uses strace, and a tmpfs if it may mount one
	$(GO) test ./internal/test/soak -run Soak -timeout 0 -v -count=1 -for=$(or $(DURATION),1h) -seed=$(or $(SEED),0) -soak.program=$(abspath $(PROGRAM))

cluster-soak: ## three members as processes, with ROUNDS faults under load, those of the name FAULTS or all, histories checked with porcupine; takes a SEED, a PROGRAM, and an OLD one to change to and back
	$(GO) test ./internal/test/soak -run 'TestCluster$$' -timeout 0 -v -count=1 -seeds=$(or $(ROUNDS),50) -cluster.faults='$(FAULTS)' -cluster.old=$(abspath $(OLD)) -seed=$(or $(SEED),0) -soak.program=$(abspath $(PROGRAM))

budget: ## instructions, system calls and allocations per command against their budgets; UPDATE=1 writes new ones; needs valgrind and strace
	$(GO) test -run Alloc -count=1 ./...
	$(GO) test ./internal/test/budget -count=1 -timeout 30m -v -run '^(TestInstructions|TestSystemCalls)$$' -budget.count $(if $(UPDATE),-budget.update)

bench: ## benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-compare: build ## measures what is in doc/benchmarks.md, part by part: beanpole beside Debian's beanstalkd
	doc/benchmarks.sh bin/beanpole

# The settings of a service are dist/beanpole.toml with a journal, and the admin pages
# on loopback.
install: ## the binary, its manual, documentation, completions and units for systemd, under DESTDIR and PREFIX; as root. RELEASE is what it says that it is
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto $(RELEASED) -o bin/beanpole ./cmd/beanpole
	install -D -m 755 bin/beanpole $(DESTDIR)$(PREFIX)/bin/beanpole
	$(MAKE) manual TO=$(DESTDIR)$(PREFIX)/share
	install -d $(DESTDIR)$(PREFIX)/share/doc/beanpole
	install -m 644 doc/*.md README.md CHANGELOG.md $(DESTDIR)$(PREFIX)/share/doc/beanpole
	sed -e 's/^# \(journal\|admin\) = /\1 = /' dist/beanpole.toml >$(DESTDIR)$(PREFIX)/share/doc/beanpole/beanpole.toml
	install -d $(DESTDIR)$(UNITS)
	for unit in service socket; do \
		sed -e 's|/usr/bin/|$(PREFIX)/bin/|' -e 's|/usr/share/|$(PREFIX)/share/|' dist/systemd/beanpole.$$unit >$(DESTDIR)$(UNITS)/beanpole.$$unit; \
	done

manual: ## manual pages and completions, in a directory TO like /usr/share
	GOOS= GOARCH= CGO_ENABLED=0 $(GO) build -tags manual $(RELEASED) -o bin/describe ./cmd/beanpole # for this machine, whatever the binary is for
	env -u BEANPOLE_ADDR bin/describe man $(TO)/man dist/beanpole.toml
	for s in bash-completion/completions/beanpole:bash zsh/site-functions/_beanpole:zsh fish/vendor_completions.d/beanpole.fish:fish; do \
		install -d $(TO)/$$(dirname $${s%:*}) && \
		bin/describe completion $${s#*:} >$(TO)/$${s%:*} || exit 1; \
	done

package: ## Debian and RPM packages in build/package, of VERSION for ARCH (amd64, arm64)
	dist/package/build $(VERSION) $(ARCH)

release: ## archives for all systems, packages and checksums in build/release, by goreleaser; PUBLISH=1 publishes the tag
	$(GO) run github.com/goreleaser/goreleaser/v2@v2.16.0 release --clean $(if $(PUBLISH),,--snapshot)
	dist/release-test

image: ## the container image beanpole:VERSION; needs buildah
	dist/container/build $(VERSION) $(ARCH)

clean:
	rm -rf bin build
