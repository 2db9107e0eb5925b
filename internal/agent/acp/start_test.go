package acp_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/acp"
	"cadre/internal/agent/agenttest"
	"cadre/internal/sys/proc"
	"cadre/internal/testkit/soak"
)

// TestAProgramThatEndsAtItsStart checks that a program that ends at its start is reported in its
// own words, whichever request fails because of it.
func TestAProgramThatEndsAtItsStart(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	procs, err := proc.Open(filepath.Join(t.TempDir(), "host"))
	if err != nil {
		t.Fatal(err)
	}
	defer procs.Close(context.Background())
	spec := agent.Spec{Member: "ann", Dir: t.TempDir(), Scratch: t.TempDir(), Procs: procs}
	for command, want := range map[string]string{
		"/bin/false": "exit status 1",
		"/bin/cat":   "/bin/cat does not answer as an agent of the Agent Client Protocol (initialize: ",
		`/bin/sh -c "exec 0<&-; echo no key is known here >&2; exit 3"`:                 "no key is known here",
		`/bin/sh -c "exec 0<&- 1>&-; sleep 0.3; echo no key is known here >&2; exit 3"`: "no key is known here",
	} {
		for range 10 {
			_, err := acp.Command(command).Start(t.Context(), spec, nil)
			if problem := (*agent.Problem)(nil); !errors.As(err, &problem) || !strings.Contains(problem.Text, want) ||
				problem.Kind != agent.ProblemMissing {
				t.Errorf("%s: %v", command, err)
			}
		}
	}
}

// TestAShortenedContext checks that a shortened context is reported, and that other sessions report
// none.
func TestAShortenedContext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p program) {
		var used atomic.Int64 // by the next answer, in percent
		b, s := p.bench(t, func(r *agenttest.Request) agenttest.Turn {
			percent := int(used.Swap(1)) // once: the turn may continue after it
			return agenttest.Turn{Text: fmt.Sprintf("An answer at %d.", percent),
				In: percent * map[string]int{"gemini": 10_000, "opencode": 2_000}[p.name]}
		})
		r := b.Start()
		n := 0
		told := func(percent int64) {
			t.Helper()
			n++
			used.Store(percent)
			r.Tell(fmt.Sprint("p", n), fmt.Sprintf("go on, for the time %d, with %s", n,
				strings.Repeat("this and that ", 400)))
			agenttest.Next[agent.TurnEnded](r)
		}
		for _, percent := range []int64{1, 20, 30, 45} {
			told(percent)
		}
		if said := agenttest.Said[agent.Compacted](r); len(said) != 0 {
			t.Errorf("it is said that a context that grows was shortened:\n%s", r.Story())
		}
		told(97)
		told(2)
		told(3)
		if said := agenttest.Said[agent.Compacted](r); len(said) != 1 {
			t.Errorf("it was said %d times that the context was shortened:\n%s%s", len(said), r.Story(), s.Story())
		}
	})
}
