package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cadre/internal/observe/present"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"

	"pgregory.net/rapid"
)

// watching is an observer with a clock and a journal.
type watching struct {
	*Observer
	now      team.Time
	messages []string
	notices  int // number of message notices
}

func watch() *watching { return &watching{Observer: New(Options{}), now: epochMillis} }

func (w *watching) see(source string, line []byte) Seen {
	w.now++
	seen := w.Line(source, line, w.now)
	for _, n := range seen.Notices {
		if n.Type == present.MessageReceived {
			w.notices++
		}
	}
	for _, r := range seen.Records {
		for _, e := range r.Events {
			if _, another := e.(*team.TeamCreated); another {
				w.messages = nil
			}
			sent, ok := e.(*team.MessageSent)
			if !ok {
				continue
			}
			// of a broadcast, a recipient whose context is read first gets its own message
			to := sent.Message.Recipients
			if to == nil {
				to = []string{sent.Message.To}
			}
			for _, name := range to {
				w.messages = append(w.messages, sent.Message.From+"→"+name+": "+sent.Message.Body)
			}
		}
	}
	return seen
}

// resume saves and restores the observer, as after a restart of the process.
func (w *watching) resume(t testing.TB) {
	t.Helper()
	saved, err := w.Save()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Restore(Options{}, saved, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Observer = again
}

// view returns everything about a team that must not depend on the order of its lines.
func (w *watching) view() string {
	var b strings.Builder
	shown := w.State()
	agents := w.Agents()
	if shown != nil { // members are in the order in which they were first seen
		slices.SortFunc(shown.Members, func(a, b present.TeamMember) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.Sort(agents)
	state, _ := json.Marshal(shown)
	fmt.Fprintf(&b, "%s\nagents %v\n", state, agents)
	if shown != nil {
		members := w.Team().Members()
		slices.SortFunc(members, func(a, b team.Member) int { return strings.Compare(a.Name, b.Name) })
		for _, m := range members {
			asked := "" // while it has not answered
			if m.Shutdown.Answer == "" {
				asked = m.Shutdown.Request
			}
			fmt.Fprintf(&b, "%s %s %s plan %q shutdown %q usage %+v\n", m.Name, m.Status, m.Prompt, m.Plan.State,
				asked, m.Usage)
		}
		for task := range w.Team().Tasks() {
			meta, _ := json.Marshal(task.Metadata)
			// the creator is known only if the creation is read first
			fmt.Fprintf(&b, "task %s %s\n", task.ID, meta)
		}
	}
	sent := slices.Sorted(slices.Values(w.messages))
	fmt.Fprintf(&b, "%s\n", strings.Join(sent, "\n"))
	return b.String()
}

// clip returns the lines of a recording up to the one with that text.
func clip(lines [][]byte, until string) [][]byte {
	for i, line := range lines {
		if until != "" && bytes.Contains(line, []byte(until)) {
			return lines[:i+1]
		}
	}
	return lines
}

// TestAnyOrder checks that any interleaving of related sources, any repetition of earlier lines,
// and a restart at any line, even in the middle of a call, give the same team.
func TestAnyOrder(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for _, c := range []struct {
		recording, until string // the lead's last line
	}{
		{"2.1.47 stream", `"text":"ops done"`},
		{"2.1.47 stream", ""},
		{"2.1.47 partial messages", `"text":"ops done"`},
		{"2.1.177 stream", `"text":"lead noted 57"`},
		{"2.1.47 transcript", `"text":"ops done"`},
		{"2.1.47 lead and teammate", `"text":"ops done"`},
		{"2.1.329 team in tmux", ""},
		{"2.1.329 team in tmux and its files", ""},
		{"2.1.47 lead and its files", `"text":"ops done"`},
	} {
		t.Run(c.recording+" "+strings.Trim(c.until, `"tex:`), func(t *testing.T) {
			inputs := recordings[c.recording]
			all := make([][][]byte, len(inputs))
			whole := watch()
			for i, in := range inputs {
				if all[i] = recorded(t, in.file); i == 0 {
					all[i] = clip(all[i], c.until)
				}
				for _, line := range all[i] {
					whole.see(in.source, line)
				}
			}
			want := whole.view()
			if c.until != "" && whole.State() == nil {
				t.Fatal("there is no team to compare")
			}
			rapid.Check(t, func(t *rapid.T) {
				w := watch()
				at := make([]int, len(inputs))
				left := 0
				for _, lines := range all {
					left += len(lines)
				}
				for left > 0 {
					i := rapid.IntRange(0, len(inputs)-1).Draw(t, "source")
					n := min(rapid.IntRange(1, 60).Draw(t, "lines"), len(all[i])-at[i])
					for range n {
						w.see(inputs[i].source, all[i][at[i]])
						at[i]++
						left--
					}
					switch rapid.IntRange(0, 5).Draw(t, "then") {
					case 0:
						saved, err := w.Save()
						if err != nil {
							t.Fatal(err)
						}
						if w.Observer, err = Restore(Options{}, saved, nil); err != nil {
							t.Fatal(err)
						}
					case 1, 2:
						if at[i] > 0 {
							from := rapid.IntRange(0, at[i]-1).Draw(t, "again from")
							to := rapid.IntRange(from, at[i]).Draw(t, "to")
							for _, line := range all[i][from:to] {
								w.see(inputs[i].source, line)
							}
						}
					}
				}
				if got := w.view(); got != want {
					t.Fatalf("observed is\n%s\nas a whole it is\n%s", got, want)
				}
			})
		})
	}
}

// TestCutAnywhere saves and restores at every line of a recording.
func TestCutAnywhere(t *testing.T) {
	for _, name := range []string{"2.1.47 stream", "2.1.329 lead in tmux"} {
		t.Run(name, func(t *testing.T) {
			in := recordings[name][0]
			lines := recorded(t, in.file)
			whole, cut := watch(), watch()
			for i, line := range lines {
				a, b := whole.see(in.source, line), cut.see(in.source, line)
				x, _ := json.Marshal(a)
				y, _ := json.Marshal(b)
				if !bytes.Equal(x, y) {
					t.Fatalf("line %d says\n%s\nand to one that was restored\n%s", i+1, x, y)
				}
				cut.resume(t)
			}
			if whole.view() != cut.view() || whole.Counts() != cut.Counts() {
				t.Errorf("observed is\n%s%+v\nrestored each time\n%s%+v", whole.view(), whole.Counts(),
					cut.view(), cut.Counts())
			}
		})
	}
}

// TestSavedStateIsOlder has a journal that is ahead of the saved observation after a crash, because
// it is written with every record. The agent's stream is read again from an earlier point.
func TestSavedStateIsOlder(t *testing.T) {
	for _, name := range []string{"2.1.47 stream", "2.1.177 stream", "2.1.329 lead in tmux"} {
		t.Run(name, func(t *testing.T) {
			in := recordings[name][0]
			lines := clip(recorded(t, in.file), `"text":"ops done"`)
			whole := watch()
			for _, line := range lines {
				whole.see(in.source, line)
			}
			rapid.Check(t, func(t *rapid.T) {
				w := watch()
				save := rapid.IntRange(0, len(lines)-1).Draw(t, "saved at")
				crash := rapid.IntRange(save, len(lines)).Draw(t, "crash at")
				var saved []byte
				var journal *team.State
				for i := range crash + 1 {
					if i == save {
						var err error
						if saved, err = w.Save(); err != nil {
							t.Fatal(err)
						}
					}
					if i < crash {
						w.see(in.source, lines[i])
					}
				}
				if w.Team() != nil {
					s, err := team.DecodeSnapshot(w.Team().Seq(), string(team.AppendSnapshot(nil, w.Team())))
					if err != nil {
						t.Fatal(err)
					}
					journal = s
				}
				again, err := Restore(Options{}, saved, journal)
				if err != nil {
					t.Fatal(err)
				}
				w.Observer = again
				for _, line := range lines[save:] {
					w.see(in.source, line)
				}
				got, _ := json.Marshal(w.State())
				want, _ := json.Marshal(whole.State())
				if !bytes.Equal(got, want) {
					t.Fatalf("observed is\n%s\nas a whole it is\n%s", got, want)
				}
				if a, b := w.Team().Team().Usage, whole.Team().Team().Usage; a != b {
					t.Fatalf("the team used %+v, not %+v", a, b)
				}
				if len(w.messages) != len(whole.messages) {
					t.Fatalf("%d messages, not %d", len(w.messages), len(whole.messages))
				}
			})
		})
	}
}
