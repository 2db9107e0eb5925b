package run_test

import (
	"fmt"
	"testing"
	"time"

	"cadre/internal/run"
	"cadre/internal/team"
)

// TestWords: checks, facts and periods are read as a person types them, and a mistake is refused.
func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"go vet ./...":           "[{go vet ./... go vet ./...}]",
		"vet: go vet ./...":      "[{vet go vet ./...}]",
		"a b: c":                 "[{a b: c a b: c}]", // no name
		"test -f x: y":           "[{test -f x: y test -f x: y}]",
		"  make\n  check ":       "[{make check   make\n  check }]",
		"vet: ":                  "",
		" ":                      "",
		"http://localhost:8: up": "[{http://localhost:8: up http://localhost:8: up}]",
	} {
		checks, err := run.ParseChecks([]string{text})
		var got []struct{ Name, Command string }
		for _, c := range checks {
			got = append(got, struct{ Name, Command string }{c.Name, c.Command})
		}
		refused(t, text, fmt.Sprint(got), want, err)
	}
	for text, want := range map[string]string{
		"spec=docs/spec.md": "spec docs/spec.md", "docs/spec.md": "docs/spec.md docs/spec.md", "x=./a/../b": "x b",
		"x=/etc/hosts": "x /etc/hosts", "a=b=c": "a b=c", "=x": "", "x=": "", "": "", "x=../y": "", "..": "",
		"x=a/../../y": "",
	} {
		facts, err := run.ParseFacts([]string{text})
		got := ""
		for _, f := range facts {
			got += f.Name + " " + f.Path
		}
		refused(t, text, got, want, err)
	}
	for name, period := range map[string]string{"beat": "90s", "checkpoint": "10m"} {
		timing, err := run.ParseTiming(map[string]string{name: period})
		if err != nil || timing.Beat+timing.Checkpoint != map[string]time.Duration{"90s": 90 * time.Second,
			"10m": 10 * time.Minute}[period] {
			t.Errorf("%s=%s is %+v, %v", name, period, timing, err)
		}
	}
	for name, period := range map[string]string{"beet": "90s", "beat": "soon", "stale": "1ms", "zombie": "-1h"} {
		_, err := run.ParseTiming(map[string]string{name: period})
		refused(t, name+"="+period, "", "", err)
	}
}

// refused checks the result of parsing a text; want is "" for a text that must be refused.
func refused(t *testing.T, text, got, want string, err error) {
	t.Helper()
	if want == "" {
		if team.CodeOf(err) != team.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	} else if err != nil || got != want {
		t.Errorf("%q is %s, and not %s; %v", text, got, want, err)
	}
}
