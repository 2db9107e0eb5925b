package board

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"cadre/internal/agent/agenttest"
)

// withAgent starts a server in a home in which the real agent of that name talks to a scripted model.
func withAgent(t *testing.T, name string, script agenttest.Script) (*world, *agenttest.Server) {
	t.Helper()
	if chromium == "" {
		t.Skip("no Chromium is installed")
	}
	model := agenttest.NewServer(t, script)
	its := agenttest.NewWorld(t, model, agenttest.Installed(t, name))
	w := &world{t: t, home: filepath.Join(its.Home, ".cadre"), dir: its.Dir}
	w.env = append(its.Env, "CADRE_HOME="+w.home, "TZ=UTC")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(model.Story())
		}
	})
	w.start()
	return w, model
}

// phone opens a page that is 360 pixels wide, and is touched.
func phone(t *testing.T) *tab {
	t.Helper()
	b := browse(t, 360, 740)
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
	return b
}

// tap touches the button of that name, where it is on the page, as soon as there is one. Another
// element in front of it would be touched instead.
func (b *tab) tap(name string) {
	b.t.Helper()
	quoted, _ := json.Marshal(name)
	find := `(() => {
		const e = [...document.querySelectorAll("dialog[open] button, main button, aside button")].find(e => !e.disabled && e.offsetParent &&
			(e.getAttribute("aria-label") || e.innerText).trim() === ` + string(quoted) + `);
		if (!e) return [];
		e.scrollIntoView({block: "center"});
		const at = e.getBoundingClientRect(), x = at.x + at.width / 2, y = at.y + at.height / 2;
		return e.contains(document.elementFromPoint(x, y)) ? [x, y] : [];
	})()`
	b.until(find + ".length")
	at := js[[]float64](b, find)
	if len(at) < 2 {
		b.t.Fatalf("the button %s went away", name)
	}
	b.do(chromedp.TapXY(at[0], at[1]))
}

// plans is a model that submits two plans, runs a command, completes its task, and says what it did.
// The end of what it says comes when it may.
func plans(shell func(command string) agenttest.Turn, may <-chan struct{}) agenttest.Script {
	return func(r *agenttest.Request) agenttest.Turn {
		use := func(tool string, input map[string]any) agenttest.Turn { return agenttest.Use(r.Tool(tool), input) }
		command := shell("touch building; until test -e go; do sleep 0.05; done; echo the build is done")
		submitted := r.Calls(r.Tool("SubmitPlan"))
		switch {
		case !r.Has("is yours now"):
			return agenttest.Say("I wait for a task.")
		case submitted == 0:
			return use("SubmitPlan", map[string]any{"plan": "Just write."})
		case submitted == 1 && r.Has("think of tests"):
			return use("SubmitPlan", map[string]any{"plan": "Write with tests."})
		case !r.Has("Your plan is approved"):
			return agenttest.Say("I wait for the answer.")
		case r.Calls(command.Calls[0].Name) == 0:
			return command
		case r.Calls(r.Tool("TaskUpdate")) == 0:
			return use("TaskUpdate", map[string]any{"taskId": "1", "status": "completed", "result": "built"})
		}
		return agenttest.Turn{Text: "It began here; it ended there.", Half: func(ctx context.Context) {
			select {
			case <-may:
			case <-ctx.Done():
			}
		}}
	}
}

// TestAgentsOnAPhone steers a real agent from a page that is 360 pixels wide, by touch: it rejects a
// plan and approves the next one, and allows a command. Then it looks at the session while the
// command runs, and while the model writes.
func TestAgentsOnAPhone(t *testing.T) {
	shells := map[string]func(command string) agenttest.Turn{
		"claude": func(c string) agenttest.Turn {
			return agenttest.Use("Bash", map[string]any{"command": c, "description": "build"})
		},
		"codex": func(c string) agenttest.Turn {
			return agenttest.Use("exec_command", map[string]any{"cmd": c, "yield_time_ms": 30000})
		},
	}
	for name, shell := range shells {
		t.Run(name, func(t *testing.T) {
			may := make(chan struct{})
			w, model := withAgent(t, name, plans(shell, may))
			there := func(file string) bool {
				_, err := os.Stat(filepath.Join(w.dir, file))
				return err == nil
			}
			w.cadre("create", "demo", "--goal", "Port the parser")
			t.Cleanup(func() { w.cadre("cleanup", "demo", "--force") })
			w.cadre("spawn", "demo", "ann", "--agent", name, "--plan-approval")
			w.cadre("task", "add", "demo", "write", "--owner", "ann")

			b := phone(t)
			b.login(w, "#team=demo")
			b.shows("Just write.")
			b.tap("Reject …")
			b.until("document.querySelector('dialog[open] textarea')")
			b.do(chromedp.Focus("dialog[open] textarea"), chromedp.KeyEvent("think of tests"))
			b.tap("Reject")
			b.shows("The plan of ann is rejected.")
			b.shows("Write with tests.")
			b.tap("Approve")
			b.shows("The plan of ann is approved.")
			if there("building") {
				t.Error("the command ran before the plan was approved")
			}
			b.shows("touch building")
			if there("building") {
				t.Error("the command ran before it was allowed")
			}
			b.tap("Allow once")
			b.shows("ann may do it.")
			b.until("!document.querySelector('li.wait')")
			w.eventually("the command runs", func() bool { return there("building") })

			b.login(w, "#team=demo&member=ann")
			b.shows("until test -e go")
			if err := os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			b.shows("the build is done")
			b.shows("It began here;")
			if strings.Contains(js[string](b, "document.body.innerText"), "it ended there.") {
				t.Error("the page shows the end of a text that the model has not written")
			}
			close(may)
			b.shows("It began here; it ended there.")
			b.until("document.documentElement.scrollWidth <= 360")
			w.asTold(model)
		})
	}
}

// asTold checks that the model was told of the feedback, and that the history has each answer once.
func (w *world) asTold(model *agenttest.Server) {
	w.t.Helper()
	model.WaitFor(w.t, "the feedback", func(r *agenttest.Request) bool { return r.Has("think of tests") })
	log := w.cadre("log", "demo")
	for _, once := range []string{"the plan of ann was rejected: think of tests", "the plan of ann was approved"} {
		if n := strings.Count(log, once); n != 1 {
			w.t.Errorf("%q is %d times in the log:\n%s", once, n, log)
		}
	}
	if list := w.cadre("task", "list", "demo"); !strings.Contains(list, "completed") {
		w.t.Errorf("the tasks are\n%s", list)
	}
	if waits := w.cadre("attention", "demo"); !strings.HasPrefix(waits, "Nothing waits for you.") {
		w.t.Errorf("after the answers: %s", waits)
	}
}
