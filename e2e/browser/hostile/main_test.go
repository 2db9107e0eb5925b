// Package hostile opens pages of strangers in a real Chromium whose user is logged in to a server. The
// tests are skipped where there is no Chromium.
package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// program is the cadre that the tests run.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "cadre-hostile-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "cadre")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/cadre")
	build.Dir = filepath.Join("..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n%v\n", out, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// world is a home with a team.
type world struct {
	t    *testing.T
	home string
	log  string // history of the team at the start
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir()}
	w.cadre("create", "demo")
	w.cadre("spawn", "demo", "ann", "--agent", "external")
	w.cadre("task", "add", "demo", "work") // so that the team could be wound down
	w.log = w.cadre("log", "demo", "--json")
	return w
}

func (w *world) env() []string {
	return append(os.Environ(), "CADRE_HOME="+w.home, "CADRE_TEAM=", "CADRE_MEMBER_NAME=", "HOME="+w.home)
}

// cadre runs a command, and returns what it prints.
func (w *world) cadre(args ...string) string {
	w.t.Helper()
	c := exec.Command(program, args...)
	c.Dir, c.Env = w.home, w.env()
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("cadre %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// serve starts the server on that port, and returns its address.
func (w *world) serve(port string) string {
	w.t.Helper()
	p := exec.Command(program, "serve", "--listen", "127.0.0.1:"+port)
	p.Dir, p.Env = w.home, w.env()
	said := &output{said: make(chan struct{}, 1)}
	p.Stdout, p.Stderr = said, said
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		p.Process.Signal(syscall.SIGTERM)
		p.Wait()
	})
	for end := time.After(30 * time.Second); ; {
		_, rest, _ := strings.Cut(said.String(), "and on http://")
		if address, _, whole := strings.Cut(rest, "\n"); whole {
			return strings.TrimSpace(address)
		}
		select {
		case <-said.said:
		case <-end:
			w.t.Fatalf("the server does not answer: %s", said)
		}
	}
}

// output is what a process writes.
type output struct {
	mu   sync.Mutex
	b    bytes.Buffer
	said chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.said <- struct{}{}:
	default:
	}
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// code returns a one-time code for the browser.
func (w *world) code() string {
	w.t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(w.home, "server", "socket"))
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	r, err := client.Post("http://cadre/v1/login-codes", "application/json", strings.NewReader("{}"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	var is struct{ Code string }
	if err := json.NewDecoder(r.Body).Decode(&is); err != nil || is.Code == "" {
		w.t.Fatal("there is no code: ", err)
	}
	return is.Code
}

// unchanged fails the test if anybody changed a team, or made one.
func (w *world) unchanged() {
	w.t.Helper()
	var teams []struct{ Name string }
	if err := json.Unmarshal([]byte(w.cadre("ls", "--json")), &teams); err != nil {
		w.t.Fatal(err)
	}
	if len(teams) != 1 || teams[0].Name != "demo" {
		w.t.Errorf("the teams are %v", teams)
	}
	if log := w.cadre("log", "demo", "--json"); log != w.log {
		w.t.Errorf("the history of the team is %s", log)
	}
}

// tab is a page of a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// browse starts a browser.
func browse(t *testing.T, options ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium: ", err)
	}
	options = append(append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium),
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true)), options...)
	all, end := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, leave := chromedp.NewContext(all)
	t.Cleanup(func() { leave(); end() })
	b := &tab{t, ctx}
	b.do() // it owns the browser
	return b
}

// do carries out the steps.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// js evaluates an expression, and waits for its promise.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 40*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}
