package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
)

// speech collects what a program prints, for callers that wait for a text in it.
type speech struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed and replaced with every piece
}

func newSpeech() *speech { return &speech{more: make(chan struct{})} }

func (s *speech) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.more)
	s.more = make(chan struct{})
	return s.text.Write(p)
}

func (s *speech) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// has waits until the text was printed. It returns false if ctx ends first.
func (s *speech) has(ctx context.Context, text string) bool {
	for {
		s.mu.Lock()
		said, more := strings.Contains(s.text.String(), text), s.more
		s.mu.Unlock()
		if said {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

// watcher is a cadre observe, whose standard input may be a stream.
type watcher struct {
	*exec.Cmd
	t     *testing.T
	in    io.WriteCloser
	out   *speech
	err   *speech
	ended chan error
}

// watch starts a cadre observe with these arguments.
func (s *studio) watch(args ...string) *watcher {
	s.t.Helper()
	w := &watcher{Cmd: exec.Command(cadre, append([]string{"observe"}, args...)...), t: s.t, out: newSpeech(),
		err: newSpeech(), ended: make(chan error, 1)}
	w.Dir, w.Env, w.Stdout, w.Stderr = s.dir, s.env, w.out, w.err
	var err error
	if w.in, err = w.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { w.ended <- w.Wait() }()
	s.t.Cleanup(func() {
		w.Process.Kill()
		if s.t.Failed() {
			s.t.Logf("cadre %s printed\n%s%s", strings.Join(w.Args[1:], " "), w.out, w.err)
		}
	})
	return w
}

// after makes the turn wait until the watcher has shown the text. This proves that it is shown
// live.
func (w *watcher) after(text string, turn agenttest.Turn) agenttest.Turn {
	wait := turn.Wait
	turn.Wait = func(ctx context.Context) {
		short, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if !w.out.has(short, text) {
			w.t.Errorf("the watcher never shows %q", text)
		}
		if wait != nil {
			wait(ctx)
		}
	}
	return turn
}

// end waits until the watcher has ended by itself, because its input has.
func (w *watcher) end() {
	w.t.Helper()
	select {
	case err := <-w.ended:
		if err != nil {
			w.t.Errorf("cadre observe ended with %v", err)
		}
	case <-time.After(patience):
		w.t.Error("cadre observe does not end")
	}
}

// passed compares the lines that were passed on with those that came. It returns the types of the
// events between them.
func (w *watcher) passed(came *speech) (notices []string) {
	w.t.Helper()
	var original strings.Builder
	for line := range strings.Lines(w.out.String()) {
		if strings.HasPrefix(line, `{"type":"team:`) {
			var n struct{ Type string }
			json.Unmarshal([]byte(line), &n)
			notices = append(notices, n.Type)
			continue
		}
		original.WriteString(line)
	}
	if came.String() != original.String() || original.Len() == 0 {
		w.t.Errorf("the output is\n%s\nbut passed on was\n%s", came, original.String())
	}
	return notices
}

// watched is a program whose output watchers read while it works.
type watched struct {
	*exec.Cmd
	t     *testing.T
	said  *speech
	ended chan struct{} // closed when the program has ended
}

// program returns one of the studio's programs, not started yet.
func (s *studio) program(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	c := exec.Command(lookIn(s.t, s.env, name), args...)
	c.Dir, c.Env = s.dir, s.env
	return c
}

// show starts a program, with a pipe to each watcher.
func (s *studio) show(program *exec.Cmd, watchers ...*watcher) *watched {
	s.t.Helper()
	p := &watched{Cmd: program, t: s.t, said: newSpeech(), ended: make(chan struct{})}
	stream, err := p.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		p.Process.Kill()
		if s.t.Failed() {
			s.t.Logf("the model got these requests:\n%s", s.model.Story())
		}
	})
	to := []io.Writer{p.said}
	for _, w := range watchers {
		to = append(to, w.in)
	}
	go func() {
		defer close(p.ended)
		io.Copy(io.MultiWriter(to...), stream)
		p.Wait()
		for _, w := range watchers {
			w.in.Close()
		}
	}()
	return p
}

// end waits until the program has ended by itself.
func (p *watched) end() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end; it printed\n%s", filepath.Base(p.Path), p.said)
	}
}

func lookIn(t *testing.T, env []string, program string) string {
	t.Helper()
	for _, one := range env {
		if path, ok := strings.CutPrefix(one, "PATH="); ok {
			for _, dir := range filepath.SplitList(path) {
				if found, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
					return found
				}
			}
		}
	}
	t.Fatalf("%s is missing", program)
	return ""
}
