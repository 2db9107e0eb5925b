package team

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/testkit/golden"
	"cadre/internal/testkit/soak"
)

// bodies makes an empty command of each kind by its name, for transcripts.
var bodies = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, b := range []Body{
		&CreateTeam{}, &RestoreTeam{}, &SetStatus{}, &CleanUp{}, &SetDelegate{}, &SetBudget{}, &ReportUsage{},
		&CheckBudget{}, &RejectByHook{}, &SwitchHook{}, &AddRule{}, &RemoveRule{},
		&SpawnMember{}, &AttachMember{}, &DetachMember{}, &ReportStarted{}, &ReportStatus{}, &ReportStopped{},
		&ReportFailed{}, &SetMode{},
		&RequestShutdown{}, &AnswerShutdown{}, &WithdrawShutdown{}, &ExpireShutdown{}, &SubmitPlan{}, &AnswerPlan{},
		&ExpirePlan{},
		&ReportTrouble{}, &RetryMember{}, &LiftLimit{}, &GrantTurn{}, &HandOver{}, &Interrupt{}, &AskReport{},
		&GiveReport{},
		&AttachLead{}, &LoseLead{}, &RecordFacts{}, &MoveTeam{}, &SaveWork{}, &RecordWork{}, &RollBackTask{},
		&MarkLate{}, &ResendMessages{}, &ReportOffline{}, &ReportOnline{},
		&LeaveBranch{}, &Consolidate{}, &ReportMerged{}, &ReportStaged{}, &ReportCheck{}, &ReportMade{},
		&ReportConsolidated{}, &AbandonConsolidation{},
		&RequestPermission{}, &AnswerPermission{}, &ExpirePermission{},
		&CreateTask{}, &UpdateTask{}, &ClaimTask{}, &CompleteTask{}, &RejectResult{}, &FailTask{}, &ReleaseTask{},
		&DeleteTask{},
		&Batch{}, &ReviseTeam{}, &ReviseMember{}, &ReviseTask{}, &RedoTask{}, &ExpandTask{},
		&ClaimPaths{}, &ReleasePaths{}, &ReportWrites{},
		&SetNote{}, &AppendNote{}, &DeleteNote{},
		&SendMessage{}, &Broadcast{}, &ReceiveMessages{}, &MarkRead{},
		&BeginChild{}, &ReportChild{}, &EndChild{}, &HearParent{}, &HearChild{}, &PassedToParent{}, &ConfineTeam{},
	} {
		t := reflect.TypeOf(b).Elem()
		all[t.Name()] = t
	}
	return all
}()

// TestTranscripts plays testdata/transcripts/*.txt. Each line that is not indented is a step, and
// the indented lines below it are its result:
//
//	[id=X] ACTOR[/INCARNATION][%LEASE] BODY {fields}   a command: its events, nothing, repeats SEQ, or the refusal
//	at MILLIS                                          the time of the commands that follow
//	wants [MILLIS]                                     what should be true of the outside world, and when to ask again
//	overdue                                            what a process sends before a command of its own
//	show team|member NAME|task ID|inbox NAME|notes|limits|waits   a part of the state
//
// In the fields, $x*N stands for N times the letter x.
func TestTranscripts(t *testing.T) {
	soak.Long(t)
	paths, err := filepath.Glob(filepath.Join("testdata", "transcripts", "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d transcripts: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			golden.File(t, path, string(play(t, string(script))))
		})
	}
}

type stage struct {
	*testing.T
	state   *State
	records []*Record
	now     Time
	steps   int
	out     bytes.Buffer
}

func play(t *testing.T, script string) []byte {
	s := &stage{T: t, state: &State{}}
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		s.out.WriteString(line)
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "at":
			s.now = Time(s.number(rest))
		case "wants":
			now := s.now
			if rest != "" {
				now = Time(s.number(rest))
			}
			s.wants(now)
		case "overdue":
			s.overdue()
		case "show":
			s.show(rest)
		default:
			s.command(line)
		}
	}
	s.replays()
	return s.out.Bytes()
}

func (s *stage) number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *stage) printf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	line = regexp.MustCompile(`x{100,}`).ReplaceAllStringFunc(line,
		func(run string) string { return "$x*" + strconv.Itoa(len(run)) })
	fmt.Fprintf(&s.out, "  %s\n", strings.ReplaceAll(line, "\n", "\n  "))
}

var commandLine = regexp.MustCompile(`^(?:id=(\S+) )?([^\s/%]+)(?:/(\d+))?(?:%(\d+))? (\w+)(?: (\{.*\}))?$`)

func (s *stage) command(line string) {
	m := commandLine.FindStringSubmatch(line)
	if m == nil {
		s.Fatalf("not a step: %s", line)
	}
	kind, ok := bodies[m[5]]
	if !ok {
		s.Fatalf("no command %s: %s", m[5], line)
	}
	s.steps++
	c := Command{ID: m[1], Actor: m[2], At: s.now, Body: reflect.New(kind).Interface().(Body)}
	if c.ID == "" {
		c.ID = "step-" + strconv.Itoa(s.steps)
	}
	if m[3] != "" {
		c.Incarnation = s.number(m[3])
	}
	if m[4] != "" {
		c.Lease = s.number(m[4])
	}
	if m[6] != "" {
		fields := regexp.MustCompile(`\$x\*\d+`).ReplaceAllStringFunc(m[6],
			func(run string) string { return strings.Repeat("x", int(s.number(run[3:]))) })
		d := json.NewDecoder(strings.NewReader(fields))
		d.DisallowUnknownFields()
		if err := d.Decode(c.Body); err != nil {
			s.Fatalf("%s: %v", line, err)
		}
	}
	before := string(AppendSnapshot(nil, s.state))
	decision, err := Decide(s.state, c)
	if string(AppendSnapshot(nil, s.state)) != before {
		s.Errorf("the decision changed the state: %s", line)
	}
	switch {
	case err != nil:
		s.printf("refused %s: %v%s", CodeOf(err), err, hintLines(err))
		if now := NoteOf(err); now != nil {
			s.json(now)
		}
	case decision.Repeats != 0:
		s.printf("repeats %d", decision.Repeats)
	case decision.Record == nil:
		s.printf("nothing")
	default:
		s.records = append(s.records, decision.Record)
		s.state.Apply(decision.Record)
		for _, e := range decision.Record.Events {
			s.printf("%d %s %s", decision.Record.Seq, e.Kind(), encode(e, false, nil))
		}
	}
	if err := invariants(s.state); err != nil {
		s.Errorf("after %s: %v", line, err)
	}
}

func (s *stage) wants(now Time) {
	wants, next := s.state.Wants(now)
	for _, w := range wants {
		line := fmt.Sprintf("%s %s", w.Kind, w.Key)
		if len(w.Seqs) > 0 {
			line += fmt.Sprintf(" %v", w.Seqs)
		}
		if w.Reason != "" {
			line += " (" + w.Reason + ")"
		}
		s.printf("%s", line)
	}
	if len(wants) == 0 {
		s.printf("nothing")
	}
	if next != 0 {
		s.printf("again at %d", next)
	}
}

func (s *stage) overdue() {
	due, next := s.state.Overdue(s.now)
	for _, body := range due {
		s.printf("%s", reflect.TypeOf(body).Elem().Name())
	}
	if len(due) == 0 {
		s.printf("nothing")
	}
	if next != 0 {
		s.printf("more at %d", next)
	}
}

func (s *stage) show(what string) {
	thing, name, _ := strings.Cut(what, " ")
	switch thing {
	case "team":
		s.json(s.state.Team())
	case "member":
		m, _ := s.state.Member(name)
		s.json(m)
	case "roster":
		for _, m := range s.state.Roster() {
			s.json(m)
		}
	case "task":
		t, _ := s.state.Task(name)
		s.json(t)
	case "limits":
		for _, l := range s.state.RateLimits() {
			s.printf("%+v", l)
		}
	case "waits":
		for _, m := range s.state.Members() {
			s.printf("%s waits for a turn: %v", m.Name, s.state.WaitsForTurn(m.Name, s.now))
		}
	case "notes":
		for _, n := range s.state.Notes() {
			s.json(n)
		}
	case "inbox":
		for _, m := range s.state.Inbox(name) {
			s.json(m)
		}
	default:
		s.Fatalf("nothing to show: %s", what)
	}
}

func (s *stage) json(v json.Marshaler) {
	data, err := v.MarshalJSON()
	if err != nil || !json.Valid(data) {
		s.Errorf("%s: %v", data, err)
	}
	s.printf("%s", data)
}

// replays checks that the records give the same state again, from their encoding and through a
// snapshot in the middle.
func (s *stage) replays() {
	want := string(AppendSnapshot(nil, s.state))
	again := &State{}
	for i, r := range s.records {
		if i == len(s.records)/2 {
			again = reopened(s, again)
		}
		again.Apply(recoded(s, r))
	}
	if got := string(AppendSnapshot(nil, again)); got != want {
		s.Errorf("replayed\n%s\nwant\n%s", got, want)
	}
}

type fataler interface{ Fatalf(string, ...any) }

// reopened returns the state as another process reads it from a snapshot.
func reopened(t fataler, s *State) *State {
	again, err := DecodeSnapshot(s.Seq(), string(AppendSnapshot(nil, s)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return again
}

// recoded returns the record as another process reads it.
func recoded(t fataler, r *Record) *Record {
	again, err := DecodeRecord(r.Seq, string(AppendRecord(nil, r)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return again
}

// hintLines returns the hints of a refusal, one per line.
func hintLines(err error) string {
	var b strings.Builder
	for _, h := range HintsOf(err) {
		data, _ := json.Marshal(h)
		fmt.Fprintf(&b, "\n    to %s: %s", h.Purpose(), data)
	}
	return b.String()
}
