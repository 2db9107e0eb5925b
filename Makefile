# The commands of this project. None needs anything but Go, git and make.

GO ?= go
# What CI builds besides its own platform.
PLATFORMS = linux/amd64 linux/arm64 darwin/arm64

.PHONY: build test check bench short lint cross race

build:
	$(GO) build -o bin/cadre ./cmd/cadre

# Everything, as a user would run it.
test:
	$(GO) test ./...

# What a change must pass. The tests come last, so that their verdict is the last line.
check: lint cross race
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/team ./internal/journal/... > /dev/null
	cd bench && $(GO) vet ./...
	$(GO) test ./...

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt -w $$unformatted"; exit 1; fi
	$(GO) vet ./...

cross:
	@for p in $(PLATFORMS); do echo "vet $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet ./... || exit 1; done

# The race detector, on what runs goroutines; the end-to-end tests start programs of their own.
race:
	$(GO) test -race -short ./internal/... ./pkg/...

short:
	$(GO) test -short ./...

# Ratios against baselines of the same run; docs/BENCHMARKS.md says what they must be.
bench:
	$(GO) test -run '^$$' -bench . ./internal/team ./internal/journal/filejournal
	cd bench && $(GO) test -timeout 30m -run '^$$' -bench . .
