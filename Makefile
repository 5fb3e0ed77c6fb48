# make test needs Go and nothing else. What the others need they install, as
# Debian packages and npm and Go modules.
GO ?= go

PREFIX ?= /usr/local
UNITS ?= /etc/systemd/system
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0)
ARCH ?= $(shell $(GO) env GOARCH)

.PHONY: all build test race busy night test-32 lint scan vulncheck interop browser budget bench bench-compare install documentation manual package release image clean

all: lint test build

# What a binary says that it is, and without symbols; without RELEASE, what the history says.
RELEASED = $(if $(RELEASE),-ldflags "-s -w -X main.release=$(RELEASE)")

build: ## the binary, bin/beanpole, which needs no library of the system
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -o bin/beanpole ./cmd/beanpole

# Tests are linked without what a debugger needs, which halves that; more than two packages at a time, as some of them wait.
TEST := $(GO) test -timeout 20m -vet=off -ldflags=-w -p 4

test: ## everything that needs only Go, in its short form; what needs beanstalkd is skipped where it is not installed
	$(GO) vet ./...
	$(TEST) ./...

# The packages in which goroutines share memory. make night looks at all packages.
SHARED := ./client/... $(addprefix ./internal/,access admin/... broker certs cluster cluster/control cluster/mux cluster/raftlog cluster/transport console daemon journal server test/sim wal)

race: ## tests under the race detector, where goroutines share memory; needs a C compiler
	$(TEST) -short -race $(SHARED)

busy: ## make test and make race ROUNDS times, beside BUSY processes that only compute
	.ci/busy $(or $(ROUNDS),20) $(or $(BUSY),8)

night: ## everything at length, for HOURS, with new seeds; ONLY=journal takes what a change there can break, LIST=1 names all parts
	$(GO) run ./internal/test/night -hours $(or $(HOURS),8) -only '$(ONLY)' $(if $(LIST),-list)

# Linux on amd64 runs programs of 32 bits, unless its kernel was built without that.
test-32: ## the server and the client with integers of 32 bits
	GOOS=linux GOARCH=386 CGO_ENABLED=0 $(GO) test -timeout 20m -vet=off -short $$($(GO) list ./client/... ./internal/... | grep -vE '/internal/test')

lint: ## gofmt, vet, staticcheck, the prose check, and that the program builds where there are no event loops
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test -vet=off -run 'Prose|Faults' .
	GOOS=freebsd $(GO) build -gcflags='all=-N -l' -o /dev/null ./cmd/beanpole

# Of gosec's rules these are off:
#   G104  errors that are not looked at: closing, deadlines, and writes to a
#         connection whose failure the next read reports; staticcheck looks at others
#   G115  conversions of integers: the parser, the decoders of the journal and the
#         options check their ranges, and are fuzzed
#   G304  names of files in variables: an operator names them, never a client
# Without assembly (purego), which it does not read, and without what only tests use.
# A line that another rule would stop says why it is right, after "#nosec".
scan: ## gosec: what a program on a network had better not do
	$(GO) run github.com/securego/gosec/v2/cmd/gosec@v2.27.1 -quiet -tags purego -exclude=G104,G115,G304 -exclude-dir=internal/test ./...

vulncheck: ## govulncheck: known vulnerabilities that our code reaches; asks VULNDB
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0 -db $(or $(VULNDB),https://vuln.go.dev) ./...

interop: build ## real clients of four languages, and a real Prometheus; installs what it needs. LONG=1 adds TLS, tokens, a follower, and what doc/clients.md says
	internal/test/conformance/interop/run $(if $(LONG),-md doc/clients.md) bin/beanpole
	$(GO) test ./contrib -count=1 -contrib.prometheus
	contrib/grafana/check
ifdef LONG
	$(GO) test ./internal/test/conformance/interop -timeout 20m -count=1 -interop.all
	$(GO) test ./internal/test/conformance/interop -timeout 20m -count=1 -interop.all -interop.follower -run 'TestTLS/somebody|TestTokenInPut'
endif

browser: ## the console in Chromium; LONG=1 adds axe and a million jobs
	cd internal/console/testdata/browser && $(GO) vet ./... && $(if $(LONG),BEANPOLE_LONG=1) $(GO) test -count=1 -timeout 20m ./... $(if $(LONG),-axe)

budget: ## instructions, system calls and allocations per command against their budgets; UPDATE=1 writes new ones; needs valgrind and strace
	$(GO) test ./internal/test/budget -count=1 -timeout 30m -v -run '^(TestInstructions|TestSystemCalls)$$' -budget.count $(if $(UPDATE),-budget.update)

bench: ## benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-compare: build ## measures what is in bench/results, part by part: beanpole beside Debian's beanstalkd
	bench/measure bin/beanpole

# The settings of a service are dist/beanpole.toml with a journal, and the admin pages
# on loopback.
install: ## the binary, its manual, documentation, completions and units for systemd, under DESTDIR and PREFIX; as root. RELEASE is what it says that it is
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

# With what its pages lead to, where they expect it.
DOCUMENTATION = README.md CHANGELOG.md DESIGN.md CONTRIBUTING.md SECURITY.md LICENSE doc/*.md doc/*.png doc/*.svg doc/decisions/* doc/internals/* doc/benchmarks/*.svg \
	contrib/compose/* contrib/grafana/*.json contrib/prometheus/* contrib/kubernetes/*.yaml contrib/kubernetes/*.toml contrib/kubernetes/cluster/*.yaml contrib/kubernetes/cluster/init/* \
	bench/results/*.md dist/beanpole.toml dist/systemd/* internal/api/openapi.yaml

documentation: ## the documentation with the examples of contrib and dist, in a directory TO
	install -d $(TO)
	cp --parents $(DOCUMENTATION) $(TO)
	chmod -R u=rwX,go=rX $(TO)

manual: ## manual pages and completions, in a directory TO like /usr/share
	GOOS= GOARCH= CGO_ENABLED=0 $(GO) build -tags manual $(RELEASED) -o bin/describe ./cmd/beanpole # for this machine, whatever the binary is for
	env -u BEANPOLE_ADDR bin/describe man $(TO)/man doc/configuration.md
	for s in bash-completion/completions/beanpole:bash zsh/site-functions/_beanpole:zsh fish/vendor_completions.d/beanpole.fish:fish; do \
		install -d $(TO)/$$(dirname $${s%:*}) && \
		bin/describe completion $${s#*:} >$(TO)/$${s%:*} || exit 1; \
	done

package: ## Debian and RPM packages in build/package, of VERSION for ARCH (amd64, arm64)
	dist/package/build $(VERSION) $(ARCH)

release: ## archives for all systems, packages and checksums in build/release, by goreleaser; PUBLISH=1 publishes the tag
	$(GO) run github.com/goreleaser/goreleaser/v2@v2.16.0 release --clean $(if $(PUBLISH),,--snapshot)
	dist/release-test

image: ## the container image beanpole:VERSION, which is beanpole:latest then; needs buildah
	dist/container/build $(VERSION) $(ARCH)

clean:
	rm -rf bin build
