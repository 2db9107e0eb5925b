package observe

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/claude/teamfiles/teamfilestest"
	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// filesOfRun returns the notes for the files of a recorded team, one for every change until they
// are removed. It has a follower of its own.
func filesOfRun(t testing.TB, version string) (notes [][]byte) {
	t.Helper()
	type obj = map[string]any
	var name string
	var began team.Time
	waiting := map[string][]obj{}
	for _, c := range teamfilestest.Recording(t, version) {
		dir, file := path.Split(c.Path)
		say := func(note obj) {
			note["team"], note["at"], note["n"] = name, began+team.Time(c.T), len(notes)+1
			rest, err := json.Marshal(note)
			if err != nil {
				t.Fatal(err)
			}
			notes = append(notes, append([]byte(`{"type":"`+protocol.FileNoteType+`",`), rest[1:]...))
		}
		var content any
		if !strings.HasSuffix(file, ".json") || !c.Removed && json.Unmarshal([]byte(c.Content), &content) != nil {
			continue
		}
		switch base := strings.TrimSuffix(file, ".json"); {
		case file == "config.json" && c.Removed:
			return notes
		case file == "config.json":
			if name == "" {
				name = path.Base(dir)
				began = team.Time(content.(obj)["createdAt"].(float64)) - team.Time(c.T)
			}
			say(obj{"config": content})
		case strings.HasPrefix(dir, "tasks/") && c.Removed:
			say(obj{"removed": base})
		case strings.HasPrefix(dir, "tasks/"):
			say(obj{"task": content})
		case strings.HasSuffix(dir, "/inboxes/"):
			same := func(e obj) func(obj) bool {
				return func(o obj) bool { return o["timestamp"] == e["timestamp"] && o["text"] == e["text"] }
			}
			var now []obj
			entries, _ := content.([]any)
			for _, entry := range entries {
				if e := entry.(obj); e["read"] != true {
					now = append(now, e)
					if !slices.ContainsFunc(waiting[base], same(e)) {
						say(obj{"to": base, "key": e["timestamp"].(string) + e["text"].(string), "entry": e})
					}
				}
			}
			for _, e := range waiting[base] {
				if !slices.ContainsFunc(now, same(e)) {
					say(obj{"to": base, "key": e["timestamp"].(string) + e["text"].(string), "entry": e, "taken": true})
				}
			}
			waiting[base] = now
		}
	}
	return notes
}

// note processes a note about the files at a time.
func (s *script) note(name string, at team.Time, what obj) Seen {
	s.Helper()
	s.n++
	what["team"], what["at"], what["n"] = name, at, s.n
	rest, err := json.Marshal(what)
	if err != nil {
		s.Fatal(err)
	}
	s.last = s.Line("files", append([]byte(`{"type":"`+protocol.FileNoteType+`",`), rest[1:]...), at)
	s.all = append(s.all, s.last.Notices...)
	return s.last
}

// rosterFile returns a config.json with teammates that joined at the given times.
func rosterFile(name string, created team.Time, joined map[string]team.Time) obj {
	members := []any{obj{"name": "team-lead", "agentId": "team-lead@" + name, "agentType": "team-lead",
		"joinedAt": created, "cwd": "/w"}}
	for _, who := range slices.Sorted(maps.Keys(joined)) {
		members = append(members, obj{"name": who, "agentId": who + "@" + name, "agentType": "worker",
			"prompt": "you are " + who, "joinedAt": joined[who], "cwd": "/w"})
	}
	return obj{"config": obj{"name": name, "createdAt": created, "leadAgentId": "team-lead@" + name,
		"leadSessionId": "11112222-3333", "members": members}}
}

// TestRosterOfFiles checks that a teammate that approved its shutdown is not back merely because it
// is still on the roster, and that a teammate spawned again is.
func TestRosterOfFiles(t *testing.T) {
	const t0 = team.Time(epochMillis)
	s := play(t)
	s.note("fx", t0, rosterFile("fx", t0, map[string]team.Time{"alice": t0 + 1, "bob": t0 + 1}))
	s.want("fx/lead alice:active bob:active")
	if dir := s.Team().Team().Dir; dir != "/w" {
		t.Errorf("it works in %q", dir)
	}
	approved := obj{"from": "alice",
		"text": `{"type":"shutdown_approved","requestId":"shutdown-1@alice","from":"alice","timestamp":"` +
			stampOf(t0+100) + `"}`}
	s.note("fx", t0+100, obj{"to": "team-lead", "key": "k", "entry": approved})
	s.note("fx", t0+110, rosterFile("fx", t0, map[string]team.Time{"alice": t0 + 1, "bob": t0 + 1}))
	s.want("fx/lead alice:shutdown bob:active")
	s.note("fx", t0+120, rosterFile("fx", t0, map[string]team.Time{}))
	s.want("fx/lead alice:shutdown bob:shutdown") // bob left without a message
	s.note("fx", t0+200, rosterFile("fx", t0, map[string]team.Time{"alice": t0 + 190}))
	s.want("fx/lead alice:active bob:shutdown")
	// With clocks that were set back, both are spawned again before they ended. With a clock that
	// is ahead, carol is spawned tomorrow.
	s.note("fx", t0+300, rosterFile("fx", t0, map[string]team.Time{"carol": t0 + 86_400_000}))
	s.want("fx/lead alice:shutdown bob:shutdown carol:active")
	s.note("fx", t0+400, rosterFile("fx", t0, map[string]team.Time{"alice": t0 - 10, "bob": t0 - 10}))
	s.want("fx/lead alice:active bob:active carol:shutdown")
	// A teammate that shut down and left comes back like one that only left.
	s.note("fx", t0+500, obj{"to": "team-lead", "key": "k2",
		"entry": obj{"from": "alice",
			"text": `{"type":"shutdown_approved","requestId":"shutdown-2@alice","from":"alice"}`}})
	s.note("fx", t0+600, rosterFile("fx", t0, nil))
	s.note("fx", t0+700, rosterFile("fx", t0, map[string]team.Time{"alice": t0 - 10}))
	s.want("fx/lead alice:active bob:shutdown carol:shutdown")
}

// TestLeftOverFiles checks that leftover files do not bring an ended team back, and that a team of
// that name created later is observed.
func TestLeftOverFiles(t *testing.T) {
	const t0 = team.Time(epochMillis)
	s := play(t)
	s.createTeam("fx")
	s.spawn("alice")
	s.do("TeamDelete", obj{}, obj{"success": true, "message": "Cleaned up directories", "team_name": "fx"})
	s.note("fx", s.now+1, rosterFile("fx", t0, map[string]team.Time{"alice": t0 + 5}))
	s.note("fx", s.now+2, obj{"task": obj{"id": "1", "subject": "A", "status": "pending"}})
	s.want("null")
	s.note("fx", s.now+4, rosterFile("fx", s.now+3, nil))
	s.want("fx/lead")
	// This note is sent each time that the team does not exist.
	gone := []byte(`{"type":"` + protocol.FileNoteType + `","team":"fx","at":0,"n":0,"gone":true}`)
	s.Line("files", gone, s.now+5)
	s.want("null")
	s.note("fx", s.now+7, rosterFile("fx", s.now+6, nil))
	s.want("fx/lead")
	s.Line("files", gone, s.now+8)
	s.want("null")
	if got := strings.Count(s.names(), "created"); got != 3 {
		t.Errorf("%d teams were created", got)
	}
}

// TestTeamMadeAnew checks that a team deleted and created again under its name, while no observer
// ran, is a different one, even with a clock that was set back. A session that has its team from
// its start keeps it, whenever its files are written.
func TestTeamMadeAnew(t *testing.T) {
	const t0 = team.Time(epochMillis)
	for _, created := range []team.Time{t0 + 1000, t0 - 1000} {
		s := play(t)
		s.note("fx", t0, rosterFile("fx", t0, map[string]team.Time{"alice": t0 + 1}))
		s.note("fx", t0, obj{"task": obj{"id": "1", "subject": "old", "status": "in_progress", "owner": "alice"}})
		s.note("fx", t0, obj{"to": "alice", "key": "k", "entry": obj{"from": "team-lead", "text": "hello"}})
		first := s.Team()
		s.note("fx", t0+1001, rosterFile("fx", created, map[string]team.Time{"alice": created + 1}))
		s.want("fx/lead alice:active")
		if s.Team().Team().ID == first.Team().ID || first.Exists() || s.Team().MessageSeq() != 0 {
			t.Errorf("the new team continues with the old one, %s", first.Team().ID)
		}
		s.note("fx", t0+1001, obj{"to": "alice", "key": "k", "entry": obj{"from": "team-lead", "text": "hello"}})
		if s.Team().MessageSeq() != 1 {
			t.Errorf("of one message that waits there %d are seen", s.Team().MessageSeq())
		}
		s.note("fx", t0+1002, obj{"gone": true})
		s.want("null")
		s.note("fx", t0+1003, rosterFile("fx", created-500, nil))
		s.want("fx/lead")
		if got := strings.Count(" "+s.names(), " created"); got != 3 {
			t.Errorf("%d teams were created: %s", got, s.names())
		}
	}
	s := play(t)
	s.note("session-11112222", t0, rosterFile("session-11112222", t0, nil))
	s.note("session-11112222", t0, obj{"task": obj{"id": "1", "subject": "A", "status": "pending"}})
	s.note("session-11112222", t0+1001, rosterFile("session-11112222", t0+1000, nil))
	s.want("session-11112222/lead #1:pending")
}

// TestBeforeTheTeamOfFiles checks that the lead's actions before the team's creation do not belong
// to it. The lead had a list of its own, or an earlier team of that name, whose end is not this
// one's.
func TestBeforeTheTeamOfFiles(t *testing.T) {
	const t0 = team.Time(epochMillis)
	s := play(t)
	s.note("fx", t0+5000, rosterFile("fx", t0+4000, map[string]team.Time{"bob": t0 + 4001}))
	s.note("fx", t0+5000, obj{"task": obj{"id": "1", "subject": "new", "status": "pending"}})
	s.task("7", "its own")
	s.createTeam("fx")
	s.spawn("alice")
	s.task("2", "of the earlier team")
	s.as("alice", "second", "fx", "alice")
	s.use("u", "TaskUpdate", obj{"taskId": "1", "status": "completed"})
	s.answer("u", obj{"success": true}, "")
	s.as("lead", "11112222-3333", "", "")
	s.do("TeamDelete", obj{}, obj{"success": true, "team_name": "fx"})
	s.want("fx/lead bob:active #1:pending")
	s.now = t0 + 6000
	s.task("3", "C")
	s.want("fx/lead bob:active #1:pending #3:pending")

	s = play(t) // with a clock that is ahead, the team was created tomorrow
	s.note("fx", t0, rosterFile("fx", t0+86_400_000, nil))
	s.task("1", "A")
	s.want("fx/lead #1:pending")
}

// TestOneTeamOfSeveral checks that one of several teams can be observed by its name, in whatever
// order they appear.
func TestOneTeamOfSeveral(t *testing.T) {
	const t0 = team.Time(epochMillis)
	s := &script{T: t, Observer: New(Options{Of: "fx"}), source: "lead", session: "11112222-3333", now: t0}
	s.createTeam("other")
	s.note("another", t0, rosterFile("another", t0, nil))
	s.as("carol", "c", "third", "carol")
	s.use("u", "TaskUpdate", obj{"taskId": "1", "status": "completed"})
	s.answer("u", obj{"success": true}, "")
	s.want("null")
	s.note("fx", s.now, rosterFile("fx", t0, map[string]team.Time{"alice": t0}))
	s.want("fx/lead alice:active")
}

// TestMailOfFiles checks that a waiting message is pending until it is read, and that a message
// read while no observer ran was delivered.
func TestMailOfFiles(t *testing.T) {
	const t0 = team.Time(epochMillis)
	s := play(t)
	s.note("fx", t0, rosterFile("fx", t0, map[string]team.Time{"alice": t0 + 1}))
	mail := func(text string) obj { return obj{"from": "team-lead", "text": text, "timestamp": text} }
	waits := func(want ...string) {
		t.Helper()
		var got []string
		for _, m := range s.Team().Inbox("alice") {
			got = append(got, m.Body)
		}
		if !slices.Equal(got, want) {
			t.Errorf("for alice there wait %q, not %q", got, want)
		}
	}
	s.note("fx", t0+2, obj{"to": "alice", "key": "p", "entry": mail("you are alice")})
	waits() // her prompt
	for _, text := range []string{"a", "b", "c"} {
		s.note("fx", t0+3, obj{"to": "alice", "key": text, "entry": mail(text)})
	}
	waits("a", "b", "c")
	s.note("fx", t0+4, obj{"to": "alice", "key": "b", "entry": mail("b"), "taken": true})
	waits("a", "c")
	for _, text := range []string{"c"} { // a new follower reports it again
		s.note("fx", t0+5, obj{"to": "alice", "key": text, "entry": mail(text)})
	}
	s.note("fx", t0+5, obj{"whole": obj{"tasks": nil, "waiting": obj{"alice": []any{protocol.Mark("team-lead",
		"alice", "c")}}}})
	waits("c")
	// Two followers find an entry that was read, as first-generation files keep it, and an equal
	// one that waits.
	for n := range 2 {
		s.note("fx", t0+6, obj{"to": "alice", "key": "b", "entry": mail("b")})
		s.note("fx", t0+6, obj{"to": "alice", "key": "b", "entry": mail("b"), "taken": true})
		s.note("fx", t0+6, obj{"to": "alice", "key": "b2", "entry": mail("b")})
		if waits("c", "b"); t.Failed() {
			t.Fatalf("at follower %d", n)
		}
	}
	if got := strings.Count(s.names(), "message:received"); got != 4 {
		t.Errorf("%d messages: %s", got, s.names())
	}
}

func stampOf(at team.Time) string {
	return time.UnixMilli(int64(at)).UTC().Format("2006-01-02T15:04:05.000Z")
}
