package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"cadre/internal/render/sanitize"
	"cadre/internal/testkit/soak"
)

// drive is a call of a command on a team in which every text is hostile.
type drive struct {
	args     []string
	shows    bool   // it shows hostile texts, so that the test checks some
	stdin    string // a file below the root of the stage
	until    string // interrupt it when it has shown this
	onTerm   string // the same, on a terminal
	types    string // the input on the terminal
	protocol string // why a program reads its standard output, which the test then skips
	hosts    bool   // it leaves a host in the background
	alone    bool   // it does not end on a terminal, so the test does not run it there
	idle     bool   // it changes nothing, so the next call needs no reset
}

func shows(args ...string) drive { return drive{args: args, shows: true} }
func calls(args ...string) drive { return drive{args: args} }

// drives are the calls of every command, by its path. {root} stands for the folder of the stage,
// {evil} for a hostile text. The test also calls every command with hostile arguments and flags,
// and with --help.
var drives = map[string][]drive{
	"": {calls()},
	"abort": {{args: []string{"evil", "--reason", "{evil}"}, types: "n\n"},
		{args: []string{"evil", "--reason", "{evil}"},
			types: "y\n"}, {args: []string{"evil"}, alone: true}, shows("{evil}")},
	"attach": {shows("evil", "{evil}"), shows("evil", "eve", "--no-follow"),
		shows("evil", "eve", "--no-follow", "--json"), calls("evil", "bob")},
	"attention": {shows(), shows("evil"), shows("evil", "--json"), shows("--wait"), shows("{evil}")},
	"broadcast": {calls("evil", "{evil}")},
	"budget": {calls("evil", "--tokens", "7"), shows("evil", "--time", "{evil}"), shows("evil", "--member", "{evil}"),
		calls("evil"), calls("evil", "--json"), calls("evil", "--member", "ann", "--tokens", "7"),
		calls("evil", "--unlimited")},
	"report-killed": {shows("lively", "{evil}", "{evil}")},
	"checkpoint":    {shows("evil"), calls("evil", "--json")},
	"claude-teammate": {{args: []string{"--agent-name", "{evil}", "--team-name", "lively"}, shows: true},
		{args: []string{"--agent-name", "yan", "--team-name", "lively", "--model", "{evil}", "--agent-type", "shell"},
			until: "is ready"}},
	"cleanup": {{args: []string{"evil", "--force"}, types: "y\n"}, calls("seen", "--yes"), shows("{evil}", "--yes"),
		{args: []string{"broken", "--force"}, types: "y\n"}},
	"completion":            {calls()},
	"completion bash":       {calls()},
	"completion fish":       {calls()},
	"completion powershell": {calls()},
	"completion zsh":        {calls()},
	// with an address it would start a server
	"board": {shows("{evil}"), shows("evil", "--phone", "{evil}")},
	"consolidate": {shows("ending"), shows("passing", "--dry-run"), calls("passing", "--dry-run", "--json"),
		shows("passing"), shows("passing", "--json"), shows("evil"),
		shows("ending", "--no-commit"), calls("ending", "--rollback")},
	"create": {shows("new", "--goal", "{evil}", "--fact", "{evil}={evil}"),
		shows("new", "--check", "{evil}", "--json"), shows("new", "--liveness", "{evil}=1s")},
	"delegate": {shows("evil", "{evil}"), calls("evil", "on")},
	"doctor":   {calls(), calls("--json")},
	"export": {calls("evil", "-o", "evil.html"), shows("evil", "-o", "{evil}.html"),
		shows("evil", "-o", "{evil}", "--json"), shows("{evil}")},
	"facts": {shows("evil"), shows("evil", "--json"), shows("evil", "--add", "{evil}=fact"),
		shows("evil", "--record")},
	"fsck":        {calls("evil"), shows("broken"), shows("broken", "--mend"), shows("broken", "--json")},
	"gemini-hook": {{args: []string{"{root}/socket"}, protocol: "gemini reads it", alone: true}},
	"handover":    {shows("evil", "{evil}"), calls("evil", "ann", "--reason", "{evil}")},
	"interrupt":   {shows("evil", "{evil}"), calls("evil", "ann")},
	"lift":        {shows("evil", "{evil}"), calls("evil", "ann")},
	"help":        {calls("status")},
	"hooks": {shows("evil"), shows("evil", "--json"), shows("{evil}"), shows("--dir", "{evil}"),
		calls("--dir", ".")},
	"hooks disable": {shows("evil", "TeammateIdle"), shows("evil", "TeammateIdle", "--json"), shows("evil", "{evil}"),
		calls("evil")},
	"hooks enable": {shows("evil", "TeammateIdle"), shows("evil", "{evil}")},
	"hooks try": {shows("evil", "TeammateIdle"), shows("--dir", ".", "{evil}"),
		{args: []string{"evil", "TeammateIdle", "--input", "-"}, stdin: "stream.jsonl", alone: true},
		shows("evil", "TeammateIdle", "--input", "{evil}"), shows("evil", "TaskCreated", "--input",
			"{root}/event.json", "--json"),
		shows("evil", "TaskCreated", "--input", "{root}/event.json")},
	"host":  {calls("ending"), shows("{evil}"), shows("--label", "{evil}"), shows("--label", "x", "{evil}")},
	"hosts": {calls(), calls("--json"), shows("--drain", "{evil}")},
	"store": {calls()},
	"store init": {calls(), shows("--store", "{evil}"), shows("--store", "host={root} dbname={evil}", "--grant", "{evil}"),
		shows("--store", "host={root} dbname={evil}", "--json")},
	"store move": {calls(), shows("evil", "files", "{evil}"), shows("{evil}", "files", "host={root}"),
		shows("evil", "files", "host={root} dbname={evil}", "--json")},
	"store migrate": {calls(), shows("--store", "host={root} dbname={evil}"), shows("--store", "{evil}", "--json")},
	"init":          {shows("{evil}"), calls("fresh", "--json"), calls("fresh"), shows("x", "--template", "{evil}")},
	"leave":         {calls("evil", "--as", "bob", "--refuse", "{evil}"), shows("evil", "--as", "{evil}")},
	"inbox": {shows("evil", "lead"), shows("evil", "lead", "--all"), shows("evil", "bob", "--all", "--json"),
		shows("evil", "bob", "--all", "--type", "{evil}"), shows("evil", "bob", "--all", "--since", "{evil}"),
		shows("evil", "bob", "--peek"), shows("evil", "bob", "--json"),
		shows("seen", "{evil}", "--peek")},
	"join": {{args: []string{"lively", "--name", "zed", "--agent", "shell", "--model", "{evil}",
		"--type", "{evil}"}, until: "what you type goes to it"}, shows("lively", "--name", "zed", "--agent", "{evil}")},
	"log": {shows("evil"), shows("evil", "--kind", "{evil}"), shows("evil", "--member", "bob"), shows("seen"),
		shows("aborted", "--follow"), shows("evil", "--json"),
		shows("aborted", "--follow", "--json"), shows("broken")},
	"ls": {shows(), shows("--json")},
	"search": {shows("evil", "--team", "evil"), shows("a", "-n", "0"), shows("a", "--json", "--team", "evil"),
		shows("a", "--kind", "{evil}"), shows("a", "--team", "{evil}"),
		shows("a", "--team", "evil", "--task", "{evil}"),
		shows("a", "--member", "{evil}")},
	"mcp": {{args: []string{"--team", "evil"}, protocol: "an agent reads it", alone: true},
		{args: []string{"--team", "evil", "--as", "{evil}"}, shows: true, alone: true}},
	"mode": {shows("evil", "bob", "{evil}"), shows("evil", "{evil}", "plan")},
	"observe": {{args: []string{"{root}/stream.jsonl"}, shows: true, onTerm: "MESSAGES"},
		shows("{root}/stream.jsonl", "--json", "--messages"), shows("{root}/stream.jsonl", "--state"),
		{args: []string{"-", "--pass", "--json"}, stdin: "stream.jsonl", protocol: "it is what was read"},
		{args: []string{"-", "--pass"}, stdin: "stream.jsonl", protocol: "it is what was read", shows: true},
		{args: []string{"--claude-team", "lively", "--state"}, shows: true}, {args: []string{"--claude-team", "lively"},
			shows: true, until: "task 1", onTerm: "SUBJECT"},
		{args: []string{"--sdk-url", "127.0.0.1:0", "--exec", "cat {root}/text >&2; false", "--pass", "-"},
			protocol: "it is what was read", alone: true}},
	"permission": {calls("evil"), calls("evil", "--json")},
	"permission add": {calls("evil", "{evil}"), calls("evil", "Bash({evil}:*)"),
		shows("evil", "Bash(x)", "--member", "{evil}")},
	"permission rm": {shows("evil", "{evil}"), calls("evil", "Edit", "--member", "{evil}")},
	"permit list":   {shows("evil"), shows("evil", "--json")},
	"plan list":     {shows("evil"), shows("evil", "--json")},
	"plan submit":   {calls("evil", "{evil}", "--as", "bob"), shows("evil", "x", "--as", "{evil}")},
	"permit": {shows("evil", "{evil}"), calls("evil", "{permission}", "--deny", "--reason", "{evil}"),
		calls("evil", "{permission}", "--always")},
	"pause": {calls("evil"), calls("evil", "--json"), shows("{evil}"), calls("aborted"), shows("broken")},
	"panes": {shows("{evil}"), calls("evil"), calls("evil", "--close"), shows("evil", "--teammate-mode", "{evil}")},
	"plan": {shows("evil", "{plan}"), shows("evil", "{plan}", "--json"), shows("evil", "{evil}"),
		calls("evil", "{plan}", "--reject", "{evil}")},
	"probe": {shows("evil"), shows("evil", "--json"), shows("ending"), shows("seen"), shows("broken")},
	"pull": {calls("evil"), shows("{evil}"), shows("evil", "--dir", "{evil}"),
		calls("evil", "--remote", "x")},
	"push": {calls("evil"), shows("{evil}"), calls("evil", "--remote", "x"), calls("aborted", "--release")},
	"reassign": {shows("evil", "1", "{evil}"), calls("evil", "1", "bob", "--force"),
		shows("evil", "{evil}", "bob"), shows("evil", "1", "bob", "--json", "--force")},
	"resend": {shows("evil", "{evil}"), shows("evil", "bob", "{evil}")},
	"resume": {{args: []string{"evil"}, shows: true, hosts: true}, shows("{evil}"),
		shows("{evil}", "--from-git"), shows("evil", "--from-git"), calls("aborted"), shows("broken")},
	"review": {shows("aborted"), shows("aborted", "--json"), calls("evil")},
	"run": {shows("{root}/team.yaml"), shows("{root}/team.yaml", "--json"), shows("{root}/broken.yaml"),
		calls("{root}/not.yaml"), shows("{evil}", "--agent", "{evil}"), shows("{root}/{evil}.yaml"),
		shows("--goal", "{evil}", "--agent", "{evil}")},
	"send": {calls("evil", "--to", "ann", "{evil}"), shows("evil", "--to", "{evil}", "x"),
		shows("evil", "--to", "ann", "{evil}", "--json"), shows("evil", "--to", "ann", "x", "--intent", "{evil}")},
	"schema":          {calls()},
	"schema observe":  {calls(), calls("--json")},
	"schema teamfile": {calls(), calls("--json")},
	"validate": {shows("{root}/broken.yaml"), calls("{root}/broken.yaml", "--json"), shows("{root}/{evil}.yaml"),
		calls("{root}/team.yaml", "--json")},
	"shutdown": {shows("evil", "{evil}"), {args: []string{"evil", "bob", "--reason", "{evil}", "--deadline",
		"10ms"}}, calls("evil", "--graceful")},
	"spawn": {shows("evil", "zed", "--agent", "external", "--role", "{evil}", "--json"),
		shows("evil", "{evil}"), shows("evil", "zed", "--agent", "{evil}"),
		{args: []string{"evil", "zed", "--model", "{evil}"}, hosts: true}},
	"status": {shows("evil"), shows("aborted", "--watch"), shows("aborted", "--watch", "--json"),
		shows("evil", "--json"), shows("seen"), shows("aborted"), shows("broken"),
		shows("{evil}")},
	"note": {calls()},
	"note set": {shows("evil", "plan", "x", "--if-seq", "0"), shows("evil", "{evil}", "x"),
		shows("evil", "plan", "{evil}", "--json"),
		shows("evil", "plan", "--file", "{evil}"), calls("evil", "plan", "{evil}")},
	"note append": {shows("evil", "{evil}", "x"), shows("evil", "plan", "{evil}", "--as", "bob", "--json")},
	"note get": {shows("evil", "plan"), shows("evil", "plan", "--json"), shows("evil", "{evil}"),
		calls("seen", "plan")},
	"note list": {shows("evil"), shows("evil", "--json"), calls("seen")},
	"note log":  {shows("evil", "plan"), shows("evil", "plan", "--json"), shows("evil", "{evil}")},
	"note rm":   {shows("evil", "plan", "--json"), shows("evil", "{evil}"), shows("evil", "plan", "--if-seq", "9")},
	"task":      {calls()},
	"task add": {shows("evil", "{evil}"), shows("evil", "HOOKED {evil}"), shows("evil", "x", "--role", "{evil}",
		"--json"), calls("evil", "x", "--metadata", "{evil}"), shows("evil", "x", "--owner", "{evil}"),
		shows("evil", "x", "--priority", "{evil}")},
	"task claim": {shows("evil", "2", "--as", "lead"), shows("evil", "1", "--as", "lead"),
		shows("evil", "{evil}", "--as", "bob"), shows("evil", "--next", "--as", "{evil}")},
	"task done": {shows("ending", "1", "--result", "{evil}", "--json"), shows("evil", "{evil}"),
		calls("evil", "4")},
	"task fail": {shows("evil", "1", "--as", "ann", "--reason", "{evil}", "--json"),
		shows("evil", "{evil}", "--as", "ann")},
	"task list": {shows("evil"), shows("evil", "--json"), calls("seen"), calls("evil", "--claimable"),
		shows("evil", "--status", "{evil}"), shows("broken")},
	"task paths": {calls("evil"), calls("evil", "--json"), shows("{evil}")},
	"task paths claim": {calls("evil", "1", "{evil}", "--as", "ann"),
		shows("evil", "{evil}", "src", "--as", "ann", "--json"),
		shows("evil", "1", "src", "--as", "{evil}")},
	"task paths release": {shows("evil", "{evil}", "src", "--as", "ann"), calls("evil", "1", "--all", "--as", "ann")},
	"task release":       {shows("evil", "{evil}"), shows("evil", "1", "--reason", "{evil}", "--json")},
	"task rm":            {shows("evil", "{evil}"), calls("evil", "2")},
	"task rollback":      {shows("evil", "{evil}"), calls("evil", "1"), shows("evil", "4")},
	"task show": {shows("evil", "1", "--patch"), calls("evil", "4", "--patch", "--json"), shows("evil", "1"),
		shows("evil", "2"), shows("evil", "3"), shows("evil", "4", "--json"), shows("evil", "{evil}")},
	"task update": {shows("evil", "2", "--subject", "{evil}", "--json"), shows("evil", "{evil}", "--subject", "x"),
		shows("evil", "2", "--owner", "{evil}")},
	"trust": {{args: []string{}, shows: true, types: "y\n"}, shows("--yes"), calls("--list"),
		shows("--revoke"), shows("--yes", "--json"), shows("--dir", "{evil}")},
	"templates": {calls(), calls("--json"), calls("hello"), calls("hello", "--json"), calls("start", "--text"),
		shows("{evil}"), shows("--dir", "{evil}")},
	"serve": {shows("{evil}"), calls("--status"), calls("--status", "--json"), calls("--stop"),
		shows("--listen", "{evil}"), calls("--install", "evil")},
	"serve token": {calls()},
	"serve token add": {shows("{evil}"), calls("phone", "--role", "answer"), calls("ci", "--show", "--json"),
		shows("phone2", "--role", "{evil}")},
	"serve token ls": {calls(), calls("--json")},
	"serve token rm": {shows("{evil}"), calls("admin")},
	"notify":         {calls(), calls("--json"), calls("--test"), calls("--test", "--watch")},
	"watch": {{args: []string{"evil"}, alone: true}, {args: []string{}, alone: true}, shows("{evil}"),
		calls("aborted", "--screen-reader")},
	"version": {calls(), calls("--json")},
	"wake":    {calls("--team", "evil"), calls("--team", "{evil}"), calls("--team", "evil", "--as", "{evil}")},
}

// reading lists commands that change nothing. The stage is not reset before their calls.
var reading = []string{"", "completion", "completion bash", "completion fish", "completion powershell",
	"completion zsh", "doctor", "help", "log", "ls", "note", "note get", "note list", "note log", "probe", "review",
	"schema", "schema observe",
	"schema teamfile", "status", "task",
	"task list", "task show", "templates", "version"}

// TestHostile calls every command on teams in which every text is hostile. It checks the bytes that
// the command writes, to a pipe and to a terminal.
func TestHostile(t *testing.T) {
	soak.Long(t)
	// A command waits for the disk more than for a processor. Each stage runs one command at a
	// time.
	stages := make(chan *stage, 4)
	for range cap(stages) {
		stages <- newStage(t)
	}
	covered := map[string]bool{}
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		covered[path] = true
		if len(drives[path]) == 0 {
			t.Errorf("the test does not call cadre %s: add it to drives, with calls that show texts of agents", path)
		}
		t.Run("cadre "+path, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && path == "consolidate" {
				t.Skip("it makes commits, for seconds")
			}
			s := <-stages
			defer func() { stages <- s }()
			s.t = t
			s.open()
			for _, d := range drives[path] {
				d.idle = slices.Contains(reading, path)
				s.drive(path, d)
			}
			mistakes := [][]string{{evil("argument"), evil("argument"), evil("argument"), evil("argument")},
				{"--" + evil("flag")}, {"--help"}}
			if testing.Short() {
				mistakes = mistakes[:1]
			}
			for _, args := range mistakes {
				s.drive(path, drive{args: args, alone: true, idle: strings.HasPrefix(args[0], "--") ||
					slices.Contains(reading, path)})
			}
		})
		for _, sub := range c.Commands() {
			walk(sub, strings.TrimSpace(path+" "+sub.Name()))
		}
	}
	root := newApp().root(nil)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	walk(root, "")
	for path := range drives {
		if !covered[path] {
			t.Errorf("drives has cadre %s, which does not exist", path)
		}
	}
	t.Run("completion of words", func(t *testing.T) {
		t.Parallel()
		s := <-stages
		defer func() { stages <- s }()
		s.t = t
		s.open()
		for _, words := range [][]string{{"__complete", "task", evil("word")}, {"__complete", evil("word"), ""},
			{evil("command")}, {"task", evil("command")}} {
			s.drive(words[0], drive{args: words[1:]})
		}
	})
}

// drive calls the command on a reset stage, with its output to pipes and then on a terminal.
func (s *stage) drive(path string, d drive) {
	s.t.Helper()
	for _, onTerm := range []bool{false, true} {
		if onTerm && (!terminals || d.alone || d.protocol != "" || testing.Short()) {
			continue
		}
		if !d.idle {
			s.reset()
		}
		c := call{dir: s.project, env: s.env, onTerm: onTerm, until: d.until, types: d.types}
		if path != "" {
			c.args = strings.Fields(path)
			if strings.HasPrefix(path, mark) {
				c.args = []string{path}
			}
		}
		for _, arg := range d.args {
			c.args = append(c.args, s.filled(arg))
		}
		if onTerm && d.onTerm != "" {
			c.until = d.onTerm
		}
		if d.stdin != "" {
			f, err := os.Open(filepath.Join(s.root, d.stdin))
			s.must(err)
			defer f.Close()
			c.stdin = f
		}
		p := c.run(s.t)
		if d.hosts {
			call{args: []string{"cleanup", "evil", "--force"}, dir: s.project, env: s.env}.run(s.t)
		}
		if c.until != "" && !strings.Contains(string(p.out)+string(p.err), c.until) {
			s.t.Errorf("%q does not show %q:\n%s\n%s", c.args, c.until, p.out, p.err)
		}
		if d.protocol != "" {
			p.out = nil
		}
		if d.shows && !strings.Contains(string(p.out)+string(p.err), mark) {
			s.t.Errorf("%q shows no hostile text, so it tests nothing:\n%s\n%s", c.args, p.out, p.err)
		}
		s.harmless(c, p.out)
		s.harmless(c, p.err)
	}
}

// filled replaces the placeholders in an argument.
func (s *stage) filled(arg string) string {
	arg = strings.ReplaceAll(arg, "{root}", s.root)
	for word, prefix := range map[string]string{"{permission}": "permission", "{plan}": "plan"} {
		if strings.Contains(arg, word) {
			arg = strings.ReplaceAll(arg, word, s.request(prefix))
		}
	}
	return strings.ReplaceAll(arg, "{evil}", evil("argument"))
}

// request returns the id of the open request of that kind.
func (s *stage) request(kind string) (id string) {
	of, err := (&app{home: s.home, err: standardError()}).engine().Look(s.t.Context(), "evil")
	s.must(err)
	defer of.Close()
	for r, err := range of.Read(s.t.Context(), 0) {
		s.must(err)
		for word := range strings.FieldsFuncSeq(string(marshal(r)), func(r rune) bool { return r == '"' }) {
			if strings.HasPrefix(word, kind+"-") {
				id = word
			}
		}
	}
	return id
}

// ours lists the control sequences that cadre itself writes.
var ours = []sanitize.Sequence{sanitize.OpenPage, sanitize.ClosePage, sanitize.TopOfPage, sanitize.NextLine,
	sanitize.RestOff, sanitize.EraseLine, sanitize.Bold, sanitize.Dim, sanitize.Red, sanitize.Green,
	sanitize.Yellow, sanitize.Cyan, sanitize.Normal}

// continued is the minimum indent, in columns, of a continuation line on a terminal.
const continued = 4

// harmless fails if the output has a control sequence for the terminal, or a line that imitates a
// line of cadre.
func (s *stage) harmless(c call, out []byte) {
	s.t.Helper()
	text := string(out)
	if c.onTerm {
		for _, sequence := range ours {
			text = strings.ReplaceAll(text, string(sequence), "\n")
		}
		text = strings.ReplaceAll(text, "\r\n", "\n") // the terminal's own newline
	}
	if !utf8.ValidString(text) {
		s.t.Errorf("%q (terminal: %v) writes bytes that are not UTF-8: %.400q", c.args, c.onTerm, text)
	}
	if at := strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' &&
			(unicode.IsControl(r) || hidden(r))
	}); at >= 0 {
		s.t.Errorf("%q (terminal: %v) writes %.20q, in %.400q", c.args, c.onTerm, text[at:], text[max(0, at-100):])
	}
	for line := range strings.Lines(text) {
		whole := line
		line = strings.TrimLeft(line, " \t")
		if c.onTerm && len(whole)-len(line) >= continued {
			continue // the rest of a long line is indented further than any line of cadre
		}
		if slices.ContainsFunc(forged, func(f string) bool { return strings.HasPrefix(line, f) }) {
			s.t.Errorf("%q (terminal: %v) writes the line %q, in\n%.2000s", c.args, c.onTerm, line, text)
		}
	}
}

// hidden reports whether the character is invisible, or changes how others are shown. No text of
// the stage has such a character where its script needs it.
func hidden(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r >= 0x200b && r <= 0x200f || r == 0x061c ||
		r == 0x00ad || r == 0xfeff || r >= 0xe0000 && r <= 0xe0fff || r == 0x2028 || r == 0x2029 || r == 0xfffe
}

// TestHostileTexts checks that the hostile texts contain none of cadre's own sequences, which the
// test ignores.
func TestHostileTexts(t *testing.T) {
	for _, sequence := range ours {
		if strings.Contains(evil(""), string(sequence)) {
			t.Errorf("the texts have %q", sequence)
		}
	}
}
