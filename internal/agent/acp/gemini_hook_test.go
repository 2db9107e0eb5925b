package acp

import (
	"bytes"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
)

// TestHookOfAnotherSession checks a gemini that the member starts in its shell, which has the
// member's hook. It gets none of the member's mail, and reports nothing about its own context.
func TestHookOfAnotherSession(t *testing.T) {
	t.Parallel()
	s := &session{}
	s.is("own")
	s.queue.midTurn, s.queue.running = byHook, 1
	if send, _ := s.queue.give(agent.Prompt{ID: "p", Text: "mail for the member"}, false); send != nil {
		t.Fatal("it does not wait for the hook")
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := listen(socket, func(syscall.Conn) error { return nil }, s.forHook)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, listener)
	hook := func(session sdk.SessionId) string {
		t.Helper()
		in, err := json.Marshal(map[string]any{"session_id": session,
			"llm_request": map[string]any{"messages": []llmMessage{{"user", "hello"}}}})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s.mu.Lock()
		s.mu.Unlock()
		if err := Hook(t.Context(), socket, bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, other := range []sdk.SessionId{"another", ""} {
		if got := hook(other); got != "{}" {
			t.Errorf("the session %q is told %s", other, got)
		}
		if s.began != "" {
			t.Errorf("its history is taken for the member's")
		}
	}
	if got := hook("own"); strings.Count(got, "mail for the member") != 1 {
		t.Errorf("the member is told %s", got)
	}
}

func closed(t *testing.T, l net.Listener) {
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
