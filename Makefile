# "make test" needs only Go. The other targets install Debian packages, npm packages and
# Go modules as they need them.
GO ?= go

PREFIX ?= /usr/local
UNITS ?= /etc/systemd/system
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0)
ARCH ?= $(shell $(GO) env GOARCH)

.PHONY: all build test race busy night test-32 lint scan vulncheck interop browser budget bench bench-compare install documentation manual package release image clean

all: lint test build

# A release binary prints RELEASE as its version and has no symbols. Others print the
# version from the history.
RELEASED = $(if $(RELEASE),-ldflags "-s -w -X main.release=$(RELEASE)")

build: ## build bin/beanpole, a static binary
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -o bin/beanpole ./cmd/beanpole

# -w omits debugging data, which halves the time to link. Some tests wait, so four packages
# run at a time.
TEST := $(GO) test -timeout 20m -vet=off -ldflags=-w -p 4

test: ## run all tests that need only Go, in their short form; tests against beanstalkd are skipped if it is not installed
	$(GO) vet ./...
	$(TEST) ./...

# Packages whose goroutines share memory. "make night" runs the race detector on all packages.
SHARED := ./client/... $(addprefix ./internal/,access admin/... broker certs cluster cluster/control cluster/mux cluster/raftlog cluster/transport console daemon journal server test/sim wal)

race: ## run the tests of these packages under the race detector; needs a C compiler
	$(TEST) -short -race $(SHARED)

busy: ## run "make test" and "make race" ROUNDS times next to BUSY processes that use the CPU
	.ci/busy $(or $(ROUNDS),20) $(or $(BUSY),8)

night: ## run the long tests for HOURS with new seeds; ONLY=journal runs those that a change of the journal can break
	$(GO) run ./internal/test/night -hours $(or $(HOURS),8) -only '$(ONLY)'

# Linux on amd64 runs 32-bit programs, unless its kernel was built without them.
test-32: ## test the server and the client with 32-bit integers
	GOOS=linux GOARCH=386 CGO_ENABLED=0 $(GO) test -timeout 20m -vet=off -short $$($(GO) list ./client/... ./internal/... | grep -vE '/internal/test')

lint: ## run gofmt, vet, staticcheck and the prose check, and build for FreeBSD, which has no event loops, with 32-bit integers
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test -vet=off -run 'Prose|Faults' .
	GOOS=freebsd GOARCH=386 $(GO) build -gcflags='all=-N -l' -o /dev/null ./cmd/beanpole

# Disabled rules of gosec:
#   G104  unchecked errors: of Close, of deadlines, and of writes to a connection whose
#         failure the next read reports; staticcheck checks the others
#   G115  integer conversions: the parser, the journal's decoders and the options check
#         ranges and are fuzzed
#   G304  file names in variables: an operator chooses them, never a client
# gosec cannot read assembly, so it scans the purego build, without test support. Each
# "#nosec" in the code gives its reason.
scan: ## check for insecure code with gosec
	$(GO) run github.com/securego/gosec/v2/cmd/gosec@v2.27.1 -quiet -tags purego -exclude=G104,G115,G304 -exclude-dir=internal/test ./...

vulncheck: ## check for known vulnerabilities in reachable code with govulncheck and VULNDB
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0 -db $(or $(VULNDB),https://vuln.go.dev) ./...

interop: build ## test with clients of four languages, Prometheus and the types of Kubernetes; LONG=1 adds TLS, tokens and a follower, and updates doc/clients.md
	internal/test/conformance/interop/run $(if $(LONG),-md doc/clients.md) bin/beanpole
	$(GO) test ./contrib -count=1 -contrib.prometheus
	contrib/grafana/check
	cd contrib/kubernetes && $(GO) test -count=1 ./...
ifdef LONG
	$(GO) test ./internal/test/conformance/interop -timeout 20m -count=1 -interop.all
	$(GO) test ./internal/test/conformance/interop -timeout 20m -count=1 -interop.all -interop.follower -run 'TestTLS/somebody|TestTokenInPut'
endif

browser: ## test the console in Chromium; LONG=1 adds axe and a million jobs
	cd internal/console/testdata/browser && $(GO) vet ./... && $(if $(LONG),BEANPOLE_LONG=1) $(GO) test -count=1 -timeout 20m ./... $(if $(LONG),-axe)

budget: ## compare instructions, system calls and allocations per command with their budgets; UPDATE=1 writes new budgets; needs valgrind and strace
	$(GO) test ./internal/test/budget -count=1 -timeout 30m -v -run '^(TestInstructions|TestSystemCalls)$$' -budget.count $(if $(UPDATE),-budget.update)

bench: ## run the Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-compare: build ## measure bench/results again, part by part: beanpole next to Debian's beanstalkd
	bench/measure bin/beanpole

# The installed configuration is dist/beanpole.toml with a journal, and with the admin
# pages on loopback.
install: ## install the binary, manual, documentation, completions and systemd units under DESTDIR and PREFIX; needs root. RELEASE sets the version
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto $(RELEASED) -o bin/beanpole ./cmd/beanpole
	install -D -m 755 bin/beanpole $(DESTDIR)$(PREFIX)/bin/beanpole
	$(MAKE) manual TO=$(DESTDIR)$(PREFIX)/share
	$(MAKE) documentation TO=$(DESTDIR)$(PREFIX)/share/doc/beanpole
	install -d $(DESTDIR)$(PREFIX)/share/beanpole
	sed -e 's/^# \(journal\|admin\) = /\1 = /' dist/beanpole.toml >$(DESTDIR)$(PREFIX)/share/beanpole/beanpole.toml
	install -d $(DESTDIR)$(UNITS)
	for unit in service socket; do \
		sed -e 's|/usr/bin/|$(PREFIX)/bin/|' -e 's|/usr/share/|$(PREFIX)/share/|' dist/systemd/beanpole.$$unit >$(DESTDIR)$(UNITS)/beanpole.$$unit; \
	done

# The pages link to these files by relative paths.
DOCUMENTATION = README.md CHANGELOG.md DESIGN.md CONTRIBUTING.md SECURITY.md LICENSE doc/*.md doc/*.png doc/decisions/* doc/internals/* doc/benchmarks/*.svg \
	contrib/compose/* contrib/grafana/*.json contrib/prometheus/* contrib/kubernetes/*.yaml contrib/kubernetes/*.toml contrib/kubernetes/cluster/*.yaml contrib/kubernetes/cluster/init/* \
	bench/results/*.md dist/beanpole.toml dist/systemd/* internal/api/openapi.yaml

documentation: ## copy the documentation, with the examples of contrib and dist, to TO
	install -d $(TO)
	cp --parents $(DOCUMENTATION) $(TO)
	chmod -R u=rwX,go=rX $(TO)

manual: ## write manual pages and completions to TO, a directory like /usr/share
	GOOS= GOARCH= CGO_ENABLED=0 $(GO) build -tags manual $(RELEASED) -o bin/describe ./cmd/beanpole # for this machine, even when cross-compiling
	env -u BEANPOLE_ADDR bin/describe man $(TO)/man doc/configuration.md
	for s in bash-completion/completions/beanpole:bash zsh/site-functions/_beanpole:zsh fish/vendor_completions.d/beanpole.fish:fish; do \
		install -d $(TO)/$$(dirname $${s%:*}) && \
		bin/describe completion $${s#*:} >$(TO)/$${s%:*} || exit 1; \
	done

package: ## build Debian and RPM packages of VERSION for ARCH (amd64, arm64) in build/package
	dist/package/build $(VERSION) $(ARCH)

release: ## build archives for all systems, packages and checksums in build/release with goreleaser; PUBLISH=1 publishes the tag
	$(GO) run github.com/goreleaser/goreleaser/v2@v2.16.0 release --clean $(if $(PUBLISH),,--snapshot)
	dist/release-test

image: ## build the container image beanpole:VERSION, also tagged beanpole:latest; needs buildah
	dist/container/build $(VERSION) $(ARCH)

clean:
	rm -rf bin build
