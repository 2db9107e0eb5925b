package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/access"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// escapes are the ways in which a shell task tries to act as another member. TRY stands for the
// command that calls cadre. If the way begins with env -i, the environment of TRY has only the
// folders.
var escapes = []struct {
	name, way string
	daemon    bool // it is no longer a descendant of the task: without subreapers nothing catches it
	says      string
}{
	{"as it is", "TRY", false, "the session of x in team demo"},
	{"without the variables", "env -u CADRE_TEAM -u CADRE_MEMBER_NAME -u CADRE_TEAM_ID -u CADRE_PROC TRY", false,
		"the session of x in team demo"},
	{"without an environment", "env -i TRY", false, "the session of x in team demo"},
	{"as the lead", "env CADRE_MEMBER_NAME=lead TRY", false, `CADRE_MEMBER_NAME says "lead"`},
	{"as a member of the other team", "env CADRE_TEAM=other CADRE_MEMBER_NAME=z TRY", false,
		`CADRE_MEMBER_NAME says "z"`},
	{"as a hook", "env CADRE_HOOK_EVENT=TaskCompleted CADRE_MEMBER_NAME=lead TRY", false,
		"the session of x in team demo"},
	{"in a session of its own", "env -i setsid --wait TRY", false, "the session of x in team demo"},
	{"in the background", "(env -i nohup TRY &)", true, "the session of x in team demo"},
	{"as a daemon", "env -i setsid sh -c '(TRY &)'", true, "a session of team demo"},
	{"as a daemon of a daemon", "env -i setsid setsid sh -c '(setsid sh -c \"TRY\" &)'", true,
		"a session of team demo"},
	{"in a PID namespace", "unshare -Urpf --mount-proc env -i TRY", false, "this process cannot see it"},
	{"in a PID namespace, as the lead", "unshare -Urpf --mount-proc env CADRE_MEMBER_NAME=lead TRY", false,
		"this process cannot see it"},
	{"in a time namespace", "unshare -UrTf --boottime 100000 env -i TRY", false, "this process cannot see it"},
	{"by a link to the home", "env -i CADRE_HOME=LINK TRY", false, "the session of x in team demo"},
	{"by a home with a link to the teams", "env -i CADRE_HOME=TEAMS TRY", false, "the session of x in team demo"},
}

// outside lists the calls that no session may make, by their row in the table. Each would work for
// the user.
var outside = map[string][][]string{
	"run":             {{"run", "file.yaml"}},
	"create":          {{"create", "third"}},
	"host":            {{"host", "demo"}, {"host", "other"}},
	"hosts":           {{"hosts"}, {"hosts", "--drain", "one"}},
	"resume":          {{"resume", "demo"}, {"resume", "demo", "--take-over"}, {"resume", "other", "--take-over"}},
	"serve":           {{"serve"}, {"serve", "other"}, {"serve", "--all", "--yes"}, {"serve", "--stop"}},
	"serve token add": {{"serve", "token", "add", "mine", "--role", "admin"}},
	"serve token ls":  {{"serve", "token", "ls"}},
	"serve token rm":  {{"serve", "token", "rm", "admin"}},
	"board":           {{"board", "--print"}},
	"pause":           {{"pause", "demo"}, {"pause", "other"}},
	"abort":           {{"abort", "demo", "--yes"}, {"abort", "other", "--yes"}},
	"cleanup":         {{"cleanup", "demo", "--force"}, {"cleanup", "other", "--force"}},
	"consolidate":     {{"consolidate", "demo", "--no-commit"}, {"consolidate", "other", "--no-commit"}},
	"checkpoint":      {{"checkpoint", "other"}},
	"store init":      {{"store", "init", "--store", "postgres://y@localhost:1/x"}},
	"store migrate":   {{"store", "migrate", "--store", "postgres://y@localhost:1/x"}},
	"store move":      {{"store", "move", "demo", "files", "postgres://y@localhost:1/x"}},
	"trust":           {{"trust"}, {"trust", "--yes"}, {"trust", "--list"}, {"trust", "--revoke"}},
	"notify":          {{"notify"}, {"notify", "--test"}},
	"hooks dir":       {{"hooks", "--dir", "."}},
	"hooks disable":   {{"hooks", "disable", "demo", "TaskCreated"}, {"hooks", "disable", "other", "TaskCreated"}},
	"hooks enable":    {{"hooks", "enable", "demo", "TaskCreated"}},
	"hooks try":       {{"hooks", "try", "demo", "TaskCreated"}, {"hooks", "try", "--dir", ".", "TaskCreated"}},
	"mode":            {{"mode", "demo", "y", "bypassPermissions"}, {"mode", "other", "z", "bypassPermissions"}},
	"permit always": {{"permit", "demo", "permission-1@x", "--always"},
		{"permit", "other", "permission-2@z", "--always"}},
	"permission add":   {{"permission", "add", "demo", "Bash", "--yes"}, {"permission", "add", "other", "Edit"}},
	"permission rm":    {{"permission", "rm", "demo", "Bash"}, {"permission", "rm", "other", "Bash"}},
	"delegate":         {{"delegate", "demo", "on"}, {"delegate", "other", "on"}},
	"budget tokens":    {{"budget", "demo", "--tokens", "1"}, {"budget", "other", "--tokens", "1"}},
	"budget usd":       {{"budget", "demo", "--member", "x", "--usd", "1"}},
	"budget time":      {{"budget", "demo", "--time", "1h"}},
	"budget unlimited": {{"budget", "demo", "--unlimited"}},
	"watch":            {{"watch"}, {"watch", "demo"}},
	"attach":           {{"attach", "demo", "y"}, {"attach", "other", "z"}},
	"panes": {{"panes", "demo"}, {"panes", "other", "--teammate-mode", "tmux"},
		{"panes", "demo", "--close"}},
	"handover":            {{"handover", "other", "z"}},
	"interrupt":           {{"interrupt", "demo", "y"}, {"interrupt", "other", "z"}},
	"reassign":            {{"reassign", "demo", "1", "y", "--force"}, {"reassign", "other", "1", "z"}},
	"join":                {{"join", "theirs", "--name", "x", "--agent", "shell"}},
	"claude-teammate":     {{"claude-teammate", "--agent-name", "x", "--team-name", "theirs"}},
	"report-killed":       {{"report-killed", "theirs", "x", "again"}},
	"push":                {{"push", "demo", "--yes"}, {"push", "demo", "--release"}, {"push", "other", "--yes"}},
	"pull":                {{"pull", "demo"}, {"pull", "third"}},
	"task rollback":       {{"task", "rollback", "demo", "1"}, {"task", "rollback", "other", "1"}},
	"fsck mend":           {{"fsck", "demo", "--mend"}, {"fsck", "other", "--mend"}},
	"facts add":           {{"facts", "demo", "--add", "file.yaml"}},
	"facts record":        {{"facts", "demo", "--record"}},
	"observe as-team":     {{"observe", "file.yaml", "--as-team", "third"}},
	"observe claude-team": {{"observe", "--claude-team", "theirs"}},
	"spawn command":       {{"spawn", "demo", "eve", "--command", "/bin/true"}},
	"spawn arg":           {{"spawn", "demo", "eve", "--arg", "-v"}},
	"spawn env":           {{"spawn", "demo", "eve", "--env", "A=1"}},
	"shutdown graceful":   {{"shutdown", "demo", "--graceful"}},
	"task add run":        {{"task", "add", "demo", "run-it", "--run", "false"}},
	"task add check":      {{"task", "add", "demo", "check-it", "--check", "false"}},
	"task add until":      {{"task", "add", "demo", "try-it", "--until", "false"}},
	"task add file":       {{"task", "add", "demo", "--file", "tasks.yaml"}},
	"task update run":     {{"task", "update", "demo", "2", "--run", "false"}},
}

// strange lists calls that the table lets a member make, but with a place or a name of another
// member.
var strange = [][]string{
	{"status", "other"}, {"log", "other"}, {"fsck", "other"}, {"task", "list", "other"}, {"task", "show", "other", "1"},
	{"inbox", "other", "lead"}, {"hooks", "other"},
	{"task", "add", "other", "mine"}, {"task", "claim", "other", "1"}, {"task", "done", "other", "1"},
	{"task", "rm", "other", "1"},
	{"send", "other", "--to", "lead", "hello"}, {"broadcast", "other", "hello"}, {"spawn", "other", "eve"},
	{"shutdown", "other", "z"},
	{"mcp", "--team", "other"}, {"mcp", "--team", "third"}, {"mcp", "--team", "demo", "--as", "lead"},
	{"inbox", "demo", "lead"}, {"inbox", "demo", "lead", "--peek"}, {"inbox", "demo", "y", "--again"},
	{"send", "demo", "--as", "lead", "--to", "y", "push-it"}, {"broadcast", "demo", "--as", "y", "hello"},
	{"task", "done", "demo", "2", "--as", "lead"}, {"task", "claim", "demo", "2", "--as", "y"},
	{"task", "rm", "demo", "2", "--as", "@user"},
	{"spawn", "demo", "eve"}, {"shutdown", "demo", "y"}, {"permit", "demo", "1"}, {"plan", "demo", "1", "--approve"},
	{"resend", "demo", "y"}, {"inbox", "demo", "y", "--all"}, {"leave", "demo", "--as", "y"},
	{"plan", "submit", "demo", "--as", "y", "mine"}, {"plan", "list", "other"}, {"permit", "list", "other"},
}

// TestNoSessionGetsOut checks that a shell task cannot run any forbidden command, by any way out of
// its session. Each attempt is refused with status 2 and a reason, and changes nothing.
func TestNoSessionGetsOut(t *testing.T) {
	t.Parallel()
	for _, row := range access.Commands() {
		if row.Rule == access.User && len(outside[row.Name]) == 0 {
			t.Errorf("the user may call cadre %s, but the test does not try it", row.Name)
		}
		for _, f := range row.Flags {
			if f.Rule == access.User && len(outside[row.Name+" "+f.Name]) == 0 {
				t.Errorf("the user may call cadre %s --%s, but the test does not try it", row.Name, f.Name)
			}
		}
	}
	w := newWorld(t)
	w.repository()
	w.write("file.yaml", "name: third\nmembers: [{name: ann, agent: shell}]\ntasks: [{id: a, run: 'true'}]\n")
	w.write(".claude/settings.json",
		`{"hooks": {"TaskCreated": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}}`)
	w.must("create", "other", "--check", "true")
	w.must("spawn", "other", "z", "--agent", "external")
	w.must("task", "add", "other", "look")
	w.must("create", "demo", "--check", "true")
	w.must("spawn", "demo", "x")
	w.must("spawn", "demo", "y", "--agent", "external")
	w.must("send", "demo", "--as", "y", "--to", "lead", "for the lead alone")
	link, aliased := filepath.Join(w.root, "link"), filepath.Join(w.root, "aliased")
	if err := errors.Join(os.Symlink(w.home, link), os.Mkdir(aliased, 0o700), os.Symlink(filepath.Join(w.home, "teams"),
		filepath.Join(aliased, "teams"))); err != nil {
		t.Fatal(err)
	}

	calls := slices.Clone(strange)
	for _, row := range outside {
		calls = append(calls, row...)
	}
	w.write("try.sh", w.caller(`"$PROGRAM" "$@" </dev/null >"$TO.out" 2>"$TO.err"`))
	var lanes [3]strings.Builder // concurrent, because an attempt waits more than it works
	type tried struct {
		to, how, says string
		call          []string
	}
	var all []tried
	for i, e := range escapes {
		if e.daemon && runtime.GOOS != "linux" || !canTry(t, e.way) {
			continue
		}
		for k, call := range calls {
			if every := soak.Of(3, 1); (i+k)%every != 0 { // each way tries some calls, and each call some ways
				continue
			}
			one := tried{to: filepath.Join(w.root, fmt.Sprintf("tried-%d-%d", i, k)), how: e.name,
				says: e.says, call: call}
			all = append(all, one)
			lanes[i%len(lanes)].WriteString(tryOnce(e.way, filepath.Join(w.dir, "try.sh"), one.to, call, link, aliased))
		}
	}
	script := ""
	for i := range lanes {
		script += "(\n" + lanes[i].String() + ") &\n"
	}
	w.write("escape.sh", script+"wait\n")
	before := w.must("log", "other", "--json")
	w.must("task", "add", "demo", "break out", "--owner", "x", "--timeout", "10m", "--run", "sh escape.sh")
	w.must("task", "add", "demo", "something to do", "--blocked-by", "1")
	within(t, 10*patience, "everything was tried", func() bool {
		if task := w.task("1"); task.OutOfRetries() {
			t.Fatalf("the script of the attempts does not run: %s\n%s", task.Failure, task.Result)
		}
		return !slices.ContainsFunc(all, func(one tried) bool { return !has(one.to + ".rc") })
	})
	w.until("the task is over", func(s *team.State) bool {
		task, _ := s.Task("1")
		return task.StartedAt != 0 && task.Status != team.InProgress
	})

	failed := 0
	for _, one := range all {
		text := func(end string) string { out, _ := os.ReadFile(one.to + end); return string(out) }
		rc, out, errs := strings.TrimSpace(text(".rc")), text(".out"), text(".err")
		if rc != "2" || out != "" || !strings.HasPrefix(errs, "cadre: ") {
			if failed++; failed < 40 {
				t.Errorf("cadre %s, %s: exit status %s; printed %q; error %q", strings.Join(one.call, " "), one.how,
					rc, out, errs)
			}
			continue
		}
		if slices.ContainsFunc(outside[one.call[0]], func(c []string) bool { return slices.Equal(c, one.call) }) &&
			!strings.Contains(errs, one.says) {
			t.Errorf("cadre %s, %s: the output lacks %q: %s", strings.Join(one.call, " "), one.how, one.says, errs)
		}
	}
	t.Logf("%d attempts", len(all))

	if after := w.must("log", "other", "--json"); after != before {
		t.Errorf("the other team was changed:\n%s\n%s", before, after)
	}
	for _, e := range w.history("demo") {
		switch e["kind"] {
		case "team_created", "team_status_changed", "member_spawned", "member_attached", "member_started",
			"member_status_changed",
			"task_created", "task_claimed", "task_completed", "message_sent", "messages_delivered", "messages_read",
			"usage_reported", "work_recorded":
		default:
			t.Errorf("it changed the team: %v", e)
		}
	}
	if names := read[[]struct{ Name string }](w, "ls"); len(names) != 2 {
		t.Errorf("got the teams %v, want 2", names)
	}
	if got := w.must("task", "list", "demo", "--json"); strings.Contains(got, "run-it") ||
		strings.Count(got, `"id"`) != 2 {
		t.Errorf("got the tasks %s, want 2, and not run-it", got)
	}
	if mail := w.must("inbox", "demo", "lead"); !strings.Contains(mail, "for the lead alone") {
		t.Errorf("the lead's mail: %s", mail)
	}
	for _, path := range []string{filepath.Join(w.home, "trust.json"), filepath.Join(w.dir, "hooked"),
		filepath.Join(w.home, "seats")} {
		if has(path) {
			t.Errorf("%s exists; the session must not make it", path)
		}
	}
}

// canTry reports whether the system supports the namespace that a way out needs.
func canTry(t *testing.T, way string) bool {
	namespace, _, ok := strings.Cut(way, " env ")
	if !ok || !strings.HasPrefix(namespace, "unshare ") {
		return true
	}
	out, err := exec.Command("sh", "-c", namespace+" true").CombinedOutput()
	if err != nil {
		t.Logf("not tried, the system does not support the namespace: %s: %v: %s", namespace, err, out)
	}
	return err == nil
}

// caller writes a script that calls cadre with the environment that it needs. The script writes the
// exit status to the file in its first argument.
func (w *world) caller(call string) string {
	return fmt.Sprintf(`TO=$1; shift
export CADRE_HOME="${CADRE_HOME:-%s}" CLAUDE_CONFIG_DIR='%s' HOME='%s' PATH='%s'
PROGRAM='%s'
cd '%s'
%s
echo $? >"$TO.rc"
`, w.home, filepath.Join(w.root, "claude"), filepath.Join(w.root, "user"), os.Getenv("PATH"), cadre, w.dir, call)
}

// TestNoCheckGivesPowerAway checks that a check, which may run what members wrote, cannot give
// power away, however it calls cadre. Other calls it makes as the user.
func TestNoCheckGivesPowerAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.write("file.yaml", "name: third\nmembers: [{name: ann, agent: shell}]\ntasks: [{id: a, run: 'true'}]\n")
	w.write(".claude/settings.json",
		`{"hooks": {"TaskCreated": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}}`)
	w.must("create", "other")
	w.must("spawn", "other", "z", "--agent", "external", "--plan-approval")
	w.must("task", "add", "other", "look")
	rep := w.replica("other")
	for _, body := range []team.Body{&team.SubmitPlan{Plan: "1. look"}, &team.RequestPermission{Tool: "Bash",
		Input: "{}", Deadline: team.Time(time.Now().Add(time.Hour).UnixMilli())}} {
		if _, err := rep.Do(t.Context(), team.Command{Actor: "z", Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	w.must("create", "demo", "--check", "try: sh escape.sh")
	w.must("spawn", "demo", "y", "--agent", "external")
	calls := [][]string{{"trust", "--yes"}, {"mode", "other", "z", "bypassPermissions"},
		{"mode", "demo", "y", "bypassPermissions"}, {"delegate", "other", "on"}, {"budget", "other", "--tokens", "1"},
		{"permit", "other", "permission-2@z"}, {"plan", "other", "plan-1@z", "--approve"}, {"spawn", "other", "eve"},
		{"spawn", "demo", "eve"},
		{"task", "add", "other", "run-it", "--run", "false"}, {"task", "update", "other", "1", "--run", "false"},
		{"run", "file.yaml"}, {"create", "third"}, {"mcp", "--team", "other"},
		{"host", "other"}, {"resume", "other", "--take-over"}, {"resume", "other", "--take-back"},
		{"join", "theirs", "--name", "x", "--agent", "shell"},
		{"claude-teammate", "--agent-name", "x", "--team-name", "theirs"}, {"handover", "other", "z"},
		{"push", "other", "--yes"}, {"push", "other", "--yes", "--release"}, {"pull", "third"},
		{"pull", "other", "--theirs"}}
	link, aliased := filepath.Join(w.root, "link"), filepath.Join(w.root, "aliased")
	if err := errors.Join(os.Symlink(w.home, link), os.Mkdir(aliased, 0o700), os.Symlink(filepath.Join(w.home, "teams"),
		filepath.Join(aliased, "teams"))); err != nil {
		t.Fatal(err)
	}
	w.write("try.sh", w.caller(`"$PROGRAM" "$@" </dev/null >"$TO.out" 2>"$TO.err"`))
	var script strings.Builder
	tried := map[string]string{}
	for i, e := range escapes {
		if e.daemon || !canTry(t, e.way) { // it is no longer part of the check, and acts for no actor
			continue
		}
		for k, call := range calls {
			to := filepath.Join(w.root, fmt.Sprintf("tried-%d-%d", i, k))
			tried[to] = strings.Join(call, " ") + ", " + e.name
			script.WriteString(tryOnce(e.way, filepath.Join(w.dir, "try.sh"), to, call, link, aliased))
		}
	}
	free := filepath.Join(w.root, "may")
	script.WriteString(tryOnce("TRY", filepath.Join(w.dir, "try.sh"), free, []string{"send", "other", "--to", "z",
		"from-the-check"}, link, aliased))
	w.write("escape.sh", script.String())
	before := len(w.history("other"))
	if r := w.cadre("consolidate", "demo", "--no-commit", "--only", "escape.sh"); r.code != 0 {
		t.Fatalf("exit status %d: %s", r.code, r.err)
	}
	for to, call := range tried {
		rc, _ := os.ReadFile(to + ".rc")
		errs, _ := os.ReadFile(to + ".err")
		known := !strings.Contains(call, "namespace") // otherwise no actor is known there, including a check
		if string(rc) != "2\n" || !strings.Contains(string(errs), map[bool]string{true: "refused in a check",
			false: "not known who calls"}[known]) {
			t.Errorf("cadre %s: exit status %s: %s", call, rc, errs)
		}
	}
	if rc, _ := os.ReadFile(free + ".rc"); string(rc) != "0\n" {
		t.Errorf("the check cannot send: exit status %s", rc)
	}
	if since := w.history("other")[before:]; len(since) != 1 || since[0]["body"] != "from-the-check" ||
		since[0]["from"] != "@user" {
		t.Errorf("it changed the other team: %v", since)
	}
	if names := read[[]struct{ Name string }](w, "ls"); len(names) != 2 || has(filepath.Join(w.home, "trust.json")) {
		t.Errorf("got the teams %v, want 2, and no trust.json", names)
	}
}

// tryOnce returns a line of a script. The line makes one call by a way out of the session, and
// waits until it is over.
func tryOnce(way, script, to string, call []string, link, aliased string) string {
	// The ways have quotes of their own, so no word may need any.
	try := "sh " + script + " " + to + " " + strings.Join(call, " ")
	line := strings.NewReplacer("TRY", try, "LINK", link, "TEAMS", aliased).Replace(way)
	return line + "\nuntil test -e " + to + ".rc; do sleep 0.01; done\n"
}

// TestASessionIsItself checks that a session may do its own work, however it calls cadre, and does
// it as itself. It may use another home.
func TestASessionIsItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "x")
	free := filepath.Join(w.root, "free")
	w.write("try.sh", w.caller(`"$PROGRAM" "$@" </dev/null >"$TO.out" 2>"$TO.err"`))
	var script strings.Builder
	said := map[string]string{}
	for i, e := range escapes {
		if e.says != "the session of x in team demo" || e.daemon && runtime.GOOS != "linux" {
			continue
		}
		words := fmt.Sprintf("word-%d", i)
		said[words] = e.name
		for k, call := range [][]string{{"send", "demo", "--to", "lead", words}, {"status"}, {"ls"},
			{"inbox", "demo", "x"}, {"fsck", "demo"}, {"version"}} {
			script.WriteString(tryOnce(e.way, filepath.Join(w.dir, "try.sh"),
				filepath.Join(w.root, fmt.Sprintf("did-%d-%d", i, k)), call, filepath.Join(w.root, "link"),
				filepath.Join(w.root, "aliased")))
		}
	}
	script.WriteString(tryOnce("env -i setsid sh -c '(TRY &)'", filepath.Join(w.dir, "try.sh"),
		filepath.Join(w.root, "did-read"), []string{"status", "demo"}, "", ""))
	script.WriteString(tryOnce("env CADRE_HOME="+free+" TRY", filepath.Join(w.dir, "try.sh"),
		filepath.Join(w.root, "did-free"), []string{"create", "mine"}, "", ""))
	script.WriteString(tryOnce("env -i CADRE_HOME="+free+" TRY", filepath.Join(w.dir, "try.sh"),
		filepath.Join(w.root, "did-abort"), []string{"abort", "mine", "--yes"}, "", ""))
	if err := errors.Join(os.Symlink(w.home, filepath.Join(w.root, "link")),
		os.Mkdir(filepath.Join(w.root, "aliased"), 0o700),
		os.Symlink(filepath.Join(w.home, "teams"), filepath.Join(w.root, "aliased", "teams"))); err != nil {
		t.Fatal(err)
	}
	w.write("self.sh", script.String())
	w.must("task", "add", "demo", "be yourself", "--run", "sh self.sh")
	w.until("the task is over", func(s *team.State) bool {
		task, _ := s.Task("1")
		return task.Status == team.Completed
	})
	results, _ := filepath.Glob(filepath.Join(w.root, "did-*.rc"))
	if len(results) != 6*len(said)+3 {
		t.Errorf("got the results of %d calls, want %d", len(results), 6*len(said)+3)
	}
	for _, path := range results {
		rc, _ := os.ReadFile(path)
		errs, _ := os.ReadFile(strings.TrimSuffix(path, ".rc") + ".err")
		if string(rc) != "0\n" {
			t.Errorf("%s: exit status %s: %s", path, rc, errs)
		}
	}
	for _, m := range read[[]team.Message](w, "inbox", "demo", "lead") {
		if how, there := said[m.Body]; there && m.From != "x" {
			t.Errorf("%s: the sender is %s", how, m.From)
		}
		delete(said, m.Body)
	}
	if len(said) > 0 {
		t.Errorf("no member wrote: %v", said)
	}
	if r := w.with([]string{"CADRE_HOME=" + free}, "ls"); !strings.Contains(r.out, "mine") {
		t.Errorf("the other home: %+v", r)
	}
}

// TestHooksActAsTheUser checks that a trusted hook and a check may do what a session may not,
// whichever process hosts the team. This includes a hook that sets CADRE_TEAM, as a session has it.
func TestHooksActAsTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.write(".claude/settings.json",
		`{"hooks": {"TaskCompleted": [{"hooks": [{"type": "command", "command": "sh hook.sh"}]}]}}`)
	w.write("hook.sh", fmt.Sprintf(`echo "$CADRE_HOOK_EVENT $CADRE_EVENT_MEMBER $CADRE_MEMBER_NAME" >>about
CADRE_TEAM=$CADRE_TEAM_NAME '%s' budget $CADRE_TEAM_NAME --member x --tokens 1000000 >/dev/null 2>>said || echo "budget: $?" >>said
env -i CADRE_HOME="$CADRE_HOME" CLAUDE_CONFIG_DIR="$CLAUDE_CONFIG_DIR" PATH="$PATH" '%s' send $CADRE_TEAM_NAME --to lead from-the-hook 2>>said || echo "send: $?" >>said
`, cadre, cadre))
	w.must("trust", "--yes")
	w.write("file.yaml", "name: filed\nmembers: [{name: x, agent: shell}]\ntasks: [{id: a, run: 'true'}]\nchecks: "+
		"[{name: c, run: '"+cadre+" send filed --to lead from-the-check'}]\n")
	w.must("create", "demo")
	w.must("spawn", "demo", "x")
	w.must("task", "add", "demo", "quick", "--run", "true")
	w.until("the task is over", func(s *team.State) bool {
		task, _ := s.Task("1")
		return task.Status == team.Completed
	})
	if r := w.cadre("run", "file.yaml"); r.code != 0 {
		t.Fatalf("exit status %d: %s", r.code, r.err)
	}
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "before")
	for _, name := range []string{"demo", "filed"} {
		budgets, mail := 0, 0
		for _, record := range read[[]struct {
			Actor  string
			Events []event
		}](w, "log", name) {
			for _, e := range record.Events {
				if e.is("member_budget_changed") && record.Actor == "@user" {
					budgets++
				}
				if e.is("message_sent") && e["body"] == "from-the-hook" && e["from"] == "@user" {
					mail++
				}
			}
		}
		if budgets != 1 || mail != 1 {
			said, _ := os.ReadFile(filepath.Join(w.dir, "said"))
			t.Errorf("%s: %d budgets, %d messages of the user: %s", name, budgets, mail, said)
		}
	}
	if about := w.lines("about"); !slices.Equal(about, []string{"TaskCompleted", "x", "x", "TaskCompleted", "x", "x"}) {
		t.Errorf("the hook was told %v", about)
	}
	if r := w.cadre("consolidate", "filed", "--no-commit"); r.code != 0 {
		t.Errorf("exit status %d: %s", r.code, r.err)
	}
	if log := w.must("log", "filed", "--json"); !strings.Contains(log, "from-the-check") {
		t.Error("the check could not write")
	}
}

func init() { helpers["library"] = callLibrary }

// callLibrary is a Go program that runs in a session. It tries to lead, and then does what it may.
func callLibrary([]string) error {
	ctx := context.Background()
	m, err := teams.New(teams.Options{})
	if err != nil {
		return err
	}
	defer m.Close()
	for what, err := range map[string]error{
		"create":            second(m.CreateTeam(ctx, teams.TeamConfig{Name: "third"})),
		"open another team": second(m.OpenTeam(ctx, "other")),
		"be the lead":       second(teams.New(teams.Options{As: "lead"})),
	} {
		if !errors.Is(err, teams.ErrDenied) {
			return fmt.Errorf("%s: got %v, want ErrDenied", what, err)
		}
	}
	team, err := m.OpenTeam(ctx, "demo")
	if err != nil {
		return err
	}
	if err := team.SetMode(ctx, "x", teams.ModeBypass); !errors.Is(err, teams.ErrDenied) {
		return fmt.Errorf("set the mode: %v", err)
	}
	return second(team.Mail().Send(ctx, teams.Message{To: "lead", Body: "from the library"}))
}

func second[T any](_ T, err error) error { return err }

// TestAProgramInASession checks that the library restricts a session as the command line does.
func TestAProgramInASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "other")
	w.must("create", "demo")
	w.must("spawn", "demo", "x")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.write("run.sh", w.caller("env "+helperMode+"=library '"+self+"' 2>\"$TO.err\""))
	to := filepath.Join(w.root, "library")
	w.must("task", "add", "demo", "run a program", "--run", tryOnce("env -i TRY", filepath.Join(w.dir, "run.sh"),
		to, nil, "", ""))
	w.until("the task is over", func(s *team.State) bool {
		task, _ := s.Task("1")
		return task.Status == team.Completed
	})
	if errs, _ := os.ReadFile(to + ".err"); len(errs) > 0 {
		t.Errorf("the program wrote to standard error: %s", errs)
	}
	if mail := w.must("inbox", "demo", "lead", "--json"); !strings.Contains(mail, `"from":"x"`) ||
		!strings.Contains(mail, "from the library") {
		t.Errorf("the lead's mail: %s", mail)
	}
}

// TestToolsAreTheSessions checks that the sockets of other sessions' tools do not let a session act
// as their members.
func TestToolsAreTheSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tmp := filepath.Join(w.root, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "TMPDIR="+tmp)
	w.must("create", "demo")
	w.must("spawn", "demo", "x")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"y", "z"} { // agents that reach their tools by a socket
		w.must("spawn", "demo", name, "--agent", fmt.Sprintf("acp:'%s' '%s' lead", self,
			filepath.Join(w.root, "histories")), "--env", helperMode+"=actor")
		w.must("task", "add", "demo", "work of "+name, "--owner", name)
	}
	w.until("both have used them", func(s *team.State) bool { return s.Count(team.Completed) == 2 })
	w.write("calls.json",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"SendMessage","arguments":{"to":"lead","message":"by a socket"}}}
`)
	run := fmt.Sprintf("for s in %s/cadre-*/[0-9]*; do echo $s; (cat calls.json; sleep 1) | env -i HOME='%s' "+
		"PATH=\"$PATH\" '%s' mcp --socket $s >>answers; done; true", tmp, w.root, cadre)
	w.must("task", "add", "demo", "use them all", "--owner", "x", "--run", run)
	w.until("the task is over", func(s *team.State) bool {
		task,
			_ := s.Task("3")
		return task.Status == team.Completed
	})
	if said := w.task("3").Result; len(regexp.MustCompile(`/cadre-[A-Z0-9]+/[0-9]`).FindAllString(said, -1)) < 2 {
		t.Fatalf("the sockets are %s", said)
	}
	var from []string
	for _, m := range read[[]team.Message](w, "inbox", "demo", "lead") {
		if m.Body == "by a socket" {
			from = append(from, m.From)
		}
	}
	if len(from) > 0 {
		answers, _ := os.ReadFile(filepath.Join(w.dir, "answers"))
		t.Errorf("messages from %v: %s", from, answers)
	}
}
