package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/consolidate"
	"cadre/internal/engine/transfer"
	"cadre/internal/git/checkpoint"
	"cadre/internal/journal"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
	"cadre/internal/ui/tui"
)

// says checks that the error has these words, or what to type next has them. Without words there
// must be no error.
func says(t *testing.T, what string, err error, words string) {
	t.Helper()
	if (err == nil) != (words == "") || err != nil && !strings.Contains(explain(err), words) {
		t.Errorf("%s: the error is %v, want %q", what, err, words)
	}
}

// TestStatus checks that each kind of error has an exit status, at any depth of wrapping.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{exit(7), 7},
		{usage{errors.New("no such flag")}, hopeless},
		{team.Refuse(team.Invalid, "x"), hopeless},
		{team.Refuse(team.NotFound, "x"), hopeless},
		{team.Refuse(team.TooLarge, "x"), hopeless},
		{team.Refuse(team.Denied, "x"), hopeless},
		{team.Refuse(team.Finished, "x"), hopeless},
		{team.Refuse(team.Taken, "x"), hopeless},
		{team.Refuse(team.Conflict, "x"), tryAgain},
		{team.Refuse(team.NotReady, "x"), tryAgain},
		{team.Refuse(team.Nothing, "x"), tryAgain},
		{team.Refuse(team.Exhausted, "x"), tryAgain},
		{team.Refuse(team.Rejected, "x"), tryAgain},
		{team.Refuse(team.MaxTeammatesReached, "x"), tryAgain},
		{&journal.DamageError{Team: "demo", Reason: "x"}, hopeless},
		{journal.ErrNewer, hopeless},
		{team.ErrNewer, hopeless},
		{journal.ErrGone, hopeless},
		{consolidate.ErrDamaged, hopeless},
		{&regularfile.Error{}, hopeless},
		{&regularfile.TooLargeError{}, hopeless},
		{os.ErrPermission, hopeless},
		{os.ErrNotExist, hopeless},
		{syscall.EROFS, hopeless},
		{filelock.ErrHeld, tryAgain},
		{errors.New("something else"), tryAgain},
	} {
		for what, err := range map[string]error{"plain": c.err, "wrapped": fmt.Errorf("read: %w", c.err),
			"joined": errors.Join(errors.New("first"), c.err)} {
			if got := status(err); got != c.want {
				t.Errorf("%s %T (%v): status %d, want %d", what, c.err, c.err, got, c.want)
			}
		}
	}
}

// TestSplit checks that TEAM may be omitted. Too few or too many arguments are an error that names
// the help.
func TestSplit(t *testing.T) {
	t.Setenv("CADRE_TEAM", "demo")
	c := &cobra.Command{Use: "show [TEAM] ID"}
	for _, one := range []struct {
		args       []string
		needed     int
		name, rest string
		mistake    string
	}{
		{[]string{"3"}, 1, "demo", "3", ""},
		{[]string{"other", "3"}, 1, "other", "3", ""},
		{nil, 0, "demo", "", ""},
		{[]string{"other"}, 0, "other", "", ""},
		{nil, 1, "", "", `show needs ID: show [TEAM] ID`},
		{[]string{"a", "b", "c"}, 1, "", "", `"c" is one argument too many: show [TEAM] ID`},
	} {
		name, rest, err := (&app{}).split(c, one.args, one.needed)
		says(t, fmt.Sprint(one.args), err, one.mistake)
		if name != one.name || strings.Join(rest, " ") != one.rest {
			t.Errorf("%q: got %q and %q", one.args, name, rest)
		}
		if err != nil && status(err) != hopeless {
			t.Errorf("%q: status %d", one.args, status(err))
		}
	}
}

// TestTeamOfClaudeCode checks that a command of the palette does not take the team of the working
// directory while a team is selected that cadre does not run.
func TestTeamOfClaudeCode(t *testing.T) {
	t.Setenv("CADRE_TEAM", tui.StrangerPrefix+"session-3ef3")
	c := &cobra.Command{Use: "show [TEAM] ID"}
	name, _, err := (&app{}).split(c, []string{"3"}, 1)
	says(t, "no team", err, "session-3ef3 is a team of Claude Code, which cadre does not run; select a team of "+
		"cadre, or "+"name one: show TEAM 3")
	if name != "" || status(err) != hopeless {
		t.Errorf("got the team %q and status %d", name, status(err))
	}
	t.Setenv("CADRE_TEAM", tui.StrangerPrefix)
	name, _, err = (&app{}).split(c, []string{"3"}, 1)
	says(t, "no selected team", err, "no team is selected on the screen; select one, or name it: show TEAM 3")
	if name != "" || status(err) != hopeless {
		t.Errorf("got the team %q and status %d", name, status(err))
	}
	if name, _, err := (&app{}).split(c, []string{"other", "3"}, 1); name != "other" || err != nil {
		t.Errorf("with a name: got the team %q, and %v", name, err)
	}
	if team.ValidName(tui.StrangerPrefix + "x") {
		t.Error("a team of cadre can have such a name")
	}
}

// TestIDs checks the forms in which people write ids.
func TestIDs(t *testing.T) {
	for text, want := range map[string][]string{"": nil, " , ": nil, "1": {"1"}, "1,2": {"1", "2"},
		" #1 , 2,": {"#1", "2"}} {
		if got := list(text); !slices.Equal(got, want) {
			t.Errorf("%q is parsed as %q", text, got)
		}
	}
	for text, mistake := range map[string]string{"": "", `{"a": 1, "b": null}`: "", "a=1": "", "a={": "",
		`[1]`: "takes KEY=VALUE", `{`: "not a JSON object", `"x"`: "takes KEY=VALUE", "=1": "takes KEY=VALUE"} {
		_, err := metadataOf([]string{text})
		says(t, text, err, mistake)
	}
}

// TestFormerFlags checks that flags work under their former names, which help no longer shows, and
// that a note on standard error has the new name.
func TestFormerFlags(t *testing.T) {
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	process := call{env: env}.lines(t)
	do := func(args ...string) printed {
		t.Helper()
		r := process(root, args...)
		if r.code != done {
			t.Fatalf("%q: status %d: %s", args, r.code, r.err)
		}
		return r
	}
	do("create", "demo", "--metadata", "kept=yes", "--metadata", `{"ticket": 7}`)
	do("spawn", "demo", "ann", "--agent", "external")
	for _, one := range []struct {
		args            []string
		now, has, hides string
	}{
		{[]string{"create", "former", "--meta", "a=1", "--meta", "b=2"}, "--metadata", `"metadata":{"a":1,"b":2}`,
			"--meta "},
		{[]string{"send", "demo", "--to", "lead", "--from", "ann", "hello"}, "--as", `"from":"ann"`, "--from"},
		{[]string{"send", "demo", "--to", "lead", "--meta", "a=1", "hello"}, "--metadata", `"metadata":{"a":1}`,
			"--meta "},
		{[]string{"broadcast", "demo", "--from=lead", "hello"}, "--as", `"from":"lead"`, "--from"},
		{[]string{"shutdown", "demo", "--graceful"}, "", "", "--roll-back"},
		{[]string{"consolidate", "demo", "--roll-back"}, "--rollback", `"status":"active"`, "--roll-back"},
	} {
		r := do(append(one.args, "--json")...)
		out := strings.Join(strings.Fields(string(r.out)), "")
		if !strings.Contains(out, one.has) || one.now != "" &&
			!strings.Contains(string(r.err), "is called "+one.now+" now") {
			t.Errorf("%q: %s%s", one.args, r.out, r.err)
		}
		if help := do(one.args[0], "--help"); strings.Contains(string(help.out), one.hides) {
			t.Errorf("the help of %s shows %s", one.args[0], one.hides)
		}
	}
	if out := do("status", "demo", "--json").out; !strings.Contains(string(out), `"kept"`) ||
		!strings.Contains(string(out), `"ticket"`) {
		t.Errorf("the metadata is not kept: %s", out)
	}
}

// TestLeadMode checks that two flags for the same setting must not contradict each other.
func TestLeadMode(t *testing.T) {
	for args, want := range map[string]string{
		"":                       "default",
		"--permission-mode plan": "plan",
		"--" + skipPermissions:   bypassPermissions,
		"--" + skipPermissions + " --permission-mode " + bypassPermissions: bypassPermissions,
		"--" + skipPermissions + " --permission-mode plan":                 "",
	} {
		var m leadMode
		c := &cobra.Command{}
		m.flags(c, "default")
		if err := c.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		got, err := m.chosen(c)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v", args, got, err)
		}
	}
}

// TestGoalFlags checks that each flag of a goal reaches the goal, and is refused for a team file.
func TestGoalFlags(t *testing.T) {
	var none goalFlags
	plain := &cobra.Command{}
	none.flags(plain)
	flags := 0
	for _, line := range strings.Split(plain.Flags().FlagUsages(), "\n") {
		_, line, _ = strings.Cut(line, "--")
		f := plain.Flags().Lookup(strings.SplitN(line, " ", 2)[0])
		if f == nil { // a continuation of the line before
			continue
		}
		flags++
		var g goalFlags
		c := &cobra.Command{}
		g.flags(c)
		value := map[string]string{"bool": "true", "int": "3", "int64": "3", "amount": "$3"}[f.Value.Type()]
		if value == "" {
			value = "a: b"
		}
		if err := c.ParseFlags([]string{"--" + f.Name + "=" + value}); err != nil {
			t.Fatal(err)
		}
		// that flag is another way to write --permission-mode
		if f.Name != skipPermissions && onlyForGoal(c, "a.yaml") == nil {
			t.Errorf("--%s is not refused for a team file", f.Name)
		}
		mode, err := g.chosen(c)
		if err != nil {
			t.Fatal(err)
		}
		g.mode = mode
		with, err := g.goal("do it", "/there")
		if err != nil {
			t.Fatal(err)
		}
		if without, _ := none.goal("do it", "/there"); fmt.Sprintf("%+v", with) == fmt.Sprintf("%+v", without) {
			t.Errorf("--%s does not reach the goal", f.Name)
		}
	}
	if flags < 10 {
		t.Errorf("found %d flags", flags)
	}
	var g goalFlags
	g.checks = []string{" "}
	_, err := g.goal("do it", "/there")
	says(t, "an empty check", err, "is not a check")
}

// TestFileOrGoal checks that the argument for a file or a team is distinguished from a goal, which
// starts an agent.
func TestFileOrGoal(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := errors.Join(os.WriteFile("plan", nil, 0o600), os.WriteFile("team.yaml", nil, 0o600),
		os.Mkdir("folder", 0o700), os.Mkdir("two words", 0o700)); err != nil {
		t.Fatal(err)
	}
	a := &app{}
	a.home.Root = filepath.Join(dir, "home")
	for arg, want := range map[string]string{"plan": "file", "team.yaml": "file", "missing.yml": "file",
		"MISSING.YAML": "file", "folder": "is a directory", "two words": "is a directory",
		"team": "cadre run team.yaml",
		"taem": "cadre run team.yaml", "a/b": "--goal a/b", "fix": "--goal fix", " fix\n": "--goal fix",
		"Fix.":     "--goal Fix.",
		"v1.2_x-3": "--goal v1.2_x-3", "fix a/b, please": "goal", "Fix it.": "goal", "fix!": "goal",
		"réparer": "goal"} {
		got := "goal"
		if isFile(arg) {
			got = "file"
		} else if err := a.mistyped(t.Context(), arg); err != nil {
			got = explain(err)
			if status(err) != hopeless {
				t.Errorf("%q: status %d", arg, status(err))
			}
		}
		if got != want && (want == "goal" || want == "file" || !strings.Contains(got, want)) {
			t.Errorf("%q: got %q, want %q", arg, got, want)
		}
	}
}

// TestFromTop checks that paths are typed relative to the current directory, and stored relative to
// the top of the work tree.
func TestFromTop(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(top, "src")
	if err := errors.Join(os.Mkdir(below, 0o700), os.Symlink("/etc", filepath.Join(below, "link")),
		os.Symlink(below, filepath.Join(top, "alias"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	of := team.Team{Base: team.Base{Top: top}}
	for path, want := range map[string]string{"a.go": "src/a.go", "../b.go": "b.go", ".": "src",
		filepath.Join(top, "c"): "c", "link": "src/link", filepath.Join(top, "alias", "d"): "src/d",
		"..": "", "../../out": "", "link/passwd": "", "/etc/passwd": ""} {
		got, err := fromTop(of, []string{path})
		if (err != nil) != (want == "") || err == nil && !slices.Equal(got, []string{want}) {
			t.Errorf("%s becomes %q, %v", path, got, err)
		}
	}
	if _, err := fromTop(team.Team{}, []string{"a.go"}); err == nil {
		t.Error("a team without a repository has paths from a top")
	}
}

// TestObserveFlags checks that contradicting flags are refused before anything is read.
func TestObserveFlags(t *testing.T) {
	for name, c := range map[string]struct {
		o       *observation
		args    []string
		mistake string
	}{
		"a file":               {&observation{app: &app{}}, []string{"x"}, ""},
		"exec alone":           {&observation{app: &app{}, exec: "claude"}, nil, "connects to --sdk-url"},
		"arguments for nobody": {&observation{app: &app{}, sdkURL: ":1"}, []string{"x"}, "of the program of --exec"},
		"insecure alone":       {&observation{app: &app{}, insecure: true}, []string{"x"}, "--sdk-url listens on"},
		"two kinds": {&observation{app: &app{}, claudeTeam: "x", agent: "codex"}, nil,
			"agents without teams"},
		"relayed without teams": {&observation{app: &app{}, sdkURL: ":1", agent: "codex"}, nil, "agents without teams"},
		"standard input twice":  {&observation{app: &app{}}, []string{"-", "-"}, "can be read once"},
		"passes nothing":        {&observation{app: &app{}, pass: true}, []string{"x"}, "name it as -"},
		"two outputs": {&observation{app: &app{}, pass: true, state: true}, []string{"-"},
			"both want standard output"},
		"messages for people": {&observation{app: &app{}, messages: true}, []string{"x"}, "goes with --json"},
		"state twice": {&observation{app: &app{json: true}, live: true, state: true}, []string{"x"},
			"choose one"},
		"changes for people": {&observation{app: &app{}, live: true}, []string{"x"}, "goes with --json"},
	} {
		err := c.o.check(&c.args)
		says(t, name, err, c.mistake)
		if err != nil && status(err) != hopeless {
			t.Errorf("%s: status %d", name, status(err))
		}
	}
}

// TestSplitHistories checks the error for two histories. It says how to continue each, and which
// flag brings what was held back.
func TestSplitHistories(t *testing.T) {
	fork := &checkpoint.ForkError{Sides: []checkpoint.Side{{}, {Ref: "origin/cadre/port"}, {Ref: "cadre/port"}}}
	for _, c := range []struct {
		err  error
		says []string
	}{
		{fork, []string{"cadre resume port --ours", "cadre pull port --remote origin --theirs",
			"cadre resume port --from-git --at cadre/port"}},
		{&transfer.MovedError{}, []string{"cadre pull port", "cadre resume port --ours"}},
		{&transfer.MissingCheck{Name: "vet"}, []string{"cadre resume port --from-git --check 'vet: COMMAND'"}},
	} {
		err := (&app{}).moving(c.err, "port", "cadre resume port")
		for _, words := range c.says {
			says(t, fmt.Sprintf("%T", c.err), err, words)
		}
		if status(err) != hopeless || !errors.Is(err, c.err) {
			t.Errorf("%T: status %d", c.err, status(err))
		}
	}
	says(t, "a pull", (&app{}).moving(&transfer.MissingCheck{Name: "vet"}, "port", "cadre pull port --theirs"),
		"cadre pull port --check 'vet: COMMAND'")
	if err := (&app{}).moving(nil, "port", ""); err != nil {
		t.Errorf("without an error: %v", err)
	}
}

// TestAgain checks that the notice about a killed member has the exact shell command that continues
// for it.
func TestAgain(t *testing.T) {
	for want, s := range map[string]guestMember{
		"cadre join fx --name ann --agent codex --type general-purpose": {team: "fx", name: "ann", agent: "codex",
			kind: "general-purpose", joins: true},
		"cadre claude-teammate --agent-name ann --team-name fx --agent-type 'it'\\''s me' --model opus " +
			"--agent-color blue --permission-mode plan --plan-mode-required --dangerously-skip-permissions": {
			team: "fx", name: "ann", kind: "it's me", model: "opus", color: "blue", mode: "plan", plan: true,
			skip: true},
	} {
		if got := s.again(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestParseSince(t *testing.T) {
	zone := time.FixedZone("here", 2*60*60)
	now := time.Date(2026, 3, 4, 15, 30, 0, 0, zone)
	for text, want := range map[string]string{
		"": "", "  ": "", "0s": "2026-03-04T15:30:00+02:00", "10m": "2026-03-04T15:20:00+02:00",
		"48h": "2026-03-02T15:30:00+02:00", "09:05": "2026-03-04T09:05:00+02:00",
		"09:05:06":   "2026-03-04T09:05:06+02:00",
		"2026-02-28": "2026-02-28T00:00:00+02:00", "2026-02-28 10:00": "2026-02-28T10:00:00+02:00",
		"2026-02-28T10:00:00Z": "2026-02-28T12:00:00+02:00",
		"-5m":                  "error", "2x": "error", "25:00": "error", "2026-13-01": "error", "yesterday": "error",
	} {
		at, err := parseSince(text, now)
		got := ""
		switch {
		case err != nil:
			got = "error"
		case at != 0:
			got = time.UnixMilli(int64(at)).In(zone).Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q becomes %s, want %s (%v)", text, got, want, err)
		}
	}
}

// TestRetyped checks that a call is shown again with all that was typed.
func TestRetyped(t *testing.T) {
	for _, one := range []struct {
		use, typed, want string
	}{
		{"abort [TEAM]", "--reason 'x y' --yes", "abort TEAM --reason 'x y' --yes"},
		{"abort [TEAM]", "--reason= --yes=false", "abort TEAM --reason '' --yes=false"},
		{"shutdown [TEAM] NAME | shutdown TEAM --graceful", "ann", "shutdown TEAM ann"},
		{"shutdown [TEAM] NAME | shutdown TEAM --graceful", "--graceful", "shutdown TEAM --graceful"},
		{"claim [TEAM] ID --as NAME", "3 --as bob", "claim TEAM 3 --as bob"},
		{"claim [TEAM] ID --as NAME", "", "claim TEAM ID --as NAME"},
		{"run [TEAM]", "--set a=1 --set 'b=2 3'", "run TEAM --set a=1 --set 'b=2 3'"},
	} {
		c := &cobra.Command{Use: one.use, Run: func(*cobra.Command, []string) {}}
		c.Flags().String("reason", "", "")
		c.Flags().String("as", "", "")
		c.Flags().Bool("yes", false, "")
		c.Flags().Bool("graceful", false, "")
		c.Flags().StringArray("set", nil, "")
		if err := c.ParseFlags(words(one.typed)); err != nil {
			t.Fatal(err)
		}
		if got := retyped(c, c.Flags().Args()); got != one.want {
			t.Errorf("%s %s: %s, want %s", one.use, one.typed, got, one.want)
		}
	}
}
