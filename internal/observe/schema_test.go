package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cadre/internal/observe/present"
	"cadre/internal/observe/protocol"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemas validates against the published schema's definitions, and rejects unknown fields.
type schemas struct {
	t      testing.TB
	closed anyMap
	of     map[string]*jsonschema.Resolved
}

func published(t testing.TB) *schemas {
	t.Helper()
	s := &schemas{t: t, of: map[string]*jsonschema.Resolved{}}
	if err := json.Unmarshal([]byte(present.Schema), &s.closed); err != nil {
		t.Fatal(err)
	}
	for _, def := range s.closed["$defs"].(anyMap) {
		if def := def.(anyMap); def["properties"] != nil {
			def["additionalProperties"] = false
		}
	}
	return s
}

// validate checks a value against a definition; "" for the definition of a line.
func (s *schemas) validate(name string, v any) error {
	s.t.Helper()
	if s.of[name] == nil {
		doc := maps.Clone(s.closed)
		if name != "" {
			delete(doc, "oneOf")
			doc["$ref"] = "#/$defs/" + name
		}
		data, err := json.Marshal(doc)
		if err != nil {
			s.t.Fatal(err)
		}
		var one jsonschema.Schema
		if err := json.Unmarshal(data, &one); err != nil {
			s.t.Fatal(err)
		}
		if s.of[name], err = one.Resolve(nil); err != nil {
			s.t.Fatal(err)
		}
	}
	return s.of[name].Validate(v)
}

// told calls each for all lines for consumers of a recording, and session for the session after
// each line.
func told(t testing.TB, name string, each func(line []byte), session func(present.Session)) {
	t.Helper()
	o := New(Options{})
	say := func(v any) {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		each(line)
	}
	live, first := present.NewLive(o)
	say(first)
	n := 0
	for _, in := range recordings[name] {
		for _, line := range recorded(t, in.file) {
			n++
			seen := o.Line(in.source, line, epochMillis+team.Time(n))
			for _, s := range seen.Supplements {
				say(s)
			}
			for _, n := range seen.Notices {
				say(n)
			}
			if patch := live.Next(o, seen.Records); patch != nil {
				say(present.StateLine{Type: present.SessionPatch, Patch: patch})
			}
			session(present.SessionOf(o))
		}
	}
}

// TestSchema validates every line for consumers of every recording, and the session at every line,
// against the published schema. It compares the guards with the schema, also for invalid values.
func TestSchema(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s := published(t)
	kinds := map[string]int{}
	samples := map[string]any{} // a line of each type, and other values
	for _, name := range slices.Sorted(maps.Keys(recordings)) {
		told(t, name, func(line []byte) {
			var v anyMap
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
			if err := s.validate("", v); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
			kind := fmt.Sprint(v["type"])
			if kinds[kind]++; samples[kind] == nil || len(v) > len(samples[kind].(anyMap)) {
				samples[kind] = v
			}
		}, func(session present.Session) {
			v := generic(t, session)
			if err := s.validate("Session", v); err != nil {
				t.Errorf("%s: %+v: %v", name, session, err)
			}
			if session.Team != nil && len(session.Team.Members) > 0 && len(session.Team.Tasks) > 0 {
				samples["Session"] = v
			}
		})
	}
	t.Log(kinds)

	// Cases that no recording has, as an observer makes them.
	approved, text := true, "text"
	for _, n := range []present.Notice{{Type: present.Gap, From: "lead", Reason: "a line was cut off"},
		{Type: present.MemberFailed, Member: &present.TeamMember{Name: "a", AgentID: "a@t",
			AgentType: "worker", Status: "shutdown", Model: "m", Color: "c"}, Reason: "out of memory"},
		{Type: present.PlanRequested, From: "a", Plan: &text}, {Type: present.ShutdownResponse, Name: "a", Approved: &approved,
			Reason: "done"}, {Type: present.MemberIdle, Member: &present.TeamMember{Name: "a", AgentID: "a@t",
			AgentType: "worker", Status: "idle"}}} {
		if kinds[n.Type] == 0 {
			kinds[n.Type]++
			samples[n.Type] = generic(t, n)
		}
		if err := s.validate("", generic(t, n)); err != nil {
			t.Errorf("%+v: %v", n, err)
		}
	}
	for _, kind := range []string{present.Created, present.Deleted, present.MemberJoined, present.MemberIdle,
		present.MemberShutdown, present.MemberFailed, present.TaskCreated,
		present.TaskClaimed, present.TaskCompleted, present.MessageReceived,
		present.ShutdownRequested, present.ShutdownResponse, present.PlanRequested, present.PlanResolved, present.Gap,
		string(protocol.StateChange), string(protocol.TaskUpdate),
		string(protocol.Message), present.SessionUpdate, present.SessionPatch} {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
		if !strings.Contains(present.Schema, `"const": "`+kind+`"`) {
			t.Errorf("%s is not in the schema", kind)
		}
		delete(kinds, kind)
	}
	if len(kinds) > 0 {
		t.Errorf("more is said than is listed here: %v", kinds)
	}

	session := samples["Session"].(anyMap)
	state := session["team"].(anyMap)
	guards := []struct {
		definition string
		guard      func([]byte) bool
		samples    []any
	}{
		{"Session", present.IsSession, []any{session}},
		{"TeamState", present.IsTeamState, []any{state}},
		{"TeamMember", present.IsTeamMember, state["members"].([]any)},
		{"TeamTask", present.IsTeamTask, state["tasks"].([]any)},
		{"TeamMessage", present.IsTeamMessage, []any{samples[string(protocol.Message)]}},
		{"TeamTaskUpdate", present.IsTeamTaskUpdate, []any{samples[string(protocol.TaskUpdate)]}},
		{"TeamStateChange", present.IsTeamStateChange, []any{samples[string(protocol.StateChange)]}},
		{"Event", present.IsTeamEvent, slices.Collect(func(yield func(any) bool) {
			for _, kind := range slices.Sorted(maps.Keys(samples)) {
				if strings.HasPrefix(kind, "team:") && !yield(samples[kind]) {
					return
				}
			}
		})},
	}
	open := published(t)
	for _, def := range open.closed["$defs"].(anyMap) {
		delete(def.(anyMap), "additionalProperties")
	}
	for _, g := range guards {
		if len(g.samples) == 0 {
			t.Errorf("there is no %s", g.definition)
		}
		wrong := 0
		for _, sample := range g.samples {
			for v := range mutations(sample) {
				data, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				var again any
				if err := json.Unmarshal(data, &again); err != nil {
					t.Fatal(err)
				}
				is, err := g.guard(data), open.validate(g.definition, again)
				if is != (err == nil) {
					t.Errorf("%s: the guard says %t of %s: %v", g.definition, is, data, err)
				}
				if !is {
					wrong++
				}
			}
			if data, _ := json.Marshal(sample); !g.guard(data) || g.guard(append([]byte("["), append(data, ']')...)) ||
				g.guard(bytes.TrimSuffix(data, []byte("}"))) {
				t.Errorf("%s: %s", g.definition, data)
			}
		}
		if wrong < 20 {
			t.Errorf("%s: only %d wrong ones", g.definition, wrong)
		}
	}
}

// mutations yields values that differ from v in one place.
func mutations(v any) func(yield func(any) bool) {
	others := []any{nil, "", "x", "0", "12", true, false, 1.5, []any{}, []any{nil}, anyMap{}}
	return func(yield func(any) bool) {
		for _, other := range others {
			if !yield(other) {
				return
			}
		}
		switch v := v.(type) {
		case anyMap:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				less := maps.Clone(v)
				delete(less, key)
				renamed := maps.Clone(less)
				renamed[strings.ToUpper(key)] = v[key]
				if !yield(less) || !yield(renamed) {
					return
				}
				for one := range mutations(v[key]) {
					changed := maps.Clone(v)
					changed[key] = one
					if !yield(changed) {
						return
					}
				}
			}
			more := maps.Clone(v)
			more["more"] = 1.0
			if !yield(more) {
				return
			}
		case []any:
			for i := range v {
				for one := range mutations(v[i]) {
					changed := slices.Clone(v)
					changed[i] = one
					if !yield(changed) {
						return
					}
				}
			}
		}
	}
}
