package checkpoint

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"cadre/internal/render/redact"
	"cadre/internal/team"
)

// secrets have known shapes, put together so that scanners do not take this file for a leak. Only a
// rule of gitleaks knows the last one.
var secrets = []string{
	"sk-" + "ant-api03-Zx81kfQw0Lm2Np4Rs6Tv",
	"gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a",
	"lin" + "_api_" + "4f8Ks02mQz71LpXw9Rt3Vb6Nc5Jh0Dg8Ye2Ua1Zi",
}

func TestRedactJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"body":"PASSWORD=hunter2\n"}`:                    `{"body":"PASSWORD=[redacted]\n"}`,
		`{"env":["A=b","NONE=","MY_TOKEN=abc"],"x":"A=b"}`: `{"env":["A=[redacted]","NONE=","MY_TOKEN=[redacted]"],"x":"A=b"}`,
		`{"args":["--api-key","abc","--verbose"]}`:         `{"args":["--api-key","[redacted]","--verbose"]}`,
		`{"metadata":{"api_token":"abc","n":1,"id":"` + secrets[0] +
			`"},"owner":"ann"}`: `{"metadata":{"api_token":"[redacted]","n":1,"id":"[redacted]"},"owner":"ann"}`,
		`{"text":"see ` + "lin" + "_api_4f8Ks02mQz71LpXw9Rt3Vb6Nc5Jh0Dg8Ye2Ua1Zi" + `"}`: `{"text":"see [redacted]"}`,
		`{"text":"\u0073k-abcdefghijklmnopqrstuv <&>"}`:                                  `{"text":"[redacted] <&>"}`,
		`{"name":"` + secrets[1] + `","description":"` + secrets[1] + `"}`: `{"name":"` + secrets[1] +
			`","description":"[redacted]"}`,
		`{"a": [1 ,{"b":"PASSWORD=pw"}, "MY_SECRET=yz"] }`: `{"a": [1 ,{"b":"PASSWORD=[redacted]"}, "MY_SECRET=[redacted]"] }`,
	} {
		if got := string(RedactJSON([]byte(in))); got != want {
			t.Errorf("%s\ngives %s\nnot   %s", in, got, want)
		}
	}
}

// TestNoSecretIsKept puts a secret wherever a text can be, and looks for it in everything that a
// checkpoint writes.
func TestNoSecretIsKept(t *testing.T) {
	t.Parallel()
	w := newWork(t, "T1")
	secret := secrets[0]
	w.do(t, team.User, &team.SpawnMember{Name: "eve", Agent: "claude", Prompt: "Use " + secret,
		Env: []string{"API_TOKEN=topsecret", "PLAIN=hunterhunter", "EMPTY="}, Args: []string{"--token", "topsecret"}})
	w.do(t, "lead", &team.CreateTask{Subject: "with " + secret, Description: secret, Run: "PASSWORD=topsecret make",
		Metadata: map[string]json.RawMessage{"token": json.RawMessage(`"topsecret"`)}})
	w.do(t, "ann", &team.ClaimTask{Task: "3"})
	w.do(t, "lead", &team.RejectByHook{Hook: "TaskCreated", Member: "ann", Task: "with " + secret, Feedback: secret})
	w.do(t, "ann", &team.CompleteTask{Task: "3", Result: "Authorization: Bearer topsecret1"})
	w.do(t, "ann", &team.SendMessage{To: "eve", Body: "here: " + secret})
	w.do(t, "bob", &team.SubmitPlan{Plan: "log in with " + secret})
	w.do(t, "ann", &team.SetNote{Key: "login", Text: "log in with " + secret})
	shelf := &memory{}
	s := &Store{team: "demo", shelf: shelf}
	if _, err := s.Write(t.Context(), w, Beside{}); err != nil {
		t.Fatal(err)
	}
	for name, text := range shelf.files {
		if strings.Contains(string(text), secret[6:]) || strings.Contains(string(text), "topsecret") ||
			strings.Contains(string(text), "hunterhunter") {
			t.Errorf("%s has it:\n%s", name, text)
		}
	}
	r, err := s.Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eve, _ := r.State.Member("eve")
	if !reflect.DeepEqual(eve.Env, []string{"EMPTY="}) || eve.Prompt != "Use "+Mark || len(r.Redacted) != 3 ||
		!strings.Contains(r.Redacted[0].Text, "API_TOKEN of eve") {
		t.Errorf("%+v\n%+v", eve, r.Redacted)
	}
}

// TestRedactedCommandsAreHeldBack checks that no command runs that redaction changed.
func TestRedactedCommandsAreHeldBack(t *testing.T) {
	t.Parallel()
	w := &work{state: &team.State{}}
	w.do(t, team.User, &team.CreateTeam{TeamID: "T1", Name: "demo", Dir: "/d",
		Checks: []team.Check{{Name: "build", Command: "make"},
			{Name: "push", Command: "PUSH_TOKEN=topsecret make push"}},
		Hooks: []team.Hook{{Event: "TaskCompleted", Command: "make lint"},
			{Event: "TaskCompleted", Command: "API_TOKEN=topsecret notify"}}})
	w.do(t, "lead", &team.SpawnMember{Name: "sh", Agent: team.Shell})
	for _, run := range []string{"make all", "API_TOKEN=topsecret make deploy", "API_TOKEN=topsecret make again"} {
		w.do(t, "lead", &team.CreateTask{Subject: run[len(run)-4:], Run: run, Retries: 2})
	}
	w.do(t, team.Host("h1"), &team.AttachMember{Member: "sh"})
	w.do(t, team.Host("h1"), &team.ReportStarted{Member: "sh", Session: "s"})
	w.do(t, "sh", &team.ClaimTask{Task: "3"})
	s := &Store{team: "demo", shelf: &memory{}}
	if _, err := s.Write(t.Context(), w, Beside{}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said string
	var hints []team.Hint
	for _, lost := range r.Redacted {
		said += lost.Text + "\n"
		hints = append(hints, lost.Hints...)
	}
	if want := []team.Hint{{Action: team.ActSetCommand, Team: "demo", Task: "2"},
		{Action: team.ActSetCommand, Team: "demo", Task: "3"}}; !reflect.DeepEqual(hints, want) {
		t.Errorf("got the hints %+v, want %+v", hints, want)
	}
	if !reflect.DeepEqual(r.Checks, []string{"push"}) || strings.Count(said, "\n") != 3 ||
		!strings.Contains(said, "the command of task 2 was redacted") ||
		!strings.Contains(said, "a hook of the team for TaskCompleted was redacted") {
		t.Errorf("checks %q; %s", r.Checks, said)
	}
	if _, err := team.Decide(&team.State{}, r.Command("x", r.At+1, "",
		team.Check{Name: "pull", Command: "make"})); team.CodeOf(err) != team.Invalid {
		t.Errorf("a check that the team does not have is given: %v", err)
	}
	d, err := team.Decide(&team.State{}, r.Command("restored", r.At+1, "",
		team.Check{Name: "push", Command: "make push"}))
	if err != nil {
		t.Fatal(err)
	}
	again := &work{state: &team.State{}, records: []*team.Record{d.Record}, sent: 1000}
	again.state.Apply(d.Record)
	if got := again.state.Team(); !reflect.DeepEqual(got.Checks, []team.Check{{Name: "build", Command: "make"},
		{Name: "push", Command: "make push"}}) || len(got.Hooks) != 1 {
		t.Errorf("checks %+v, hooks %+v", got.Checks, got.Hooks)
	}
	claimable := func() (ids []string) {
		for _, task := range again.state.Claimable("sh") {
			ids = append(ids, task.ID)
		}
		return ids
	}
	if got := claimable(); !reflect.DeepEqual(got, []string{"1"}) {
		t.Errorf("the shell may run the tasks %v", got)
	}
	run := "make deploy"
	again.do(t, team.User, &team.UpdateTask{Task: "2", Run: &run})
	if got := claimable(); !reflect.DeepEqual(got, []string{"1", "2"}) {
		t.Errorf("with a new command the shell may run the tasks %v", got)
	}
	if task, _ := again.state.Task("2"); task.Run != run || task.Failure != "" {
		t.Errorf("%+v", task)
	}
}

// FuzzRedactJSON checks that JSON stays JSON of the same shape, a known secret is removed, and text
// without a sign of a secret is not changed.
func FuzzRedactJSON(f *testing.F) {
	for _, secret := range secrets {
		f.Add("before ", secret, " after")
	}
	f.Add("PASSWORD=", "\"x\\", "\n")
	f.Add("-----BEGIN PRIVATE KEY-----", "\\u0000", "\"}")
	f.Fuzz(func(t *testing.T, before, middle, after string) {
		text := before + middle + after
		in, err := json.Marshal(map[string]any{"body": text, "list": []any{text, 1, nil, text},
			"metadata": map[string]any{"k": text, text: true}, "name": middle})
		if err != nil {
			t.Skip()
		}
		out := RedactJSON(in)
		var was, is map[string]any
		if err := json.Unmarshal(in, &was); err != nil {
			t.Skip()
		}
		if err := json.Unmarshal(out, &is); err != nil {
			t.Fatalf("%s\nbecame\n%s\n%v", in, out, err)
		}
		if was["name"] != is["name"] || len(was["list"].([]any)) != len(is["list"].([]any)) || len(was) != len(is) {
			t.Fatalf("%s\nbecame\n%s", in, out)
		}
		if !redact.Suspicious(text) && !strings.Contains(string(in), `\u`) && string(out) != string(in) {
			t.Fatalf("%s\nbecame\n%s", in, out)
		}
		for _, secret := range secrets {
			body, _ := is["body"].(string)
			if strings.Contains(" "+text+" ", " "+secret+" ") && strings.Contains(" "+body+" ", " "+secret+" ") {
				t.Fatalf("%s\nbecame\n%s", in, out)
			}
		}
	})
}
