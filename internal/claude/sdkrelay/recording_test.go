package sdkrelay

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cadre/internal/observe"
	"cadre/internal/team"
)

// frame is a line of a recording: a message between Claude Code 2.1.47 and a server, or the
// beginning or end of a connection.
type frame struct {
	Dir     string            `json:"dir"`
	Event   string            `json:"event"`
	Conn    int               `json:"conn"`
	Headers map[string]string `json:"headers"`
	Newline bool              `json:"newline"`
	Frame   json.RawMessage   `json:"frame"`
}

func recorded(t *testing.T, file string) (all []frame) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one frame
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestRecordings plays the program's side of a recording, with its connections and headers, and
// sends the server's lines as the consumer. All messages arrive unchanged and in order. The only
// loss is that of the outage in which the program wrote something.
func TestRecordings(t *testing.T) {
	for _, file := range []string{"testdata/2.1.47.jsonl", "testdata/2.1.47-auth.jsonl"} {
		t.Run(file, func(t *testing.T) {
			token := "nobody-asked-for-one"
			if strings.Contains(file, "auth") {
				token = "dummy-session-token"
			}
			o := observe.New(observe.Options{})
			lines := 0
			s := play(t, Options{Token: token,
				See:  func(line []byte) { lines++; o.Line("sdk-url", line, team.Time(lines)) },
				Lost: nil})
			var p *client
			var hearing <-chan string
			connections, heard := 0, 0
			for _, f := range recorded(t, file) {
				switch {
				case f.Event == "connection":
					header := f.Headers["authorization"]
					if header == "" {
						header = "Bearer " + token
					}
					var err error
					if p, _, err = s.dial(s.r.URL(), strings.TrimPrefix(header, "Bearer "),
						f.Headers["x-last-request-id"], websocket.DialOptions{}); err != nil {
						t.Fatal(err)
					}
					hearing = p.listen()
					connections++
				case f.Event == "close":
					p.conn.CloseNow()
				case f.Dir == "server->cli":
					s.say(string(f.Frame) + "\n")
					if got := <-hearing; got != string(f.Frame)+"\n" {
						t.Fatalf("the program hears %.100q, not %.100q", got, f.Frame)
					}
					s.await("it has arrived", s.r.program.out.idle)
				case f.Dir == "cli->server":
					p.say(string(f.Frame) + "\n")
					if got := s.hear(); got != string(f.Frame)+"\n" {
						t.Fatalf("the consumer hears %.100q, not %.100q", got, f.Frame)
					}
					heard++
				}
			}
			s.await("all connections are there", func() bool { return len(s.notes(&s.words)) == connections-1 })
			s.stop()
			s.end()
			if lost := s.notes(&s.lost); len(lost) != 1 || !strings.Contains(lost[0], "55b9216c") &&
				token == "nobody-asked-for-one" {
				t.Errorf("lost: %q", lost)
			}
			if connections != 4 || heard != 26 || lines != heard {
				t.Errorf("%d connections, %d lines heard, %d seen", connections, heard, lines)
			}
			if c := o.Counts(); c.Garbage+c.Truncated+c.Gaps != 0 || o.State() != nil {
				t.Errorf("a session without a team is observed as %+v, %+v", c, o.State())
			}
		})
	}
}
