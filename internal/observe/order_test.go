package observe

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"

	"pgregory.net/rapid"
)

// life writes the transcripts of a lead and its teammates, each line with its own time.
type life struct {
	now   team.Time
	n     int
	files map[string][][]byte // by member
	all   []filed             // in the order of writing
	gone  map[string]bool     // members that have shut down and got no message since
	sent  int                 // number of messages; a broadcast counts once
	doing map[string]string   // expected activity of each teammate; "" for untested
}

// filed is a line with its file.
type filed struct {
	file string
	line []byte
}

const lifeTeam = "session-11112222"

func newLife() *life {
	return &life{now: epochMillis, files: map[string][][]byte{}, gone: map[string]bool{}, doing: map[string]string{}}
}

func (l *life) line(who string, v obj) {
	l.now += 7
	l.n++
	v["timestamp"] = time.UnixMilli(int64(l.now)).UTC().Format(time.RFC3339Nano)
	if v["parentUuid"] == nil {
		v["parentUuid"] = "line-0"
	}
	v["uuid"], v["sessionId"] = fmt.Sprint("line-", l.n), "11112222-3333"
	if who != protocol.LeadName {
		v["sessionId"], v["teamName"], v["agentName"] = "s-"+who, lifeTeam, who
	}
	line, _ := json.Marshal(v)
	l.files[who] = append(l.files[who], line)
	l.all = append(l.all, filed{who, line})
}

// call writes a tool use; the returned function writes its result.
func (l *life) call(who, tool string, input, result obj) (answer func()) {
	id := fmt.Sprint("toolu_", l.n)
	l.line(who, obj{"type": "assistant", "message": obj{"id": "msg-" + id,
		"content": []any{obj{"type": "tool_use", "id": id, "name": tool, "input": input}}}})
	return func() {
		l.line(who, obj{"type": "user", "toolUseResult": result,
			"message": obj{"content": []any{obj{"type": "tool_result", "tool_use_id": id, "content": "done"}}}})
	}
}

func (l *life) spawn(name string) {
	l.call(protocol.LeadName, "Agent", obj{"name": name, "prompt": "you are " + name, "subagent_type": "worker"},
		obj{"status": "teammate_spawned", "name": name, "agent_id": name + "@" + lifeTeam, "agent_type": "worker",
			"team_name": lifeTeam})()
	l.line(name, obj{"type": "user", "parentUuid": "",
		"message": obj{"content": messageFrom(protocol.LeadName, "you are "+name)}})
}

func messageFrom(who, text string) string {
	return fmt.Sprintf("<teammate-message teammate_id=%q>\n%s\n</teammate-message>", who, text)
}

func (l *life) arrives(from, to, text string) {
	l.doing[to] = "active"
	l.line(to, obj{"type": "user", "message": obj{"content": messageFrom(from, text)}})
}

// word writes a message from a program.
func (l *life) word(from, to string, v obj) {
	v["from"], v["timestamp"] = from, time.UnixMilli(int64(l.now+3)).UTC().Format(time.RFC3339Nano)
	text, _ := json.Marshal(v)
	l.arrives(from, to, string(text))
}

func (l *life) message(from, to, text string) {
	l.sent++
	delete(l.gone, to)
	l.call(from, "SendMessage", obj{"to": to, "message": text},
		obj{"success": true, "routing": obj{"sender": from, "target": "@" + to, "content": text}})()
	l.arrives(from, to, text)
}

// idle ends a turn. Only some versions also say so in the teammate's own transcript.
func (l *life) idle(name string, too bool) {
	if !l.gone[name] {
		l.doing[name] = "idle"
	}
	if too {
		l.line(name, obj{"type": "system", "subtype": "turn_duration"})
	}
	l.word(name, protocol.LeadName, obj{"type": "idle_notification"})
}

// ask asks a teammate to shut down.
func (l *life) ask(name string) (request string) {
	delete(l.gone, name)
	request = fmt.Sprintf("shutdown-%d@%s", l.now, name)
	l.call(protocol.LeadName, "SendMessage", obj{"to": name,
		"message": obj{"type": "shutdown_request", "reason": "enough"}},
		obj{"success": true, "request_id": request, "target": name})()
	l.word(protocol.LeadName, name, obj{"type": "shutdown_request", "requestId": request, "reason": "enough"})
	return request
}

// shutdown asks a teammate to shut down, and writes its answer.
func (l *life) shutdown(name string, goes bool) {
	request := l.ask(name)
	l.call(name, "SendMessage", obj{"to": protocol.LeadName, "message": obj{"type": "shutdown_response",
		"request_id": request,
		"approve":    goes, "reason": "well"}}, obj{"success": true})()
	if !goes {
		l.word(name, protocol.LeadName, obj{"type": "shutdown_rejected", "requestId": request, "reason": "well"})
		return
	}
	l.gone[name], l.doing[name] = true, "shutdown"
	l.word(name, protocol.LeadName, obj{"type": "shutdown_approved", "requestId": request})
	l.word("system", protocol.LeadName, obj{"type": "teammate_terminated", "message": name + " has shut down."})
}

func (l *life) update(who, task, status string) {
	l.doing[who] = "" // it becomes idle when it completes a task and starts no other
	l.call(who, "TaskUpdate", obj{"taskId": task, "status": status, "owner": who},
		obj{"success": true, "taskId": task})()
}

// broadcast sends the same text to all present members; the first gets it before the sender has its
// result.
func (l *life) broadcast(from, text string, to ...string) {
	if to = slices.DeleteFunc(slices.Clone(to), func(name string) bool { return l.gone[name] }); len(to) == 0 {
		return
	}
	l.sent++
	answer := l.call(from, "SendMessage", obj{"to": "*", "message": text}, obj{"success": true, "recipients": to,
		"routing": obj{"sender": from}})
	for i, name := range to {
		if l.arrives(from, name, text); i == 0 {
			answer()
		}
	}
}

// read observes the lines of the files in the order in which next names the files.
func (l *life) read(next func(left []string) string) *watching {
	w, at := watch(), map[string]int{}
	left := slices.Sorted(maps.Keys(l.files))
	for len(left) > 0 {
		name := next(left)
		w.see(name, l.files[name][at[name]])
		if at[name]++; at[name] == len(l.files[name]) {
			left = slices.DeleteFunc(left, func(s string) bool { return s == name })
		}
	}
	return w
}

// orders returns 30 orders for reading files: one file after the other, in up to 15 orders, and
// interleaved.
func orders(files []string) (all []func(left []string) string) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 7))
		order := slices.Clone(files)
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		all = append(all, func(left []string) string {
			if seed%2 == 0 {
				for _, name := range order {
					if slices.Contains(left, name) {
						return name
					}
				}
			}
			return left[random.IntN(len(left))]
		})
	}
	return all
}

// TestAnyOrderOfFiles checks that the final team does not depend on the order in which its
// transcripts are read. It has teammates that come back after a shutdown and teammates that reject
// one, and every line has a time.
func TestAnyOrderOfFiles(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLife()
		names := []string{"alice", "bob"}
		for _, name := range names {
			l.spawn(name)
		}
		tasks := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "who")
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0:
				l.message(protocol.LeadName, name, fmt.Sprint("message ", l.n))
			case 1:
				l.idle(name, rapid.Bool().Draw(t, "too"))
			case 2:
				l.shutdown(name, true)
			case 3:
				l.shutdown(name, false)
			case 4:
				l.message(name, protocol.LeadName, fmt.Sprint("answer ", l.n))
			case 5:
				l.broadcast(protocol.LeadName, fmt.Sprint("all ", l.n), names...)
			case 6:
				l.ask(name)
			case 7:
				tasks++
				id := fmt.Sprint(tasks)
				l.call(protocol.LeadName, "TaskCreate", obj{"subject": "task " + id},
					obj{"task": obj{"id": id, "subject": "task " + id}})()
				l.update(name, id, "in_progress")
			case 8:
				if tasks > 0 {
					l.update(name, fmt.Sprint(tasks), "completed")
				}
			}
		}
		l.holds(t)
	})
}

// TestBackFromItsEnd has a teammate that gets a message after its shutdown, works and becomes idle.
// Only its lead's transcript says that it is idle.
func TestBackFromItsEnd(t *testing.T) {
	l := newLife()
	l.spawn("alice")
	l.shutdown("alice", true)
	l.message(protocol.LeadName, "alice", "one more thing")
	l.idle("alice", false)
	l.holds(t)
	l.ask("alice")
	l.holds(t)
	l.shutdown("alice", true)
	l.holds(t)
}

// holds compares the observed team with the events, for the transcripts in the order of writing and
// in other orders.
func (l *life) holds(t rapid.TB) {
	t.Helper()
	written := watch()
	for _, one := range l.all {
		written.see(one.file, one.line)
	}
	want := written.view()
	for _, m := range written.State().Members {
		if is := l.doing[m.Name]; is != "" && is != m.Status {
			t.Fatalf("%s is %s, and observed is\n%s", m.Name, is, want)
		}
	}
	if written.notices != l.sent {
		t.Fatalf("%d messages are told, and %d were sent", written.notices, l.sent)
	}
	for i, order := range orders(slices.Sorted(maps.Keys(l.files))) {
		if got := l.read(order).view(); got != want {
			t.Fatalf("in order %d observed is\n%s\nas it was written it is\n%s", i, got, want)
		}
	}
}
