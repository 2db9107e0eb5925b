// Package board drives the board in a real Chromium, in a module of its own, so that nothing else
// needs a browser. The tests are skipped without a browser.
package board

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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// program is the cadre that the tests run, and chromium the browser; "" for none.
var program, chromium string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "cadre-browser-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "cadre")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/cadre")
	build.Dir = filepath.Join("..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n%v\n", out, err)
		os.Exit(1)
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if chromium, err = exec.LookPath(name); err == nil {
			break
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// world is a home with a running server.
type world struct {
	t       testing.TB
	home    string
	dir     string // in which commands run
	env     []string
	address string // of the server, such as 127.0.0.1:41234
	pid     int    // of the server
}

func serve(t testing.TB, stories ...*story) *world {
	t.Helper()
	if chromium == "" {
		t.Skip("no Chromium is installed")
	}
	home := t.TempDir()
	for _, s := range stories {
		s.save(home)
	}
	return serveAt(t, home)
}

// serveAt starts a server of the home, with those flags too.
func serveAt(t testing.TB, home string, flags ...string) *world {
	t.Helper()
	w := &world{t: t, home: home, dir: t.TempDir(),
		env: append(os.Environ(), "CADRE_HOME="+home, "CADRE_TEAM=", "HOME="+home, "TZ=UTC")}
	w.start(flags...)
	return w
}

// start starts the server with those flags, and waits until it answers.
func (w *world) start(flags ...string) {
	t := w.t
	t.Helper()
	p := exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	p.Dir, p.Env = w.dir, w.env
	said := &output{}
	p.Stdout, p.Stderr = said, said
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	w.pid = p.Process.Pid
	t.Cleanup(func() {
		p.Process.Signal(syscall.SIGTERM)
		p.Wait()
	})
	w.eventually("the server answers", func() bool {
		_, rest, is := strings.Cut(said.String(), "and on http://")
		w.address, _, _ = strings.Cut(rest, "\n")
		return is && strings.Contains(rest, "\n")
	})
}

// cadre runs a command, which must succeed, and returns what it prints.
func (w *world) cadre(args ...string) string {
	w.t.Helper()
	c := exec.Command(program, args...)
	c.Dir, c.Env = w.dir, w.env
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("cadre %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// code returns a one-time code for the browser.
func (w *world) code() string {
	w.t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(w.home, "server", "socket"))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	r, err := client.Post("http://cadre/v1/login-codes", "application/json", strings.NewReader("{}"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	var is struct{ Code string }
	if err := json.NewDecoder(r.Body).Decode(&is); err != nil || is.Code == "" {
		w.t.Fatal("no code: ", err)
	}
	return is.Code
}

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("after %s it is not so: %s", patience, what)
		}
	}
}

// output is what a process writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// tab is a page of the browser. Errors on its console fail the test.
type tab struct {
	t   testing.TB
	ctx context.Context
	mu  sync.Mutex
	bad []string // what the console has

	expected []string // parts of messages of the console that do not fail the test
	began    bool     // the browser has the page
}

// patience is how long anything that a test waits for may take, on a busy machine.
const patience = time.Minute

// within returns the context of a step. The first step gets the context of the page itself.
func (b *tab) within() (context.Context, context.CancelFunc) {
	if !b.began {
		b.began = true
		return b.ctx, func() {}
	}
	return context.WithTimeout(b.ctx, patience)
}

// browse starts a browser with a page of that size.
func browse(t testing.TB, width, height int64, options ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	if chromium == "" {
		t.Skip("no Chromium is installed")
	}
	options = append(append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium),
		chromedp.WindowSize(int(width), int(height)), chromedp.Flag("lang", "en-US"), chromedp.Env("TZ=UTC")),
		options...)
	all, end := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, close := chromedp.NewContext(all)
	b := &tab{t: t, ctx: ctx}
	b.do(chromedp.EmulateViewport(width, height))
	t.Cleanup(end)
	b.hear(close)
	return b
}

// another opens another page in the same browser.
func (b *tab) another() *tab {
	b.t.Helper()
	ctx, close := chromedp.NewContext(b.ctx)
	is := &tab{t: b.t, ctx: ctx}
	is.do()
	is.hear(close)
	return is
}

// hear keeps what is on the console, until close closes the page.
func (b *tab) hear(close func()) {
	var hears sync.WaitGroup
	hears.Go(func() {
		for m, err := range chromedp.Console(b.ctx) {
			bad := m.Type == "error" || m.Type == "warning" || m.Type == chromedp.ConsoleException || m.Type == "assert"
			if err == nil && bad {
				b.mu.Lock()
				b.bad = append(b.bad, m.Text+" "+m.URL)
				b.mu.Unlock()
			}
		}
	})
	b.t.Cleanup(func() {
		close()
		hears.Wait()
		for _, text := range b.bad {
			expected := func(part string) bool { return strings.Contains(text, part) }
			if !slices.ContainsFunc(b.expected, expected) {
				b.t.Errorf("on the console: %s", text)
			}
		}
	})
}

// expects names a part of messages of the console that do not fail the test. The console may have
// them at any time, also after the page shows what they are about.
func (b *tab) expects(part string) { b.expected = append(b.expected, part) }

// said returns what was on the console.
func (b *tab) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.bad)
}

// do carries out the steps.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, end := b.within()
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// login opens the board, and shows what the fragment says.
func (b *tab) login(w *world, fragment string) {
	b.t.Helper()
	b.do(chromedp.Navigate("http://" + w.address + "/login?code=" + w.code() + fragment))
}

// js evaluates an expression, and waits for its promise.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, end := b.within()
	defer end()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until the expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); !js[bool](b, "!!("+expression+")"); time.Sleep(25 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("after %s it is not so: %s\nThe page shows:\n%s\nThe console has %q", patience, expression,
				js[string](b, "document.body.innerText"), b.said())
		}
	}
}

// shows waits until the page shows the text.
func (b *tab) shows(text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	b.until("document.body.innerText.includes(" + string(quoted) + ")")
}

// press presses the button of that name, as soon as there is one.
func (b *tab) press(name string) {
	b.t.Helper()
	quoted, _ := json.Marshal(name)
	find := `[...document.querySelectorAll("dialog[open] button, button, a")].find(e => !e.disabled && e.offsetParent &&
		(e.getAttribute("aria-label") || e.innerText).trim() === ` + string(quoted) + `)`
	b.until(find)
	js[bool](b, find+".click(), true")
}

// fill sets the value of a field, as soon as there is one.
func (b *tab) fill(field, value string) {
	b.t.Helper()
	find := fmt.Sprintf("document.querySelector(%q)", field)
	b.until(find)
	js[bool](b, fmt.Sprintf(`(e => (e.value = %q, e.dispatchEvent(new Event("input", {bubbles: true})),
		e.dispatchEvent(new Event("change", {bubbles: true}))))(%s)`, value, find))
}

// slide moves a slider.
func slide(b *tab, slider string, to int) {
	b.t.Helper()
	js[bool](b, fmt.Sprintf(`(e => (e.value = %d, e.dispatchEvent(new Event("input", {bubbles: true})), true))(
		document.querySelector(%q))`, to, slider))
}

// picture writes what is shown into the file.
func (b *tab) picture(file string) {
	b.t.Helper()
	data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
