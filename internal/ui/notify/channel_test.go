package notify

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
	"cadre/internal/ui/settings"
)

// hostile is a fact whose texts an agent wrote.
var hostile = Fact{ID: "1/plan/ann//r1/", Team: "demo", TeamID: "1", Kind: string(team.ItemPlan), Member: "ann",
	Text: "ann\x1b]0;x\a; submitted ü\n ghp_0123456789abcdefghijABCDEFGHIJ0123456", Do: "cadre plan demo r1"}

// send sends the fact through the only channel of the settings.
func send(t *testing.T, n settings.Notify, f Fact) error {
	t.Helper()
	channels := Remote(n)
	if len(channels) != 1 {
		t.Fatalf("%d channels", len(channels))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return channels[0].Send(ctx, f)
}

// TestCommand runs real commands.
func TestCommand(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("OUT", out)
	if err := send(t, settings.Notify{Command: `cat > "$OUT"; echo "$CADRE_NOTIFY_TITLE / $CADRE_NOTIFY_DO" >> "$OUT"`},
		hostile); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(data), "\n")
	var f Fact
	if err := json.Unmarshal([]byte(first), &f); err != nil || f != hostile {
		t.Errorf("the command read %s (%v)", first, err)
	}
	if rest != "ann of team demo needs you / cadre plan demo r1\n" {
		t.Errorf("the command's environment had %q", rest)
	}
	if err := send(t, settings.Notify{Command: "echo no display >&2; exit 3"}, hostile); err == nil ||
		!strings.Contains(err.Error(), "no display") || !strings.Contains(err.Error(), "3") {
		t.Errorf("a command that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Remote(settings.Notify{Command: "sleep 60"})[0].Send(ctx, hostile); err == nil ||
		strings.Contains(err.Error(), "within") {
		t.Errorf("a command that the person ended: %v", err)
	}
}

// TestCommandHangs ends a command with what it started.
func TestCommandHangs(t *testing.T) {
	t.Parallel()
	hangs(t, settings.Notify{Command: "sleep 60 & sleep 60"}, "the command did not end within 1 second, and was killed")
}

// hangs checks what the only channel of the settings says when it takes more than a second.
func hangs(t *testing.T, n settings.Notify, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := Remote(n)[0].Send(ctx, hostile); err == nil || err.Error() != want {
		t.Errorf("a channel that hangs: %v, want %s", err, want)
	}
}

// TestNetworkHangs sends to servers that take the connection and answer nothing.
func TestNetworkHangs(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	url := "http://" + silent.Addr().String()
	want := silent.Addr().String() + " did not answer within 1 second"
	for name, channel := range map[string]settings.Notify{
		"webhook": {Webhook: &settings.Webhook{URL: url + "/?key=hidden"}},
		"ntfy":    {Ntfy: &settings.Ntfy{URL: url + "/topic"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hangs(t, channel, want)
		})
	}
}

// TestTmuxHangs asks a tmux that does not answer whether a notification passes.
func TestTmuxHangs(t *testing.T) {
	soak.Long(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tmux"), []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	terminal := &Terminal{Out: io.Discard, Getenv: func(string) string { return "x" }}
	if err := terminal.Desktop(t.Context(), settings.OSC9, hostile); err == nil ||
		err.Error() != "tmux did not answer within 2 seconds" {
		t.Errorf("a tmux that hangs: %v", err)
	}
}

// TestNetwork sends to a server on loopback, and follows no redirect.
func TestNetwork(t *testing.T) {
	var path, body string
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		path, body, header = r.URL.Path, string(data), r.Header
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	defer client.CloseIdleConnections()
	if err := send(t, settings.Notify{Webhook: &settings.Webhook{URL: server.URL + "/hook",
		Headers: map[string]string{"Authorization": "secret"}}}, hostile); err != nil {
		t.Fatal(err)
	}
	var got struct{ ID, Title, Text, Do string }
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != hostile.ID || got.Title != hostile.Title() || got.Do != hostile.Do ||
		header.Get("Idempotency-Key") != hostile.ID || header.Get("Authorization") != "secret" {
		t.Errorf("the webhook got %s with %v", body, header)
	}
	if strings.Contains(got.Text, "ghp_") {
		t.Errorf("a secret left the machine: %s", got.Text)
	}
	if err := send(t, settings.Notify{Ntfy: &settings.Ntfy{URL: server.URL + "/topic", Token: "t"}},
		hostile); err != nil {
		t.Fatal(err)
	}
	if path != "/topic" || header.Get("Title") != "ann of team demo needs you" || header.Get("Authorization") !=
		"Bearer t" || !strings.HasSuffix(body, "\ncadre plan demo r1") || strings.Contains(body, "ghp_") {
		t.Errorf("ntfy got %s %q with %v", path, body, header)
	}
	for url, want := range map[string]string{"/away": "redirects are not followed", "/broken": "500"} {
		err := send(t, settings.Notify{Webhook: &settings.Webhook{URL: server.URL + url + "?key=hidden"}}, hostile)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", url, err)
		}
		if path == "/elsewhere" {
			t.Error("a redirect was followed")
		}
	}
	server.Close()
	if err := send(t, settings.Notify{Webhook: &settings.Webhook{URL: server.URL + "/?key=hidden"}},
		hostile); err == nil ||
		!strings.Contains(err.Error(), "cannot be reached") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("without a server: %v", err)
	}
}

// TestTerminal checks the sequence for each terminal, and that no text of an agent leaves it.
func TestTerminal(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		how  settings.Desktop
		want string
	}{
		{map[string]string{"TERM_PROGRAM": "iTerm.app"}, settings.AutoDesktop, "\x1b]9;ann of team demo needs you: "},
		{map[string]string{"KITTY_WINDOW_ID": "1"}, settings.AutoDesktop, "\x1b]99;i=cadre:d=0;ann of"},
		{map[string]string{"TERM": "foot"}, settings.AutoDesktop, "\x1b]777;notify;ann of team demo needs you;"},
		{map[string]string{"TERM": "xterm"}, settings.OSC9, "\x1b]9;"},
		{map[string]string{"TERM": "xterm"}, settings.AutoDesktop, ""},
	} {
		var out strings.Builder
		terminal := &Terminal{Out: &out, Getenv: func(name string) string { return c.env[name] }}
		err := terminal.Desktop(t.Context(), c.how, hostile)
		if c.want == "" {
			if err == nil || out.Len() > 0 {
				t.Errorf("%v: %v, %q", c.env, err, out.String())
			}
			continue
		}
		if err != nil || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%v: %v, %q", c.env, err, out.String())
		}
		rest := out.String()
		for _, own := range []string{"\x1b]99;", "\x1b]", "\x1b\\"} {
			rest = strings.ReplaceAll(rest, own, "")
		}
		if strings.ContainsAny(rest, "\x1b\a\n\u009c") {
			t.Errorf("%v: a text leaves the sequence: %q", c.env, out.String())
		}
	}
	var out strings.Builder
	terminal := &Terminal{Out: &out}
	if err := terminal.Bell(t.Context(), hostile); err != nil || out.String() != "\a" {
		t.Errorf("the bell is %q, %v", out.String(), err)
	}
}
