package drivers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNames(t *testing.T) {
	for name, known := range map[string]bool{"claude": true, "codex": true, "gemini": true, "opencode": true,
		"acp:my-agent --fast": true, "shell": true, "external": true,
		"acp:": false, "acp: ": false, "acp": false, "": false, "Claude": false} {
		if drivers.Known(name) != known {
			t.Errorf("that %q is known is %t", name, !known)
		}
		if has := (drivers.Set{}).Agent(name) != nil; has != (known && name != team.External) {
			t.Errorf("that %q has a driver is %t", name, has)
		}
	}
	for _, name := range drivers.Words() {
		if !drivers.Known(name) {
			t.Errorf("%s is in the words and not known", name)
		}
	}
}

// TestWithoutAHelper checks that agents that reach their team through a helper are refused without
// one, with the reason.
func TestWithoutAHelper(t *testing.T) {
	for _, name := range []string{"gemini", "opencode", "acp:my-agent"} {
		_, err := drivers.Set{}.Agent(name).Start(t.Context(), agent.Spec{}, nil)
		p, ok := errors.AsType[*agent.Problem](err)
		if !ok || p.Kind != agent.ProblemMissing || !strings.Contains(p.Text, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if relay := (drivers.Set{}).Relay(); relay != nil {
		t.Errorf("without a helper the tools are served by %q", relay)
	}
}

// TestOffers checks that a lead may spawn installed agents, and agents like itself.
func TestOffers(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for own, want := range map[string][]string{"": nil, "external": nil, "claude": {"claude"},
		"acp:mine": {"acp:mine"}} {
		if offers := drivers.Offers(own); !slices.Equal(offers, want) {
			t.Errorf("to %q are offered %q", own, offers)
		}
	}
}

// TestServe checks that Serve understands the command lines of a set with a socket behind them, and
// connects both sides.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	heard := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		heard <- string(text)
		io.WriteString(conn, "an answer")
	}()
	set := drivers.Set{Helper: []string{"/bin/helper", "mark"}}
	args := append(set.Relay(), socket)
	if !slices.Equal(args[:2], set.Helper) {
		t.Fatalf("the helper is started with %q", args)
	}
	var out bytes.Buffer
	if err := drivers.Serve(ctx, args[2:], strings.NewReader("a question"), &out); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "a question" || out.String() != "an answer" {
		t.Errorf("there it is %q, and here %q", got, out.String())
	}
	err = drivers.Serve(ctx, []string{"mcp", "--socket", filepath.Join(t.TempDir(), "gone")},
		strings.NewReader(""), io.Discard)
	if team.CodeOf(err) != team.NotReady {
		t.Errorf("a session that is gone gives %v", err)
	}
	for _, args := range [][]string{nil, {"mcp"}, {"mcp", "--team", "x"}, {"status", "x"}} {
		if err := drivers.Serve(ctx, args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%q is served", args)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, name := range drivers.Models {
		if p := drivers.Probe(t.Context(), name); p.Program != "" || !strings.Contains(p.Missing, "install") {
			t.Errorf("%s, which is not installed: %+v", name, p)
		}
	}
	if p := drivers.Probe(t.Context(), "shell"); p.Missing == "" {
		t.Errorf("a shell: %+v", p)
	}
}
