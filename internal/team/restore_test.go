package team

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parted returns the state as a checkpoint keeps it, and the closed tasks.
func parted(s *State) (kept Kept, closed []string) {
	for i := range s.tasks {
		if !s.tasks[i].Status.open() {
			closed = append(closed, string(encode(&s.tasks[i], true, nil)))
		}
	}
	return Keep(s), closed
}

// TestRestoredIsAsItWas checks that a team that is restored from a checkpoint of any state is as if
// all its hosts had died, and its counters continue from numbers that were never used.
func TestRestoredIsAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := foundedBy(t, rapid.SampledFrom([]string{External, "claude"}).Draw(t, "lead"))
		for n := range rapid.IntRange(1, 150).Draw(t, "steps") {
			if d, err := Decide(s, drawCommand(t, s, n+1)); err == nil && d.Record != nil {
				s.Apply(d.Record)
			}
		}
		data, closed := parted(s)
		kept, err := data.State(s.Seq(), closed)
		if err != nil {
			t.Fatalf("%v\n%+v\n%v", err, data, closed)
		}
		same(t, "the checkpoint holds", kept, forgetful(t, s))

		at := s.team.UpdatedAt + 10
		d, err := Decide(&State{}, Command{ID: "restore", Actor: User, At: at, Body: &RestoreTeam{From: kept}})
		if !s.Exists() {
			if CodeOf(err) != Finished {
				t.Fatalf("a team that was cleaned up is restored: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		same(t, "afterwards the checkpoint holds", kept, forgetful(t, s))
		one, other := &State{}, &State{}
		one.Apply(d.Record)
		other.Apply(recoded(t, d.Record))
		same(t, "read again it is", other, one)
		if err := invariants(one); err != nil {
			t.Fatal(err)
		}
		if one.team.Restored != (Restored{ID: "restore", Seq: s.Seq()}) || one.Position() != s.Seq()+1 {
			t.Fatalf("it continues at %d after %+v", one.Position(), one.team.Restored)
		}
		want := forgetful(t, s)
		// no session leads
		want.team.LeadSession, want.team.LeadAgent, want.team.LeadSince, want.team.LeadLost, want.team.HeldAfter = "",
			false, 0, 0, 0
		for _, m := range want.Members() {
			if m.Host == "" {
				continue
			}
			d, err := Decide(want, Command{ID: "detach " + m.Name, Actor: Host(m.Host), At: at,
				Body: &DetachMember{Member: m.Name, Reason: "the team was restored from a checkpoint"}})
			if err != nil && CodeOf(err) != Finished { // a team that has ended has no hosts
				t.Fatal(err)
			}
			if d.Record != nil {
				want.Apply(d.Record)
			}
		}
		settle(t, one, want)
		same(t, "restored it is", forgetful(t, one), forgetful(t, want))

		// Two states from one record must not share anything that changes.
		for n := range 20 {
			c := drawCommand(t, other, 1000+n)
			if d, err := Decide(other, c); err == nil && d.Record != nil {
				other.Apply(d.Record)
			}
		}
		again := &State{}
		again.Apply(d.Record)
		settle(t, again, want)
		same(t, "restored once more it is", forgetful(t, again), forgetful(t, want))
		if err := invariants(other); err != nil {
			t.Fatalf("continuing: %v", err)
		}
	})
}

// forgetful returns a copy of the state with only what a checkpoint keeps. It lacks commands,
// places of messages, answers, things that a hook stopped, and rate limits.
func forgetful(t fataler, s *State) *State {
	again := reopened(t, s)
	again.recent, again.lastMail, again.answers, again.rejections, again.rateLimits = recent{}, nil, nil, nil, nil
	return again
}

func same(t fataler, what string, got, want *State) {
	if got, want := string(AppendSnapshot(nil, got)), string(AppendSnapshot(nil, want)); got != want {
		t.Fatalf("%s\n%s\nwant\n%s", what, got, want)
	}
}

// settle removes the leap from what was restored, after a check that no counter runs backwards.
// Then s must not differ from want in anything else.
func settle(t fataler, s, want *State) {
	back := func(what string, n *int64, old int64, leaps bool) {
		if leaps {
			*n -= leap
		}
		if *n != old {
			t.Fatalf("%s is %d after the leap, and was %d", what, *n, old)
		}
	}
	external := func(name string) bool { m := s.member(name); return m == nil || m.Agent == External }
	s.team.Restored, s.team.UpdatedAt = Restored{}, want.team.UpdatedAt
	for i := range s.members {
		m, old := &s.members[i], &want.members[i]
		back("incarnation", &m.Incarnation, old.Incarnation, !external(m.Name))
		back("lease", &m.Lease, old.Lease, !external(m.Name))
		if m.Told.Notes != old.Told.Notes { // it was told of the notes as they are after the leap
			back("told notes", &m.Told.Notes, old.Told.Notes, true)
		}
		for n := range min(len(m.Inbox), len(old.Inbox)) {
			if seq := m.Inbox[n]; seq == old.Inbox[n]+leap {
				m.Inbox[n] = old.Inbox[n]
				if msg := s.messages[seq]; msg != nil {
					delete(s.messages, seq)
					msg.Seq = m.Inbox[n]
					s.messages[msg.Seq] = msg
				}
			}
		}
	}
	for seq, msg := range s.messages {
		if old := want.messages[seq]; old != nil {
			back("incarnation of a message", &msg.Incarnation, old.Incarnation, old.Incarnation != 0 &&
				!external(msg.To))
			for n := range min(len(msg.News), len(old.News)) {
				if is, was := &msg.News[n].Told, old.News[n].Told; is.Notes != was.Notes {
					back("notes told with a message", &is.Notes, was.Notes, true)
				}
			}
		}
	}
	for i := range s.permissions {
		p := &s.permissions[i]
		back("incarnation of a request", &p.Incarnation, want.permissions[i].Incarnation, !external(p.Member))
	}
	for i := range s.tasks {
		task := &s.tasks[i]
		back("fence", &task.Fence, want.tasks[i].Fence, task.Status == Pending || task.Status == InProgress &&
			!external(task.Owner))
	}
	if want.noteSeq > 0 {
		back("changes of notes", &s.noteSeq, want.noteSeq, true)
	}
	back("messages", &s.messageSeq, want.messageSeq, true)
	back("numbers of no message", &s.unsent, want.unsent, true)
	back("requests", &s.requestSeq, want.requestSeq, true)
}

// TestRestoredElsewhere checks that the paths of a team that is restored in another clone are those
// there, also of files in the projects of teams around it. A path outside them stays.
func TestRestoredElsewhere(t *testing.T) {
	s := &State{}
	for i, body := range []Body{&CreateTeam{TeamID: "T1", Name: "demo", Dir: "/old/app", Base: Base{Top: "/old"}, MaxDepth: 1,
		Origin: "/old/app/team.yaml", Facts: []Fact{{Name: "spec", Path: "/old/docs/spec.md", SHA256: "x"}}},
		&SpawnMember{Name: "in", Agent: NestedTeam, Nested: &Nested{File: "/old/teams/in.yaml", Digest: "d"}},
		&SpawnMember{Name: "around", Agent: NestedTeam, Nested: &Nested{File: "/outer/in.yaml", Digest: "d"}},
		&SpawnMember{Name: "out", Agent: NestedTeam, Nested: &Nested{File: "/oldest/in.yaml", Digest: "d"}}} {
		d, err := Decide(s, Command{ID: fmt.Sprint(i), Actor: User, At: 1, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	d, err := Decide(&State{}, Command{ID: "restore", Actor: User, At: 2, Body: &RestoreTeam{From: s, Dir: "/new/app",
		Base: &Base{Top: "/new"}, Moved: []Moved{{"/outer", "/inner"}}}})
	if err != nil {
		t.Fatal(err)
	}
	one := &State{}
	one.Apply(d.Record)
	got := []string{one.team.Dir, one.team.Origin, one.team.Facts[0].Path}
	for _, m := range one.Members()[1:] {
		got = append(got, m.Nested.File)
	}
	want := []string{"/new/app", "/new/app/team.yaml", "/new/docs/spec.md", "/new/teams/in.yaml", "/inner/in.yaml",
		"/oldest/in.yaml"}
	if !slices.Equal(got, want) {
		t.Errorf("its paths are %q, want %q", got, want)
	}
	if now, _ := s.Member("in"); now.Nested.File != "/old/teams/in.yaml" {
		t.Errorf("the checkpoint was changed: %s", now.Nested.File)
	}
}

func TestRestoreRefuses(t *testing.T) {
	s, _ := founded(t)
	gone := forgetful(t, s)
	gone.Apply(&Record{Seq: gone.Seq() + 1, ID: "gone", Actor: User, Events: []Event{&TeamCleanedUp{}}})
	for name, c := range map[string]struct {
		actor string
		on    *State
		body  RestoreTeam
		code  Code
	}{
		"by a member":     {"lead", &State{}, RestoreTeam{From: s}, Denied},
		"a living team":   {User, s, RestoreTeam{From: s}, Taken},
		"nothing":         {User, &State{}, RestoreTeam{}, Invalid},
		"an empty state":  {User, &State{}, RestoreTeam{From: &State{}}, Invalid},
		"what is gone":    {User, &State{}, RestoreTeam{From: gone}, Finished},
		"a relative path": {User, &State{}, RestoreTeam{From: s, Dir: "here"}, Invalid},
	} {
		if _, err := Decide(c.on, Command{ID: "x", Actor: c.actor, At: 1, Body: &c.body}); CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	d, err := Decide(&State{}, Command{ID: "x", Actor: User, At: 1, Body: &RestoreTeam{From: s, Dir: "/elsewhere"}})
	if err != nil || d.Record.Events[0].(*TeamRestored).Team.Dir != "/elsewhere" {
		t.Errorf("%v", err)
	}
}

func TestDamagedCheckpoint(t *testing.T) {
	s, _ := founded(t)
	for i, body := range []Body{&ClaimTask{Task: "1", Member: "ann"}, &CompleteTask{Task: "1", Member: "ann"},
		&SendMessage{To: "ann", Body: "hello"}} {
		d, err := Decide(s, Command{ID: fmt.Sprint("more", i), Actor: User, At: 100, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	data, closed := parted(s)
	if _, err := data.State(s.Seq(), closed); err != nil {
		t.Fatal(err)
	}
	changed := func(change func(*Kept)) Kept {
		bad := data
		bad.Members, bad.Tasks = slices.Clone(bad.Members), slices.Clone(bad.Tasks)
		change(&bad)
		return bad
	}
	replace := func(in *string, from, to string) {
		if !strings.Contains(*in, from) {
			t.Fatalf("%s is not in %s", from, *in)
		}
		*in = strings.Replace(*in, from, to, 1)
	}
	for name, c := range map[string]struct {
		data   Kept
		closed []string
		says   string
	}{
		"a closed task is missing": {data, nil, "task 1 is missing"},
		"a closed task is none":    {data, []string{"{"}, "a task"},
		"a message is missing":     {changed(func(k *Kept) { k.Messages = nil }), closed, "is missing"},
		"a message is none":        {changed(func(k *Kept) { k.Messages = []Piece{{1, "["}} }), closed, "a message"},
		"an open task is missing": {changed(func(k *Kept) { replace(&k.Tasks[1].JSON, `"id":"3"`, `"id":"4"`) }),
			closed, "task 3 is missing"},
		"a member is there twice": {changed(func(k *Kept) { replace(&k.Members[2], `"name":"bob"`, `"name":"ann"`) }),
			closed, "two members"},
		"a member is none": {changed(func(k *Kept) { k.Members[1] = "" }), closed, "a member"},
		"the lead is not the first": {changed(func(k *Kept) {
			replace(&k.Members[0], `"name":"lead"`,
				`"name":"bab"`)
		}), closed, "lead"},
		"it is of a later version": {changed(func(k *Kept) { replace(&k.Team, `"v":1`, `"v":2`) }), closed, "newer"},
		"it is cut off": {changed(func(k *Kept) { k.Team = k.Team[:len(k.Team)/2] }), closed,
			"not a valid"},
		"the project is cut off": {changed(func(k *Kept) { k.Base = "{" }), closed, "what the project was"},
	} {
		if _, err := c.data.State(s.Seq(), c.closed); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
