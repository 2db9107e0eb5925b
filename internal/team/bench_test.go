package team

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"
)

// crowd returns a team with that many tasks, some done and some blocked, as a snapshot would have
// them.
func crowd(t fataler, tasks int) *State {
	s := &State{}
	do := func(actor string, b Body) {
		d, err := Decide(s, Command{ID: fmt.Sprint("crowd-command-number-", s.Seq()), Actor: actor,
			At: 1_700_000_000_000 + Time(s.Seq()), Body: b})
		if err != nil {
			t.Fatalf("%v", err)
		}
		s.Apply(d.Record)
	}
	do(User, &CreateTeam{TeamID: "t1", Name: "crowd", Dir: "/repo"})
	for i := range 10 {
		do("lead", &SpawnMember{Name: fmt.Sprint("worker-", i), Agent: External, Role: "worker",
			Prompt: "work off the list"})
	}
	for i := 1; i <= tasks; i++ {
		b := &CreateTask{Subject: fmt.Sprintf("Look at the module number %d", i), Run: "make check MODULE=module-" +
			fmt.Sprint(i),
			Description: "Read the module, note what is \"wrong\" with it,\nand say so."}
		if i%4 == 0 {
			b.Metadata = map[string]json.RawMessage{"module": json.RawMessage(fmt.Sprint(i))}
			b.BlockedBy = []string{fmt.Sprint(i - 1), fmt.Sprint(i - 2)}
		}
		do("lead", b)
	}
	for i := range tasks / 2 {
		worker := fmt.Sprint("worker-", i%10)
		do(worker, &ClaimTask{})
		d, _ := s.Member(worker)
		held := s.holds(d.Name)
		if i%100 != 0 {
			do(worker, &CompleteTask{Task: held[len(held)-1].ID, Result: "exit status 0\nall 12 checks passed\n"})
		}
	}
	return s
}

func BenchmarkRecord(b *testing.B) {
	for name, e := range map[string]Event{
		"claim": &TaskClaimed{Task: "4711", Member: "worker-7", Fence: 3},
		"message": &MessageSent{Message: Message{Seq: 99, From: "worker-7", To: "lead", Type: TypeMessage,
			Priority: "normal", Body: "Task 4711 is done: 12 checks passed.\nThe log is in build/check.log."}},
	} {
		r := &Record{Seq: 1, ID: "01JD7Z8V9QK3W5X7Y9Z1A3B5C7", Actor: "worker-7", At: 1_700_000_000_000,
			Events: []Event{e}}
		line := string(AppendRecord(nil, r))
		b.Run("encode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = AppendRecord(buf[:0], r)
			}
		})
		b.Run("decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeRecord(1, line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkApply measures what a process that follows a team does with each record: read it and
// apply it. A task with When always behind a long chain of tasks makes no difference.
func BenchmarkApply(b *testing.B) {
	for _, always := range []bool{false, true} {
		b.Run(fmt.Sprintf("always=%t", always), func(b *testing.B) { benchmarkApply(b, always) })
	}
}

func benchmarkApply(b *testing.B, always bool) {
	s := crowd(b, 10_000)
	if always {
		d, err := Decide(s, Command{ID: "chain", Actor: User, Body: chain(3000, 10_000)})
		if err != nil {
			b.Fatal(err)
		}
		s.Apply(d.Record)
	}
	claim := string(AppendRecord(nil, &Record{ID: "01JD7Z8V9QK3W5X7Y9Z1A3B5C7", Actor: "worker-7",
		At: 1_700_000_000_000, Events: []Event{&TaskClaimed{Task: "9000", Member: "worker-7", Fence: 3}}}))
	release := string(AppendRecord(nil, &Record{ID: "01JD7Z8V9QK3W5X7Y9Z1A3B5C8", Actor: "worker-7",
		At: 1_700_000_000_000, Events: []Event{&TaskReleased{Task: "9000"}}}))
	ids := make([]string, 3*Remembered) // more than a team remembers
	for i := range ids {
		ids[i] = fmt.Sprintf("01JD7Z8V9QK3W5X7Y9Z1%06d", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		line := claim
		if i%2 == 1 {
			line = release
		}
		r, err := DecodeRecord(s.Seq()+1, line)
		if err != nil {
			b.Fatal(err)
		}
		r.ID = ids[i%len(ids)]
		s.Apply(r)
	}
}

// chain adds n tasks to the first ones, each waiting for the one before, and behind them a task
// with When always that waits for all of them.
func chain(n, first int) *Batch {
	b := &Batch{}
	always := &CreateTask{Subject: "report", When: Always}
	for i := range n {
		link := &CreateTask{Subject: "link"}
		if i > 0 {
			link.BlockedBy = []string{fmt.Sprint(first + i)}
		}
		always.BlockedBy = append(always.BlockedBy, fmt.Sprint(first+i+1))
		b.Bodies = append(b.Bodies, link)
	}
	b.Bodies = append(b.Bodies, always)
	return b
}

func BenchmarkDecide(b *testing.B) {
	for name, c := range map[string]Command{
		"claim-next": {ID: "x", Actor: "worker-1", Body: &ClaimTask{}},
		"send":       {ID: "x", Actor: "worker-1", Body: &SendMessage{To: "lead", Body: "done"}},
		"nothing":    {ID: "x", Actor: "lead", Body: &ClaimTask{Task: "10000"}},
	} {
		s := crowd(b, 10_000)
		for how, s := range map[string]*State{"resident": s, "reopened": reopened(b, s)} {
			b.Run(name+"/"+how, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Decide(s, c)
				}
			})
		}
	}
}

// BenchmarkDecodeSnapshot reads a team of 10,000 tasks. ratio is the time of encoding/json for the
// same bytes, divided by ours.
func BenchmarkDecodeSnapshot(b *testing.B) {
	data := AppendSnapshot(nil, crowd(b, 10_000))
	text := string(data)
	var plain struct {
		Team     map[string]any
		Members  []Member
		Tasks    []plainTask
		Commands []string
		Seqs     []int64 `json:"commandSeqs"`
	}
	began := time.Now()
	const rounds = 3
	for range rounds {
		if err := json.Unmarshal(data, &plain); err != nil {
			b.Fatal(err)
		}
	}
	theirs := time.Since(began) / rounds
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeSnapshot(1, text); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(theirs)/(float64(b.Elapsed())/float64(b.N)), "ratio")
}

// plainTask is a Task as encoding/json would read it.
type plainTask struct {
	ID, Subject, Description, ActiveForm, Status, Owner, Role, Priority, Run, Failure, Result, CreatedBy,
	CompletedBy string
	Assigned bool
	BlockedBy,
	Blocks []string
	TimeoutMs, Retries, Fence, Attempts, Failures, CreatedAt, UpdatedAt, StartedAt,
	CompletedAt int64
	Metadata map[string]json.RawMessage
	Usage    Usage
}

func BenchmarkEncodeSnapshot(b *testing.B) {
	s := crowd(b, 10_000)
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = AppendSnapshot(buf[:0], s)
	}
	b.SetBytes(int64(len(buf)))
}

// BenchmarkMailbox sends one message to an inbox and takes the oldest. The ten-thousandth message
// must be as fast as the first.
func BenchmarkMailbox(b *testing.B) {
	for _, waiting := range []int{1, 16_000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			s, _ := founded(b)
			do := func(actor string, body Body) {
				d, err := Decide(s, Command{ID: fmt.Sprint("m", s.Seq()), Actor: actor, Body: body})
				if err != nil {
					b.Fatal(err)
				}
				s.Apply(d.Record)
			}
			for range waiting {
				do("lead", &SendMessage{To: "ann", Body: "hello"})
			}
			b.ReportAllocs()
			for b.Loop() {
				do("lead", &SendMessage{To: "ann", Body: "hello"})
				do("ann", &ReceiveMessages{Max: 1})
			}
		})
	}
}

// BenchmarkGroup compares a group of a thousand tasks with as many tasks that were added one by
// one and for which one task waits, from their creation to the end of the last.
func BenchmarkGroup(b *testing.B) {
	for _, kind := range []string{"group", "plain"} {
		b.Run(kind, func(b *testing.B) {
			for range b.N {
				s, _ := founded(b)
				n := 0
				do := func(body Body) {
					n++
					d, err := Decide(s, Command{ID: strconv.Itoa(n), Actor: User, At: 1, Body: body})
					if err != nil {
						b.Fatal(err)
					}
					s.Apply(d.Record)
				}
				var all []string
				if kind == "group" {
					do(&CreateTask{Name: "g", Subject: "g", ForEach: &ForEach{Items: items(MaxItems)}})
					for _, t := range s.Made(s.byName("g").ID) {
						all = append(all, t.ID)
					}
				} else {
					for i := range MaxItems {
						do(&CreateTask{Name: "g-" + strconv.Itoa(i), Subject: "g"})
						all = append(all, s.tasks[len(s.tasks)-1].ID)
					}
					do(&CreateTask{Name: "g", Subject: "g", BlockedBy: all})
				}
				for _, id := range all {
					do(&ClaimTask{Task: id, Member: "ann"})
					do(&CompleteTask{Task: id, Member: "ann", Result: "ok"})
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*MaxItems), "ns/task")
		})
	}
}
