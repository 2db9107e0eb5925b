# The commands of this project. They need Go, git and make; the race detector also needs a C compiler, and
# some tests need tmux. With npm, the tests also run the real agents.

GO ?= go
# What a change must compile for, besides the system that runs it: no file depends on the processor.
PLATFORMS = $(filter-out $(shell $(GO) env GOHOSTOS)/%,linux/amd64 darwin/arm64)
# Without cgo a program needs no library of the system, and starts sooner. Only the race detector and SQLite, which benchmarks compare with, need it.
export CGO_ENABLED = 0

.PHONY: build agents browser test check bench bench-peers short lint cross race soak sim rounds fuzz

build:
	$(GO) build -o bin/cadre ./cmd/cadre

# The coding agents that the tests run, from npm, into the user's cache. Tests that need one that cannot be had are skipped, with the reason.
agents:
	$(GO) run ./internal/agent/agenttest/install

# Tests start programs, so two beside each other keep a processor busy. Packages whose tests wait run more: testkit/soak, Beside.
CPUS := $(shell getconf _NPROCESSORS_ONLN)
TESTS = $(GO) test $(VET) -timeout 30m -p $(CPUS) -parallel $(shell echo $$(($(CPUS) * 2))) ./...

# Everything, as a user would run it.
test: agents browser
	$(TESTS)

# Tests in a real Chromium, in a module of their own. They are skipped where there is none.
browser:
	cd e2e/browser && $(GO) vet ./... && $(GO) test ./...

# What a change must pass. The tests come last, so that their verdict is the last line.
check: lint cross race
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/team ./internal/observe ./internal/observe/store ./internal/journal/... ./internal/ui/... ./internal/server/metrics > /dev/null
	cd bench && $(GO) vet ./...
	$(MAKE) test VET=-vet=off

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt -w $$unformatted"; exit 1; fi
	$(GO) vet ./...

# Nobody runs what is compiled here, so it is not optimised, which takes long.
cross:
	@for p in $(PLATFORMS); do echo "vet $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet -gcflags='all=-N -l' ./... || exit 1; done

# The race detector, on what runs goroutines: not on functions over values, nor on the end-to-end tests, which start programs of their own.
VALUES = observe|team|run/teamfile|replica/schema|agent/(envelope|readonly)|render(/.*)?|ui/(costs|filter|graph|lineedit|timeline)|testkit/(arch|sim)test
race:
	CGO_ENABLED=1 $(GO) test -vet=off -race -short $$($(GO) list ./internal/... ./pkg/... | grep -Ev '/internal/($(VALUES))$$')

# What makes text harmless, and every decoder of what agents write, ten seconds each: make fuzz FUZZ=10m for more. Their seeds are part of the tests.
FUZZ ?= 10s
fuzz:
	.ci/fuzz $(FUZZ) render/sanitize hook agent/readonly observe observe/store claude/teamfiles agent/claude agent/codex agent/acp agent/headless agent/mcpserver sys/proc sys/websocket server/api server/auth server/coordinator server/metrics server/tracing ui/web ../pkg/teams/client

short:
	$(GO) test -short ./...

# What takes long, an hour or two: each place at which a process may be killed, instead of a sample. A server is killed at each millisecond of each
# request of a team's life, and 300 times while its team works; its clients continue from their cursors, and must miss nothing and see nothing twice.
SERVED = TestServeFlow|TestServeClient|TestServeRounds|TestWebSocketFlow
soak: agents
	CADRE_SOAK=1 $(GO) test -timeout 6h ./internal/engine/transfer ./internal/consolidate ./internal/git/... ./e2e -run 'Kill|TestOneSession|TestTwoMachines|TestRolledBack|$(SERVED)'
	$(MAKE) sim FOR=20m
	$(MAKE) rounds ROUNDS=500
	$(MAKE) fuzz FUZZ=1m

# Histories of simulated teams with real hosts, on all processors, for as long as wished: make sim FOR=10m; from seeds that nobody has played, FIRST=0. The normal tests play 1,000.
FOR ?= 1m
FIRST ?= $(shell date +%s)
sim:
	$(GO) test ./internal/testkit/simtest -run '^TestHistories$$' -v -timeout 0 -for $(FOR) -first $(FIRST)

# Rounds of a team of which a process is killed, and that is resumed: make rounds ROUNDS=500. The normal tests play as many as fit into 20 seconds.
ROUNDS ?= 500
rounds:
	$(GO) test ./e2e -run '^TestRounds$$' -v -timeout 0 -rounds $(ROUNDS)

# Ratios against baselines of the same run; docs/BENCHMARKS.md says what they must be.
bench:
	$(GO) test -run '^$$' -bench . ./internal/team ./internal/journal/filejournal
	$(GO) test -run '^$$' -bench 'Append|Writers|Wait|Teams|Watchers|Beats' -benchtime 3s ./internal/journal/pgjournal
	$(GO) test -run '^$$' -bench . -benchtime 20x ./internal/server/metrics ./internal/journal/recorded ./internal/ui/timeline ./internal/ui/graph ./internal/ui/costs ./internal/ui/tui
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/observe
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/claude/teamfiles
	$(GO) test -run '^$$' -bench . ./internal/observe/store ./internal/claude/sdkrelay
	$(GO) test -run '^$$' -bench IdleScreen -benchtime 1x ./e2e
	cd e2e/browser && $(GO) test -run '^$$' -bench . -benchtime 1x ./board
	$(GO) test -run '^$$' -bench Ancestry ./internal/sys/proc
	$(GO) test -run '^$$' -bench 'Checkpoint|Render' ./internal/git/checkpoint
	$(GO) test -run '^$$' -bench Thousandth -benchtime 1x ./internal/git/checkpoint
	cd bench && CGO_ENABLED=1 $(GO) test -timeout 30m -run '^$$' -bench . .

# Whole commands beside those of beads, a task list for agents: BD names its program; it is built from its module, which takes some minutes, where there is none.
BD ?= $(CURDIR)/bin/bd
bench-peers: $(BD)
	cd bench && BD=$(BD) CGO_ENABLED=1 $(GO) test -timeout 30m -run '^$$' -bench Peers .

# Built in its own module, with its own checksums: go install would ask for the list of its versions too, which some proxies refuse.
BEADS = github.com/steveyegge/beads@v1.0.5
$(CURDIR)/bin/bd:
	@said=$$($(GO) mod download -json $(BEADS)); dir=$$(printf '%s\n' "$$said" | sed -n 's/^.*"Dir": "\(.*\)".*$$/\1/p'); \
	if [ -z "$$dir" ]; then \
		printf '%s\n' "$$said" | sed -n 's/^.*"Error": "\(.*\)".*$$/\1/p'; \
		echo "$(BEADS) cannot be downloaded, for that reason. Build it elsewhere, and run: make bench-peers BD=/path/to/bd"; \
		exit 1; \
	fi; \
	cd "$$dir" && CGO_ENABLED=1 $(GO) build -mod=readonly -o $@ ./cmd/bd
