package simtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// patch is a bug that an overlay puts into real code. The patched code calls mutated to ask whether
// the bug is active.
type patch struct {
	file     string // below internal
	old, new string // a piece of the file that occurs once, and its replacement
}

// bugs holds the bugs in real code, by the name of their [Mutant].
var bugs = map[string][]patch{
	"take-living": {{"host/host.go", `if h.Machine.Hosts.Alive(ctx, m.Host) {`,
		`if h.Machine.Hosts.Alive(ctx, m.Host) && !mutated("take-living") {`}},
	"unleased": {{"host/host.go", `	case m.Host == h.ID && m.Status == team.Spawning:`,
		`	case m.Host == "" && mutated("unleased"):
		m.Host, m.Lease = h.ID, m.Lease+1
		h.slot(m, h.Agent(m.Agent))
		m.Host, m.Lease = "", m.Lease-1
		return h.takeOver(ctx, m)
	case m.Host == h.ID && m.Status == team.Spawning:`}},
	"back-together": {{"team/rate_limit.go", `	if spread < time.Millisecond {`,
		`	if spread < time.Millisecond || mutated("back-together") {`}},
	"no-probe": {{"team/rate_limit.go", `	case s.probe(l) == m:`, `	case s.probe(l) == m || mutated("no-probe"):`}},
	"turns-uncounted": {{"team/parallel.go", `	if free == 0 {`, `	if mutated("turns-uncounted") {
		free += 9
	}
	if free == 0 {`}, {"team/parallel.go", `	return before < s.team.MaxParallel`,
		`	return before < s.team.MaxParallel || mutated("turns-uncounted")`}},
	"check-ignored": {{"replica/examine.go", `		if failure != "" {`,
		`		if failure != "" && !mutated("check-ignored") {`}},
	"misfit-completes": {{"replica/examine.go", `; len(errs) > 0 {`,
		`; len(errs) > 0 && !mutated("misfit-completes") {`}},
	"tries-unlimited": {{"team/demands.go", `	if !e.Final() {
		return nil
	}`, `	if !e.Final() || mutated("tries-unlimited") {
		return nil
	}`}},
	"old-slot-stays": {{"host/host.go", `m.Host != h.ID || m.Lease != s.lease || r.over:`,
		`!mutated("old-slot-stays") && (m.Host != h.ID || m.Lease != s.lease) || r.over:`}},
	"aborted-stays": {{"host/host.go", `		switch {
		case m == nil ||`, `		switch {
		case r.over && mutated("aborted-stays"):
		case m == nil ||`}},
	"no-deadline": {{"host/host.go", `	case team.WantStop:
`, `	case team.WantStop:
		if mutated("no-deadline") && m.Shutdown.Answer != "approved" {
			r.wanted[m.Name] = true
			break
		}
`}},
	"no-timer": {{"host/host.go", `		timer.Reset(min(next, h.beat(ctx)))
`, `		if mutated("no-timer") {
			next = time.Hour
		}
		timer.Reset(min(next, h.beat(ctx)))
`}},
	"broken-stays": {{"host/host.go", `func (h *Host) fail(err error) {
`, `func (h *Host) fail(err error) {
	if mutated("broken-stays") {
		return
	}
`}},
	"held-given": {{"host/follow.go", `			mail = st.Inbox(s.member)
`, `			mail = st.Inbox(s.member)
			if mutated("held-given") {
				mail = st.AllMail(s.member)
			}
`}, {"team/state.go", `func (s *State) MessageSeq() int64 { return s.messageSeq }`,
		`func (s *State) MessageSeq() int64 { return s.messageSeq }

func (s *State) AllMail(member string) (mail []Message) {
	for _, seq := range s.member(member).Inbox {
		mail = append(mail, *s.messages[seq])
	}
	return mail
}`}},
	"kept-by-all": {{"host/host.go", `	as := h.sends(0)`, `	if mutated("kept-by-all") {
		if err := h.keepSaved(ctx, m.Name, byUser(h.Replica)); err != nil {
			return err
		}
	}
	as := h.sends(0)`}},
	"never-rests": {{"host/host.go", `	case team.WantRest:
`, `	case team.WantRest:
		if mutated("never-rests") {
			r.wanted[m.Name] = true
			break
		}
`}},
	"given-is-received": {{"host/give.go", `	if err == nil {
		if restates {`, `	if err == nil {
		if mutated("given-is-received") {
			s.arrived(s.post.arrived(p.ID))
		}
		if restates {`}},
	"unsynced-given": {{"host/give.go", `	if err := s.host.Replica.Sync(ctx); err != nil {`,
		`	if mutated("unsynced-given") {
		return s.post.take(mail, carrier), nil
	}
	if err := s.host.Replica.Sync(ctx); err != nil {`}},
	"work-once": {{"host/give.go", `				s.wantAgain(w.Kind)`,
		`				if mutated("work-once") {
					continue
				}
				s.wantAgain(w.Kind)`}},
	"never-yields": {{"host/give.go", `			if !s.requeueTasks(ctx, w.Reason) {`,
		`			if !mutated("never-yields") && !s.requeueTasks(ctx, w.Reason) && !mutated("yields-once") {`}},
	"receipts-ignored": {{"host/follow.go", `			if slices.Contains(u.Seen, m.Seq) {`,
		`			if slices.Contains(u.Seen, m.Seq) && !mutated("receipts-ignored") {`}},
	"report-dropped": {{"host/follow.go", `	if s.ctx.Err() == nil {
		s.host.Log("not recorded for "`, `	if s.ctx.Err() == nil && !mutated("report-dropped") {
		s.host.Log("not recorded for "`}},
	"late-claim": {{"host/follow.go", `!rests || s.post.awaits() {`,
		`!rests || s.post.awaits() || mutated("late-claim") {`}},
	"worker-once": {{"host/follow.go", `	if !s.told {
		s.wantSoon(team.WantWork)`,
		`	if !s.told {
		if !mutated("worker-once") {
			s.wantSoon(team.WantWork)
		}`}},
	"replaced-reads": {{"host/follow.go", `		if m, _ := st.Member(s.member); m.Incarnation == s.incarnation {
			mail =`, `		if m, _ := st.Member(s.member); m.Incarnation == s.incarnation || mutated("replaced-reads") {
			mail =`}},
	"clock-order": {{"host/follow.go", `	return slices.DeleteFunc(mail, func(m team.Message) bool {
		return m.Type == team.TypePlanResponse`, `	if mutated("clock-order") {
		slices.SortStableFunc(mail, func(a, b team.Message) int { return int(a.SentAt - b.SentAt) })
	}
	return slices.DeleteFunc(mail, func(m team.Message) bool {
		return m.Type == team.TypePlanResponse`}},
	"way-forgotten": {{"host/post.go", `p.way[m.Seq]; !known {`, `p.way[m.Seq]; !known || mutated("way-forgotten") {`}},
	"arrival-forgotten": {{"host/post.go", `			p.way[seq] = parcel{carrier: here}
`, `			if p.way[seq] = (parcel{carrier: here}); mutated("arrival-forgotten") {
				delete(p.way, seq)
			}
`}},
	"turns-mixed": {{"host/post.go", `carrier == byTool && len(p.waiting) > 0}`,
		`carrier == byTool && len(p.waiting) > 0 && !mutated("turns-mixed")}`}},
	"traced-early": {{"host/trace.go", `		if err := t.project.Record(`, `		if mutated("traced-early") && j.kind == team.WantRecord {
			w.Commit = w.Base
		} else if err := t.project.Record(`}},
	"trace-once": {{"host/trace.go", `		delete(t.refused, key)
`, `		if !mutated("trace-once") {
			delete(t.refused, key)
		}
`}},
	"no-gate": {{"host/slot.go", `		if gate(false); err != nil`, `		if mutated("no-gate") {
			return nil
		}
		if gate(false); err != nil`}},
	"again-twice": {{"host/slot.go", `	if s.given[w.Kind] == w.Key {
		return
	}
`, `	if s.given[w.Kind] == w.Key {
		return
	}
	if mutated("again-twice") && strings.Contains(w.Key, "/again-") {
		s.post.mu.Lock()
		clear(s.post.way)
		s.post.mu.Unlock()
	}
`}},
	"keeps-mixed": {{"host/slot.go", `keeping: newLock()}`, `keeping: newLock()}
	if mutated("keeps-mixed") {
		s.keeping = make(lock, 100)
	}`}},
	"save-lost": {{"host/save.go", `		err := s.host.do(ctx, &team.SaveWork{`, `		if mutated("save-lost") {
			break
		}
		err := s.host.do(ctx, &team.SaveWork{`}},
	"newer-removed": {{"host/save.go", `|| !bytes.Equal(now.encode(), w.encode()) {`,
		`|| !mutated("newer-removed") && !bytes.Equal(now.encode(), w.encode()) {`}},
	"kept-unflushed": {{"observe/store/watch.go", `		if err := w.Book.Flush(); err != nil {
			return err`, `		if mutated("kept-unflushed") {
		} else if err := w.Book.Flush(); err != nil {
			return err`}},
	"removed-early": {{"engine/upkeep/remove.go", `	if err := host.Settle(ctx, t.shared(), filepath.Join(t.Dir, "hosts"), was.Dir, t.Log); err != nil {`,
		`	if mutated("removed-early") {
	} else if err := host.Settle(ctx, t.shared(), filepath.Join(t.Dir, "hosts"), was.Dir, t.Log); err != nil {`}},
	"refused-kept": {{"host/save.go", `err != nil && holds || !s.leased() {`,
		`err != nil && holds || !s.leased() && !mutated("refused-kept") {`}},
	"other-overwritten": {{"host/save.go", `	} else if there && before.Task != w.Task {`,
		`	} else if there && before.Task != w.Task && !mutated("other-overwritten") {`}},
	"save-left": {{"host/save.go", `s.host.Machine.Saved.Read(ctx, s.member); err != nil || !there {
		return true`, `s.host.Machine.Saved.Read(ctx, s.member); err != nil || !there || mutated("save-left") {
		return true`}, {"host/save.go", `	if err != nil || !there {
		return nil
	}
	return w.keep(ctx, as`, `	if err != nil || !there || mutated("save-left") {
		return nil
	}
	return w.keep(ctx, as`}},
	"age-alone": {{"liveness/detector/detector.go", `	if skewed != l.skewed {`, `	if mutated("age-alone") {
		silent, _ = b.Age(wall)
	}
	if skewed != l.skewed {`}, {"liveness/leader/leader.go", `	case l.o.TakeOver || t.LeadLost != 0 ||`,
		`	case l.o.TakeOver || mutated("age-alone") || t.LeadLost != 0 ||`}},
	"never-leaves": {{"liveness/leader/leader.go", `		case t.LeadSession != l.o.Session:
`, `		case t.LeadSession != l.o.Session && !mutated("never-leaves"):
`}, {"liveness/leader/leader.go", `t.LeadSession != l.o.Session || t.LeadLost != 0 {`,
		`t.LeadSession != l.o.Session && !mutated("never-leaves") ||
			t.LeadLost != 0 && !mutated("lead-stays-lost") {`}},
	"gives-away": {{"liveness/leader/leader.go", `		From: l.o.Session, Left: true}})`, `		From: func() string {
			if mutated("gives-away") {
				return l.o.Replica.Team().LeadSession
			}
			return l.o.Session
		}(), Left: true}})`}},
	"looked-early": {{"liveness/detector/detector.go", `	b, there, err := l.beats().Of(ctx, t.Lead)
`, `	wallBefore, steadyBefore := l.clocks()
	b, there, err := l.beats().Of(ctx, t.Lead)
`}, {"liveness/detector/detector.go", `	silent, skewed := l.lead.LookBy(`, `	if mutated("looked-early") {
		wall, steady = wallBefore, steadyBefore
	}
	silent, skewed := l.lead.LookBy(`}},
	"never-lost": {{"liveness/detector/detector.go", `t.LeadSession == team.User || t.LeadLost != 0 {`,
		`t.LeadSession == team.User || t.LeadLost != 0 || mutated("never-lost") {`}},
	"arrival-unrecorded": {{"host/give.go", `	if len(mail) == 0 {
		return
	}
	var seqs []int64`, `	if len(mail) == 0 || mutated("arrival-unrecorded") {
		return
	}
	var seqs []int64`}},
	"idle-unrecorded": {{"host/follow.go", `	s.record(s.rests(text))
`, `	if !mutated("idle-unrecorded") {
		s.record(s.rests(text))
	}
`}},
	"answer-lost": {{"host/questions.go", `	defer func() { u.Answer(allow, reason) }()
	receipt`, `	defer func() {
		if !mutated("answer-lost") {
			u.Answer(allow, reason)
		}
	}()
	receipt`}},
	"change-unseen": {{"host/host.go", `	go h.watch(watching,`, `	if mutated("change-unseen") {
		watching = ctx
	} else {
		go h.watch(watching,`}, {"host/host.go", `own commands are changes too
`, `own commands are changes too
	}
`}},
	"slot-kept": {{"host/host.go", `	delete(h.slots, s.member)
`, `	if !mutated("slot-kept") {
		delete(h.slots, s.member)
	}
`}},
	"lead-stays-lost": {{"liveness/leader/leader.go", `		case t.LeadLost != 0:
`, `		case t.LeadLost != 0 && !mutated("lead-stays-lost"):
`}}, // and in the second place of never-leaves
	"mail-behind-lost": {{"host/tools.go", `	return strings.TrimSpace(envelope.Batch(s.teamID, s.member, mail)), nil
`, `	if mutated("mail-behind-lost") {
		return "", nil
	}
	return strings.TrimSpace(envelope.Batch(s.teamID, s.member, mail)), nil
`}},
	"pause-keeps-session": {{"host/host.go", `	for _, s := range h.inOrder() {
		s.stop(how, why, h.StopGrace)
	}
`, `	if why == team.PausedReason && mutated("pause-keeps-session") {
		return nil
	}
	for _, s := range h.inOrder() {
		s.stop(how, why, h.StopGrace)
	}
`}},
	"pause-keeps-member": {{"host/host.go", `	for _, m := range mine {
`, `	if why == team.PausedReason && mutated("pause-keeps-member") {
		mine = nil
	}
	for _, m := range mine {
`}},
	"interrupt-forgotten": {{"team/claimable.go", `	if m.Exhausted != "" || m.Interrupt != 0 {`,
		`	if m.Exhausted != "" || m.Interrupt != 0 && !mutated("interrupt-forgotten") {`}, {"team/wants.go",
		`m.Interrupt != 0 || s.orphaned(m)`,
		`m.Interrupt != 0 && !mutated("interrupt-forgotten") || s.orphaned(m)`}},
	"overdue-left": {{"replica/replica.go", `	if err := rep.recordOverdue(ctx); err != nil {`,
		`	if err := rep.recordOverdue(ctx); err != nil && !mutated("overdue-left") {`}, {"replica/replica.go",
		`	rep.View(func(s *team.State) { due, _ = s.Overdue(now) })
`, `	rep.View(func(s *team.State) { due, _ = s.Overdue(now) })
	if mutated("overdue-left") {
		return nil
	}
`}},
}

// inCode reports whether bugs has a bug of that name. Two bugs may patch the same place.
func inCode(name string) bool {
	for _, pieces := range bugs {
		for _, p := range pieces {
			if strings.Contains(p.new, `mutated("`+name+`")`) {
				return true
			}
		}
	}
	return false
}

// asks is the source file that an overlay adds to each patched package.
const asks = `package %s

import "os"

var mutant = os.Getenv("CADRE_MUTANT")

func mutated(name string) bool { return mutant == name }
`

// overlay writes the patched code below dir. It returns the overlay file for the go command.
func overlay(t *testing.T, dir string) string {
	t.Helper()
	internal, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]string{} // by file
	for _, name := range sortedKeys(bugs) {
		for _, p := range bugs[name] {
			if _, read := code[p.file]; !read {
				data, err := os.ReadFile(filepath.Join(internal, filepath.FromSlash(p.file)))
				if err != nil {
					t.Fatal(err)
				}
				code[p.file] = string(data)
				pkg := filepath.Dir(p.file)
				code[pkg+"/mutated.go"] = fmt.Sprintf(asks, filepath.Base(pkg))
			}
			if n := strings.Count(code[p.file], p.old); n != 1 {
				t.Errorf("bug %s replaces a piece of internal/%s that occurs %d times, want once:\n%s\nmend "+
					"its row in bugs", name, p.file, n, p.old)
			}
			code[p.file] = strings.Replace(code[p.file], p.old, p.new, 1)
		}
	}
	replace := map[string]string{}
	for file, text := range code {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(internal, filepath.FromSlash(file))] = to
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestBugsHaveAPlace checks that the code that each bug replaces still occurs exactly once.
func TestBugsHaveAPlace(t *testing.T) {
	overlay(t, t.TempDir())
	for name := range bugs {
		if mutantOf(name) == nil {
			t.Errorf("bug %s has no mutant", name)
		}
	}
}
