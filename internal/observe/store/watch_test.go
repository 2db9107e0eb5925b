package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"cadre/internal/observe"
	"cadre/internal/observe/source"
	"cadre/internal/team"
)

// prefix returns the beginning of a lead's recording, up to a team with tasks and members.
func prefix(t testing.TB) []byte {
	all := bytes.SplitAfter(recording(t, "2.1.47/stream.jsonl"), []byte("\n"))
	data := bytes.Join(all[:120], nil)
	if plainly(data) == "null" {
		t.Fatal("there is no team in it")
	}
	return data
}

// TestStreamOfGarbage checks that defects of lines are counted and passed on, and do not end the
// watch.
func TestStreamOfGarbage(t *testing.T) {
	huge := append(bytes.Repeat([]byte(`{"x":"`+strings.Repeat("y", 1000)+`"}`), 11<<10), '\n')
	var in bytes.Buffer
	for i, line := range bytes.SplitAfter(prefix(t), []byte("\n")) {
		in.Write(line)
		switch i {
		case 10:
			in.WriteString("garbage\n\n\x00\x01\n")
		case 20:
			in.Write(huge)
		case 30:
			in.WriteString(
				"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"name\":\"TaskList\n")
		case 40:
			in.WriteString(
				"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"TaskCreate " +
					"\xff\xfe\"}]}}\n")
		}
	}
	for name, reader := range map[string]io.Reader{"whole": bytes.NewReader(in.Bytes()),
		"halves":       iotest.HalfReader(bytes.NewReader(in.Bytes())),
		"with the end": iotest.DataErrReader(bytes.NewReader(in.Bytes()))} {
		var passed bytes.Buffer
		s := &source.Stream{Source: "stdin", Reader: reader, Pass: func(p []byte) error { passed.Write(p); return nil }}
		r := run(t, &Watch{}, s)
		r.finish()
		if !bytes.Equal(passed.Bytes(), in.Bytes()) {
			t.Errorf("%s: %d bytes came, and %d were passed on", name, in.Len(), passed.Len())
		}
		var c observe.Counts
		r.View(func(o Observer) { c = o.Counts() })
		if c.Garbage != 2 || c.Huge != 1 || c.Truncated != 1 || c.InvalidUTF > 1 {
			t.Errorf("%s: counted: %+v", name, c)
		}
		if got, want := r.state(), plainly(prefix(t)); got != want {
			t.Errorf("%s: seen:\n%s\nwithout garbage:\n%s", name, got, want)
		}
	}
}

func TestStreamThatFails(t *testing.T) {
	broken := errors.New("the cable is cut")
	w := &Watch{Now: ticks()}
	if err := w.Begin(t.Context(), Team(observe.Options{})); err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context(), &source.Stream{Source: "s", Reader: io.MultiReader(bytes.NewReader(prefix(t)),
		iotest.ErrReader(broken))}); !errors.Is(err, broken) {
		t.Errorf("it ended with %v", err)
	}
}

// TestStreamThatIsSilent checks that a blocked reader does not delay the end.
func TestStreamThatIsSilent(t *testing.T) {
	out, in := io.Pipe()
	defer in.Close()
	r := run(t, &Watch{}, &source.Stream{Source: "s", Reader: out})
	in.Write(prefix(t)[:1000])
	r.end()
}

// TestLookThatFails checks that an error of Look ends the watch.
func TestLookThatFails(t *testing.T) {
	enough := errors.New("enough")
	w := &Watch{Now: ticks(), Look: func(Observer, observe.Seen) error { return enough }}
	if err := w.Begin(t.Context(), Team(observe.Options{})); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "stream.jsonl")
	appendTo(t, path, prefix(t))
	if err := w.Run(t.Context(), &source.File{Path: path, Follow: true}); !errors.Is(err, enough) {
		t.Errorf("it ended with %v", err)
	}
}

// TestGrowingFile checks that a file that grows in arbitrary pieces gives the same result as the
// complete file, and that it may appear after the feed has started.
func TestGrowingFile(t *testing.T) {
	data := recording(t, "2.1.177/stream.jsonl")
	dir := t.TempDir()
	path := filepath.Join(dir, "later", "stream.jsonl")
	r := run(t, &Watch{}, &source.File{Path: path, Follow: true})
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for rest := data; len(rest) > 0; {
		n := min(len(rest), 1+random.IntN(20000))
		appendTo(t, path, rest[:n])
		rest = rest[n:]
	}
	r.until("not all was seen", lines(int64(bytes.Count(data, []byte("\n")))))
	r.end()
	if got, want := r.state(), plainly(data); got != want {
		t.Errorf("seen:\n%s\nwhole:\n%s", got, want)
	}
}

// TestHalfLine checks when a line counts as complete: at its line break if the file is followed,
// and otherwise at the end of the file.
func TestHalfLine(t *testing.T) {
	data := prefix(t)
	whole := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	path := filepath.Join(t.TempDir(), "stream.jsonl")
	appendTo(t, path, data[:len(data)-1])
	n := int64(bytes.Count(data, []byte("\n")))
	r := run(t, &Watch{}, &source.File{Path: path, Follow: true})
	r.until("the whole lines were not seen", lines(n-1))
	r.View(func(o Observer) {
		if got := o.Counts().Lines; got != n-1 {
			t.Errorf("%d lines are whole, and %d were seen", n-1, got)
		}
	})
	if got := r.Place(path).Offset; got != int64(whole) {
		t.Errorf("it continues at %d, not at %d", got, whole)
	}
	appendTo(t, path, []byte("\n"))
	r.until("the last line was not seen", lines(n))
	r.end()

	appendTo(t, path, []byte(`{"type":"x"}`))
	r = run(t, &Watch{}, &source.File{Path: path})
	r.finish()
	r.until("the last line was not seen", lines(n+1))
}

// TestRotationAndCut checks that a renamed file is read to its end before the new one at its path,
// and that a truncated file is read from the beginning, with a gap.
func TestRotationAndCut(t *testing.T) {
	data := prefix(t)
	cut := bytes.IndexByte(data[len(data)/2:], '\n') + len(data)/2 + 1
	path := filepath.Join(t.TempDir(), "stream.jsonl")
	begin := bytes.IndexByte(data, '\n') + 1
	appendTo(t, path, data[:begin])
	r := run(t, &Watch{}, &source.File{Path: path, Follow: true})
	r.until("the first line was not seen", lines(1))
	appendTo(t, path, data[begin:cut-1]) // the last line has no line break
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, data[cut:])
	r.until("not all was seen", lines(int64(bytes.Count(data, []byte("\n")))))
	if got, want := r.state(), plainly(data); got != want {
		t.Errorf("seen:\n%s\nwhole:\n%s", got, want)
	}
	r.View(func(o Observer) {
		if c := o.Counts(); c.Gaps != 0 {
			t.Errorf("nothing is missing, and %d gaps were reported", c.Gaps)
		}
	})
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, []byte(`{"type":"x"}`+"\n"))
	r.until("the cut was not seen", func(o Observer) bool { return o.Counts().Gaps == 1 })
	r.end()
	if got, want := r.state(), plainly(data); got != want {
		t.Errorf("after the cut:\n%s\nbefore:\n%s", got, want)
	}
}

// TestLatency checks that a line becomes an event within 5 ms of being written.
func TestLatency(t *testing.T) {
	took := latencies(t, func(create func()) {
		for range 200 {
			create()
		}
	})
	t.Logf("median %v, 95 of 100 %v, longest %v", took[100], took[190], took[199])
	if took[100] > 5*time.Millisecond {
		t.Errorf("half of the lines took longer than %v to be seen", took[100])
	}
}

func BenchmarkLatency(b *testing.B) {
	took := latencies(b, func(create func()) {
		for b.Loop() {
			create()
		}
	})
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// latencies returns, sorted, the times from before a call and its result are written to a growing
// file until their effect is seen.
func latencies(t testing.TB, rounds func(create func())) (took []time.Duration) {
	path := filepath.Join(t.TempDir(), "stream.jsonl")
	seen := make(chan time.Time, 1)
	w := &Watch{Now: ticks(), Look: func(_ Observer, s observe.Seen) error {
		if len(s.Notices) > 0 {
			seen <- time.Now()
		}
		return nil
	}}
	if err := w.Begin(t.Context(), Team(observe.Options{})); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, &source.File{Path: path, Follow: true}) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	call := func(id, tool, input, result string) {
		started := time.Now()
		appendTo(t, path,
			fmt.Appendf(nil,
				`{"type":"assistant","session_id":"s","message":{"id":"m%s","content":[{"type":"tool_use","id":"%s","name":"%s","input":%s}]}}`+"\n"+
					`{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"%s","content":"ok"}]},"tool_use_result":%s}`+"\n", id, id, tool, input, id, result))
		select {
		case at := <-seen:
			took = append(took, at.Sub(started))
		case <-time.After(patience):
			t.Fatal("nothing was seen")
		}
	}
	call("t0", "TeamCreate", `{"team_name":"fx"}`, `{"team_name":"fx"}`)
	took = nil
	n := 0
	rounds(func() {
		n++
		id := fmt.Sprint(n)
		call("t"+id, "TaskCreate", `{"subject":"S","description":"D"}`, `{"task":{"id":"`+id+`","subject":"S"}}`)
	})
	slices.Sort(took)
	return took
}

// TestTranscripts has transcripts of a lead and its teammates, in folders that appear while they
// are watched, and are written to at once.
func TestTranscripts(t *testing.T) {
	sources := map[string][]byte{}
	for _, name := range []string{"lead", "alice", "bob"} {
		sources[name] = recording(t, "2.1.329/tmux/transcript-"+name+".jsonl")
	}
	want := plainly(sources["lead"], sources["alice"], sources["bob"])
	if want == "null" {
		t.Fatal("there is no team in them")
	}
	total := int64(0)
	for _, data := range sources {
		total += int64(bytes.Count(data, []byte("\n")))
	}
	dir := t.TempDir()
	r := run(t, &Watch{}, &source.Transcripts{Dir: dir, Follow: true})
	random := rand.New(rand.NewPCG(3, 4))
	rest := map[string][]byte{}
	for name, data := range sources {
		rest[name] = data
	}
	path := func(name string) string {
		return filepath.Join(dir, "projects", "-w-"+name, "session-"+name, "deep", name+".jsonl")
	}
	for name := range rest {
		if err := os.MkdirAll(filepath.Dir(path(name)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for len(rest) > 0 {
		for name, data := range rest {
			n := min(len(data), 1+random.IntN(30000))
			appendTo(t, path(name), data[:n])
			if rest[name] = data[n:]; n == len(data) {
				delete(rest, name)
			}
		}
	}
	r.until("not all was seen", lines(total))
	r.end()
	if got := r.state(); got != want {
		t.Errorf("growing:\n%s\none after the other:\n%s", got, want)
	}
	r = run(t, &Watch{}, &source.Transcripts{Dir: filepath.Join(dir, "projects")})
	r.finish()
	if got := r.state(); got != want {
		t.Errorf("read once:\n%s\nwant:\n%s", got, want)
	}
}

// introductions records the introductions of a feed.
type introductions struct {
	*Watch
	said chan string
}

func (l introductions) Introduce(source, ofTeam, member string) {
	l.said <- fmt.Sprintf("%s %s %s", filepath.Base(source), ofTeam, member)
	l.Watch.Introduce(source, ofTeam, member)
}

// TestWhoseTranscript checks that the file beside a transcript says whose it is, in each version's
// format. A subagent is not in the team.
func TestWhoseTranscript(t *testing.T) {
	dir := t.TempDir()
	project := filepath.Join(dir, "projects", "p", "s", "subagents")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	w := &Watch{Now: ticks()}
	if err := w.Begin(t.Context(), Team(observe.Options{})); err != nil {
		t.Fatal(err)
	}
	l := introductions{w, make(chan string, 8)}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- (&source.Transcripts{Dir: dir, Follow: true}).Run(ctx, l) }()
	for name, about := range map[string]string{
		"agent-aalice-1": `{"name":"alice","taskKind":"in_process_teammate","teamName":"session-1","agentType":"general-purpose"}`,
		"agent-abob-2":   `{"agentType":"bob"}`,
		"agent-3":        `{"agentType":"general-purpose"}`,
	} {
		appendTo(t, filepath.Join(project, name+".meta.json"), []byte(about))
		appendTo(t, filepath.Join(project, name+".jsonl"), []byte("{}\n"))
	}
	next := func(want string) {
		t.Helper()
		select {
		case got := <-l.said:
			if got != want {
				t.Errorf("introduced: %s, not %s", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("no feed introduces %s", want)
		}
	}
	next("agent-aalice-1.jsonl session-1 alice")
	appendTo(t, filepath.Join(project, "..", "lead.jsonl"), prefix(t)) // the team has a bob now
	next("agent-abob-2.jsonl  bob")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(l.said) > 0 {
		t.Errorf("introduced too: %s", <-l.said)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	file := filepath.Join(filepath.Dir(nowhere), "file")
	appendTo(t, file, []byte("{}\n"))
	missing := func(err error) bool { return errors.Is(err, os.ErrNotExist) }
	another := func(err error) bool { return team.CodeOf(err) == team.Invalid }
	for _, c := range []struct {
		f  source.Feed
		is func(error) bool
	}{
		{&source.File{Path: nowhere}, missing}, {&source.Transcripts{Dir: nowhere}, missing},
		{&source.File{Path: filepath.Dir(nowhere)}, another}, {&source.Transcripts{Dir: file}, another},
		{&source.Transcripts{Dir: file, Follow: true}, another},
	} {
		w := &Watch{Now: ticks()}
		if err := w.Begin(t.Context(), Team(observe.Options{})); err != nil {
			t.Fatal(err)
		}
		if err := w.Run(t.Context(), c.f); !c.is(err) {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
}
