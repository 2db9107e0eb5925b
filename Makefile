# The commands of this project. None needs anything but Go, git and make; with npm, the tests also run the real agents.

GO ?= go
# What a change must compile for; lint compiles it for the platform that runs it.
PLATFORMS = $(filter-out $(shell $(GO) env GOHOSTOS)/$(shell $(GO) env GOHOSTARCH),linux/amd64 linux/arm64 darwin/arm64)
# Without cgo a program needs no library of the system, and starts sooner. Only the race detector and SQLite, which benchmarks compare with, need it.
export CGO_ENABLED = 0

.PHONY: build agents test check bench short lint cross race soak sim rounds fuzz

build:
	$(GO) build -o bin/cadre ./cmd/cadre

# The coding agents that the tests run, from npm, into the user's cache. Tests that need one that cannot be had are skipped, with the reason.
agents:
	$(GO) run ./internal/agent/agenttest/install

# Most tests wait for processes and for the disk, so more of them run beside each other than there are processors.
CPUS := $(shell getconf _NPROCESSORS_ONLN)
TESTS = $(GO) test -timeout 30m -p $(shell echo $$(($(CPUS) + 1))) -parallel $(shell echo $$(($(CPUS) * 3))) ./...

# Everything, as a user would run it.
test: agents
	$(TESTS)

# What a change must pass. The tests come last, so that their verdict is the last line.
check: lint cross race fuzz agents
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/team ./internal/observe ./internal/observe/store ./internal/journal/... > /dev/null
	cd bench && $(GO) vet ./...
	$(TESTS)

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt -w $$unformatted"; exit 1; fi
	$(GO) vet ./...

# Nobody runs what is compiled here, so it is not optimised, which takes long.
cross:
	@for p in $(PLATFORMS); do echo "vet $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet -gcflags='all=-N -l' ./... || exit 1; done

# The race detector, on what runs goroutines: not on functions over values, nor on the end-to-end tests, which start programs of their own.
race:
	CGO_ENABLED=1 $(GO) test -race -short $$($(GO) list ./internal/... ./pkg/... | grep -Ev '/internal/(observe|team|run/teamfile|testkit/(arch|sim)test)$$')

# What makes text harmless, and every decoder of what agents write, a minute together: make fuzz FUZZ=10m for each.
FUZZ ?= 4s
fuzz:
	.ci/fuzz $(FUZZ) render/sanitize hook agent/readonly observe observe/store claude/teamfiles agent/claude agent/codex agent/acp agent/headless agent/mcpserver sys/websocket

short:
	$(GO) test -short ./...

# What takes long, an hour or two: each place at which a process may be killed, instead of a sample.
soak: agents
	CADRE_SOAK=1 $(GO) test -timeout 6h ./internal/transfer ./internal/consolidate ./internal/git/... ./e2e -run 'Kill|TestTwoMachines|TestRolledBack'
	$(MAKE) sim FOR=20m
	$(MAKE) rounds ROUNDS=500

# Histories of simulated teams, for as long as wished: make sim FOR=10m; from seeds that nobody has played, FIRST=0. The normal tests play 10,000.
FOR ?= 1m
FIRST ?= $(shell date +%s)
sim:
	$(GO) test ./internal/testkit/simtest -run '^TestHistories$$' -v -timeout 0 -for $(FOR) -first $(FIRST)

# Rounds of a team of which a process is killed, and that is resumed: make rounds ROUNDS=500. The normal tests play as many as fit into half a minute.
ROUNDS ?= 500
rounds:
	$(GO) test ./e2e -run '^TestRounds$$' -v -timeout 0 -rounds $(ROUNDS)

# Ratios against baselines of the same run; docs/BENCHMARKS.md says what they must be.
bench:
	$(GO) test -run '^$$' -bench . ./internal/team ./internal/journal/filejournal
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/observe
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/claude/teamfiles
	$(GO) test -run '^$$' -bench . ./internal/observe/store ./internal/claude/sdkrelay
	$(GO) test -run '^$$' -bench Ancestry ./internal/sys/proc
	$(GO) test -run '^$$' -bench 'Checkpoint|Render' ./internal/git/checkpoint
	$(GO) test -run '^$$' -bench Thousandth -benchtime 1x ./internal/git/checkpoint
	cd bench && CGO_ENABLED=1 $(GO) test -timeout 30m -run '^$$' -bench . .
