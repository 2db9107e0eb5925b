package tools_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/hook"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
)

// TestTranscripts plays testdata/*.txt. A line that is not indented is a step, and the indented
// lines below it are what the agent reads; FAILED stands before what it is told to be an error. The
// steps:
//
//	MEMBER TOOL {input}       a call
//	add NAME {spawn fields}   the user adds a member without a session
//	budget TOKENS, delegate   the user sets a budget, or delegate mode
//	NAME used TOKENS          the member's bill
//	NAME asks TOOL INPUT      the member's agent asks for a permission, for a minute
//	NAME fails ID REASON      the member's attempt at a task fails
//	gate EVENT FEEDBACK       from now on the hook rejects, with that feedback; without one it lets everything through
//	later SECONDS             time passes
//	late NAME                 what the member was not given for long is marked
//	silent NAME               nothing was heard of the member for long
//	lose                      the lead is a session that is gone
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d transcripts: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(t)
			var out strings.Builder
			for line := range strings.Lines(string(script)) {
				if strings.HasPrefix(line, "  ") {
					continue
				}
				out.WriteString(line)
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
					for said := range strings.SplitSeq(b.step(line), "\n") {
						out.WriteString(strings.TrimRight("  | "+said, " ") + "\n")
					}
				}
			}
			golden.File(t, path, out.String())
		})
	}
}

func (b *bench) step(line string) string {
	first, rest, _ := strings.Cut(line, " ")
	second, rest, _ := strings.Cut(rest, " ")
	number := func(s string) (n int64) {
		if _, err := fmt.Sscan(s, &n); err != nil {
			b.t.Fatalf("%s: %v", line, err)
		}
		return n
	}
	switch {
	case first == "add":
		m := team.SpawnMember{Name: second, Agent: team.External}
		if rest != "" {
			if err := json.Unmarshal([]byte(rest), &m); err != nil {
				b.t.Fatal(err)
			}
		}
		b.do(team.User, &m)
	case first == "budget":
		b.do(team.User, &team.SetBudget{Budget: team.Budget{Tokens: number(second), CostMicroUSD: 5_000_000,
			Time: time.Hour}})
	case first == "delegate":
		b.do(team.User, &team.SetDelegate{On: true})
	case first == "later":
		b.now += team.Time(1000 * number(second))
	case first == "late":
		b.do(team.Host("h1"), &team.MarkLate{Member: second})
	case first == "silent":
		b.do(team.Host("h1"), &team.ReportOffline{Member: second, Incarnation: 1, Seen: b.now - 600_000})
	case first == "lose":
		b.do(team.User, &team.AttachLead{Session: "s"})
		since := b.now
		b.now += 300_000
		b.do(team.Host("h1"), &team.LoseLead{Session: "s", Since: since, Seen: since})
	case first == "gate":
		b.gate = func(e hook.Event) hook.Verdict {
			return hook.Verdict{Rejected: rest != "" && e.Name == second,
				Feedback: strings.ReplaceAll(rest, `\n`, "\n")}
		}
	case second == "used":
		b.do(team.User, &team.ReportUsage{Member: first, Usage: team.Usage{InputTokens: number(rest),
			CostMicroUSD: 120_000}})
	case second == "asks":
		tool, input, _ := strings.Cut(rest, " ")
		b.do(first, &team.RequestPermission{Tool: tool, Input: input, Deadline: b.now + 60_000})
	case second == "fails":
		id, reason, _ := strings.Cut(rest, " ")
		b.do(first, &team.FailTask{Task: id, Reason: reason})
	default:
		text, failed := b.call(first, second, rest)
		if failed {
			text = "FAILED " + text
		}
		return text
	}
	return "ok"
}
