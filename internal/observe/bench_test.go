package observe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// generator makes an agent's stream of any length: text, tools, their results, partial messages.
// One line in a hundred belongs to a team.
type generator struct {
	rand    *rand.Rand
	lines   int
	tools   int
	texts   []string
	pending string // the answer to the last line
	team    int
}

func newGenerator() *generator {
	g := &generator{rand: rand.New(rand.NewPCG(1, 2))}
	words := strings.Fields("the parser reads a file and gives \\\"tokens\\\" to func main err != nil return " +
		"fmt.Errorf \\n\\t { } [] TaskCreate Team tool result alice 0123456789 / src internal snake_case <T> if a < b")
	for _, n := range []int{20, 60, 200, 600, 2000} {
		var b strings.Builder
		for range n {
			b.WriteString(words[g.rand.IntN(len(words))] + " ")
		}
		g.texts = append(g.texts, b.String())
	}
	return g
}

const envelope = `"parent_tool_use_id":null,"session_id":"0963947b-49e4-44e6-9d81-c7fa588ea31d","uuid":"7e9bb1f6-8e9e-4d87-b2a5-%012d"}`

func (g *generator) use(name, input string) string {
	g.tools++
	return fmt.Sprintf(
		`{"type":"assistant","message":{"id":"msg_%08d","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"tool_use","id":"toolu_%06d","name":%q,"input":%s}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}},`+envelope,
		g.lines, g.tools, name, input, g.lines)
}

func (g *generator) result(text, structured string) string {
	return fmt.Sprintf(
		`{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_%06d","type":"tool_result","content":"%s"}]},`+strings.TrimSuffix(envelope, "}")+`,"tool_use_result":%s}`,
		g.tools, text, g.lines, structured)
}

// line returns the next line.
func (g *generator) line() string {
	g.lines++
	if g.pending != "" {
		line := g.pending
		g.pending = ""
		return line
	}
	text := g.texts[g.rand.IntN(len(g.texts))]
	if g.lines >= 200*g.team { // two lines: a call and its result
		g.team++
		task := g.team/3 + 1
		switch {
		case g.team == 1:
			line := g.use("TeamCreate", `{"team_name":"fx"}`)
			g.pending = g.result("ok", `{"team_name":"fx","team_file_path":"/x","lead_agent_id":"team-lead@fx"}`)
			return line
		case g.team%3 == 1:
			line := g.use("TaskCreate", fmt.Sprintf(
				`{"subject":"Look into module %d","description":"Read it and say what is wrong."}`, task))
			g.pending = g.result(fmt.Sprintf("Task #%d created successfully: x", task),
				fmt.Sprintf(`{"task":{"id":"%d","subject":"Look into module %d"}}`, task, task))
			return line
		case g.team%3 == 2:
			line := g.use("SendMessage", fmt.Sprintf(
				`{"type":"message","recipient":"alice","content":"module %d is yours","summary":"module"}`, task))
			g.pending = g.result("sent",
				`{"success":true,"message":"Message sent to alice's inbox","routing":{"sender":"team-lead","target":"@alice"}}`)
			return line
		}
		line := g.use("TaskUpdate", fmt.Sprintf(`{"taskId":"%d","status":"in_progress","owner":"alice"}`, task))
		g.pending = g.result("Updated", fmt.Sprintf(`{"success":true,"taskId":"%d","updatedFields":["status"]}`, task))
		return line
	}
	switch g.rand.IntN(10) {
	case 0, 1, 2:
		return fmt.Sprintf(
			`{"type":"assistant","message":{"id":"msg_%08d","type":"message","role":"assistant","content":[{"type":"text","text":"%s"}],"stop_reason":null},`+envelope, g.lines, text, g.lines)
	case 3, 4, 5, 6:
		line := g.use([]string{"Bash", "Read", "Edit", "Grep"}[g.rand.IntN(4)], fmt.Sprintf(`{"command":"%s"}`,
			g.texts[g.rand.IntN(3)]))
		g.pending = g.result(text, fmt.Sprintf(`{"stdout":"%s","stderr":"","interrupted":false}`, text))
		return line
	}
	return fmt.Sprintf(
		`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}},`+envelope, g.texts[0], g.lines)
}

// chunk returns lines of about that size in bytes.
func (g *generator) chunk(size int) []byte {
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString(g.line())
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// feed passes a stream to an observer like an adapter.
func feed(o *Observer, r io.Reader, now team.Time) {
	var s protocol.Splitter
	buf := make([]byte, 64<<10)
	each := func(line []byte) { o.Line("lead", line, now) }
	for {
		n, err := r.Read(buf)
		s.Write(buf[:n], each)
		if err != nil {
			s.End(each)
			return
		}
	}
}

// BenchmarkStream observes 1 GB of which 1% of the lines belong to a team. It compares that with
// only splitting the same lines, and with decoding each line with encoding/json. The figures are
// ratios: how many times faster than decoding, the fraction of the speed of splitting, and how much
// more memory than the team needs.
func BenchmarkStream(b *testing.B) {
	const total, part = 1 << 30, 32 << 20
	for range b.N {
		g, o := newGenerator(), New(Options{})
		// The parts are measured in turns, because the machine also does other work.
		var ofScanning, timesDecoding, speeds []float64
		seen := 0
		var first, last runtime.MemStats
		for seen < total {
			chunk := g.chunk(part)
			start := time.Now()
			s := bufio.NewScanner(bytes.NewReader(chunk))
			s.Buffer(make([]byte, 64<<10), 16<<20)
			lines := 0
			for s.Scan() {
				lines += min(1, len(s.Bytes()))
			}
			scanning := time.Since(start)
			start = time.Now()
			feed(o, bytes.NewReader(chunk), team.Time(seen))
			observing := time.Since(start)
			ofScanning = append(ofScanning, scanning.Seconds()/observing.Seconds())
			speeds = append(speeds, float64(len(chunk))/observing.Seconds()/1e6)
			if len(timesDecoding) < 7 {
				start = time.Now()
				for line := range bytes.Lines(chunk) {
					var v struct {
						Type    string
						Message struct{ Content json.RawMessage }
						UUID    string
					}
					if err := json.Unmarshal(line, &v); err != nil {
						b.Fatal(err)
					}
				}
				timesDecoding = append(timesDecoding, time.Since(start).Seconds()/observing.Seconds())
			}
			if seen += len(chunk); seen < total/2 {
				continue
			}
			chunk = nil
			runtime.GC()
			if runtime.ReadMemStats(&last); first.HeapAlloc == 0 {
				first = last
			}
		}
		c := o.Counts()
		tasks := o.Team().Count(team.Pending) + o.Team().Count(team.InProgress)
		if c.Pending+c.Discarded+c.Orphaned+c.Garbage > 1 || tasks < g.team/3-1 {
			b.Fatalf("%d of %d tasks, %+v", tasks, g.team/3, c)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(median(speeds), "MB/s")
		b.ReportMetric(median(timesDecoding), "times-decoding")
		b.ReportMetric(median(ofScanning), "of-scanning")
		b.ReportMetric(100*float64(c.Decoded)/float64(c.Lines), "%-decoded")
		b.ReportMetric(float64(int64(last.HeapAlloc)-int64(first.HeapAlloc))/1e6, "MB-grown")
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkLastEvent observes a team with 10,000 tasks and 100,000 messages. It compares the time
// for an event at the end with the time for one at the beginning.
func BenchmarkLastEvent(b *testing.B) {
	const tasks, messages, sample = 10_000, 100_000, 2_000
	now := team.Time(epochMillis)
	for range b.N {
		o := New(Options{})
		n := 0
		call := func(tool, input, structured string) {
			n++
			now++
			o.Line("lead",
				fmt.Appendf(nil,
					`{"type":"assistant","session_id":"11112222","message":{"id":"m%d","content":[{"type":"tool_use","id":"t%d","name":%q,"input":%s}]}}`, n, n, tool, input), now)
			o.Line("lead",
				fmt.Appendf(nil,
					`{"type":"user","session_id":"11112222","message":{"content":[{"tool_use_id":"t%d","type":"tool_result","content":"x"}]},"tool_use_result":%s}`, n, structured), now)
		}
		message := func(i int) {
			call("SendMessage",
				fmt.Sprintf(`{"type":"message","recipient":"alice","content":"message %d","summary":"s"}`, i),
				`{"success":true}`)
		}
		claim := func(i int) {
			call("TaskUpdate", fmt.Sprintf(`{"taskId":"%d","status":"in_progress","owner":"alice"}`, i),
				`{"success":true}`)
		}
		// quickest returns the time of the fastest twentieth of a sample, to exclude other work of
		// the machine.
		quickest := func(event func(int), from int) (least time.Duration) {
			for first := from; first < from+sample; first += sample / 20 {
				start := time.Now()
				for i := range sample / 20 {
					event(first + i)
				}
				if d := time.Since(start); first == from || d < least {
					least = d
				}
			}
			return least
		}
		call("TeamCreate", `{"team_name":"fx"}`, `{"team_name":"fx"}`)
		call("Task", `{"name":"alice","team_name":"fx"}`,
			`{"status":"teammate_spawned","name":"alice","team_name":"fx"}`)
		create := func(from, to int) {
			for i := from; i <= to; i++ {
				call("TaskCreate", fmt.Sprintf(`{"subject":"task %d"}`, i),
					fmt.Sprintf(`{"task":{"id":"%d","subject":"task %d"}}`, i, i))
			}
		}
		create(1, sample)
		firstMessage, firstClaim := quickest(message, 0), quickest(claim, 1)
		create(sample+1, tasks)
		for i := range messages {
			message(-i)
		}
		lastMessage, lastClaim := quickest(message, sample), quickest(claim, tasks-sample)
		if got := len(o.State().Tasks); got != tasks || o.Team().MessageSeq() < messages {
			b.Fatalf("%d tasks, %d messages", got, o.Team().MessageSeq())
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(lastMessage)/float64(firstMessage), "message-last/first")
		b.ReportMetric(float64(lastClaim)/float64(firstClaim), "claim-last/first")
		b.ReportMetric(float64(lastMessage.Microseconds())/(sample/20), "µs/message")
	}
}
