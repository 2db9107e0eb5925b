package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// rules maps the name of each rule to its check. A check returns one sentence for every breach,
// with the reason for the rule.
var rules = map[string]func([]*pkg) []string{
	"rooms":               checkRooms,
	"top is not imported": checkTop,
	"bans":                checkBans,
	"clock":               checkClock,
	"output":              checkOutput,
	"dependencies":        checkDependencies,
	"names":               checkNames,
	"comments":            checkComments,
	"sizes":               checkSizes,
	"wings":               checkWings,
	"floors":              checkFloors,
	"widths":              checkWidths,
	"one assembly":        checkAssembly,
	"command line":        checkFront,
	"doc comments":        checkDocs,
	"functions":           checkFunctions,
	"units":               checkUnits,
}

func TestPlan(t *testing.T) {
	packages := read(t)
	for name, check := range rules {
		t.Run(name, func(t *testing.T) {
			for _, breach := range check(packages) {
				t.Error(breach)
			}
		})
	}
}

func TestHeavyModulesStayOut(t *testing.T) {
	modules := required(t)
	if len(modules) == 0 {
		t.Fatal("cannot parse go.mod")
	}
	for _, m := range modules {
		for _, h := range heavy {
			if strings.Contains(m, h.word) {
				t.Errorf("go.mod requires %s: %s", m, h.because)
			}
		}
	}
}

// TestRulesBite checks that each rule finds the breach that it forbids, and gives the reason.
func TestRulesBite(t *testing.T) {
	good := func() *pkg {
		return &pkg{path: "internal/team", comment: strings.Repeat("Package team is. ", 20)}
	}
	at := func(path string) *pkg { p := good(); p.path = path; return p }
	uses := func(p *pkg, imports ...string) *pkg {
		p.imports = map[string]string{}
		for _, i := range imports {
			p.imports[i] = "file.go"
		}
		return p
	}
	for _, bad := range []struct {
		rule string
		pkg  *pkg
		says string
	}{
		{"rooms", uses(good(), "cadre/internal/replica"), "imports no other package"},
		{"rooms", at("internal/cellar"), "no row"},
		{"top is not imported", uses(at("internal/run"), "cadre/pkg/teams"), "points downwards"},
		{"top is not imported", uses(at("pkg/teams"), "cadre/cmd/cadre"), "points downwards"},
		{"bans", uses(good(), "github.com/spf13/cobra"), "for ever"},
		{"bans", uses(good(), "math/rand/v2"), "for ever"},
		{"bans", uses(at("internal/hook"), "os/exec"), "outlives its host"},
		{"bans", uses(at("internal/replica"), "net/http"), "network"},
		{"clock", &pkg{path: "internal/render/report", time: map[string]string{"time.Now": "file.go"}},
			"comes in from outside"},
		{"clock", &pkg{path: "internal/team", time: map[string]string{"time.AfterFunc": "file.go"}},
			"comes in with the command"},
		{"output", &pkg{path: "cmd/cadre", output: map[use]bool{{"os.Stdout", "team.go"}: true}},
			"passes the sanitizer"},
		{"output", &pkg{path: "cmd/cadre", output: map[use]bool{{"os.Stdout", "output.go"}: true,
			{"fmt.Fprintln", "output.go"}: true}}, "fmt.Fprintln"},
		{"output", &pkg{path: "internal/replica", output: map[use]bool{{"os.Stderr", "replica.go"}: true}},
			"passes the sanitizer"},
		{"dependencies", uses(good(), "example.com/left/pad"), "argued"},
		{"dependencies", uses(good(), "pgregory.net/rapid/gen"), "in tests only"},
		{"names", at("internal/journal/utils"), "name"},
		{"comments", &pkg{path: "internal/team", comment: "Package team is a package.",
			lines: map[string]int{"a.go": 1}}, "authority"},
		{"one assembly", &pkg{path: "cmd/cadre", parts: map[string]string{"host.New": "team.go"}}, "drift"},
		{"doc comments", &pkg{path: "internal/host", links: []link{{"", "Gone", "file.go"}}}, "[Gone]"},
		{"doc comments", &pkg{path: "internal/host", misnamed: []string{"file.go: Old"}}, "Old"},
		{"doc comments", &pkg{path: "internal/host", escaped: []string{"file.go:7"}}, "file.go:7"},
		{"command line", uses(at("cmd/cadre"), "cadre/internal/host"), "next front end"},
		{"command line", &pkg{path: "cmd/cadre", imports: map[string]string{"cadre/internal/consolidate": "f.go"},
			names: map[string]string{"internal/consolidate.Run": "f.go"}}, "next front end"},
		{"floors", uses(at("internal/agent/wake"), "cadre/internal/host"), "points upwards"},
		{"floors", at("internal/cellar/wine"), "no floor"},
		{"widths", &pkg{path: "internal/team", lines: map[string]int{"a.go": 100},
			wide: []string{"internal/team/a.go:1"}},
			"120 columns"},
		{"widths", &pkg{path: "internal/team", wideComments: slices.Repeat([]string{"internal/team/a.go:1"},
			maxWideComments+1)}, "100 columns"},
		{"sizes", &pkg{path: "internal/team", lines: map[string]int{"long.go": maxLines + 1}}, "two files"},
		{"functions", &pkg{path: "internal/team", long: slices.Repeat([]string{"internal/team/a.go:1"},
			maxLongFunctions+1)}, "one screen"},
		{"units", &pkg{path: "internal/team", units: map[use]bool{{"TimeoutMS", "a.go"}: true}}, "TimeoutMS"},
	} {
		breaches := rules[bad.rule]([]*pkg{bad.pkg})
		if !slices.ContainsFunc(breaches, func(b string) bool {
			return strings.Contains(b, bad.says) && strings.Contains(b, bad.pkg.path)
		}) {
			t.Errorf("%s: the breach by %s reported %q", bad.rule, bad.pkg.path, breaches)
		}
	}
}

// TestWingsBite checks that the rule finds a cycle of two wings, and too many wings.
func TestWingsBite(t *testing.T) {
	room := func(path, imports string) *pkg {
		return &pkg{path: path, imports: map[string]string{module + "/" + imports: "file.go"}}
	}
	circle := []*pkg{room("internal/team", "internal/journal/filejournal"), room("internal/journal", "internal/sys"),
		room("internal/journal/filejournal", "internal/team/codec")}
	if got := checkWings(circle); len(got) != 2 || !strings.Contains(got[0], "in one direction") {
		t.Errorf("a cycle reported %q", got)
	}
	var many []*pkg
	for i := range maxWings + 1 {
		many = append(many, room(fmt.Sprintf("internal/w%d/x", i), "internal/sys"))
	}
	if got := checkWings(many); len(got) != 1 || !strings.Contains(got[0], "one look") {
		t.Errorf("too many wings reported %q", got)
	}
}

// TestClockIsFound checks that the search for the clock finds a known use of time.Now in this
// repository.
func TestClockIsFound(t *testing.T) {
	for _, p := range read(t) {
		if p.path == "internal/replica" && p.time["time.Now"] == "" {
			t.Error("the search did not find time.Now in internal/replica")
		}
	}
}

// TestOutputIsFound checks that the search for unsanitized output finds each kind of it, under any
// import name.
func TestOutputIsFound(t *testing.T) {
	const source = `package main
		import ("os"; say "fmt"; "io"; "cadre/internal/render/sanitize")
		const fixed = "x"
		func f(w *sanitize.Writer, text string) {
			os.Stdout.WriteString(text); say.Fprintln(w, text); io.WriteString(w, text); println(text)
			w.Draw(sanitize.Sequence(text)); w.Printf(text); said("a" + "b", text); said("a" + text)
			w.Printf("%s", text)
		}`
	f, err := parser.ParseFile(token.NewFileSet(), "file.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	p := &pkg{output: map[use]bool{}}
	p.findOutput("file.go", f)
	var got []string
	for u := range p.output {
		got = append(got, u.what)
	}
	slices.Sort(got)
	want := []string{"Printf with a format that is no constant", "a new control sequence", "fmt.Fprintln",
		"io.WriteString", "os.Stdout", "println", "said with a format that is no constant"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ourImports returns the imports of this module, as paths relative to it.
func (p *pkg) ourImports() []string {
	var ours []string
	for _, i := range sorted(p.imports) {
		if path, ok := strings.CutPrefix(i, module+"/"); ok {
			ours = append(ours, path)
		}
	}
	return ours
}

func checkRooms(packages []*pkg) (breaches []string) {
	there := map[string]*pkg{}
	for _, p := range packages {
		there[p.name()] = p
		if !strings.HasPrefix(p.path, "internal/") {
			continue
		}
		i := slices.IndexFunc(rooms, func(r room) bool { return r.name == p.name() })
		if i < 0 {
			breaches = append(breaches, fmt.Sprintf("%s has no row in the plan: say what it may import, and why",
				p.path))
			continue
		}
		for _, path := range p.ourImports() {
			if name, internal := strings.CutPrefix(path, "internal/"); internal &&
				!slices.Contains(rooms[i].may, name) {
				breaches = append(breaches, fmt.Sprintf("%s imports %s (%s), and may import %v: %s",
					p.path, path, p.imports[module+"/"+path], rooms[i].may, rooms[i].because))
			}
		}
	}
	for _, r := range rooms {
		if len(packages) > 1 && there[r.name] == nil {
			breaches = append(breaches, fmt.Sprintf("the plan has a row for %s, which does not exist", r.name))
		}
	}
	return breaches
}

// wingOf returns the first-level folder of internal that a package is in; "" outside of internal.
func wingOf(path string) string {
	wing, internal := strings.CutPrefix(path, "internal/")
	if !internal {
		return ""
	}
	wing, _, _ = strings.Cut(wing, "/")
	return wing
}

// checkFloors checks that no wing imports one on a floor above its own.
func checkFloors(packages []*pkg) (breaches []string) {
	floorOf := func(wing string) int {
		return slices.IndexFunc(floors, func(f floor) bool { return slices.Contains(f.wings, wing) })
	}
	there := map[string]bool{}
	for _, p := range packages {
		wing := wingOf(p.path)
		if wing == "" {
			continue
		}
		there[wing] = true
		on := floorOf(wing)
		if on < 0 {
			breaches = append(breaches, fmt.Sprintf("%s: its wing has no floor in the plan", p.path))
			continue
		}
		for _, path := range p.ourImports() {
			if to := wingOf(path); to != "" && floorOf(to) < on {
				breaches = append(breaches, fmt.Sprintf("%s imports %s (%s), which points upwards: %s is on the "+
					"floor %q, and a floor can be read without those above it", p.path, path,
					p.imports[module+"/"+path], wing,
					floors[on].name))
			}
		}
	}
	for _, f := range floors {
		for _, wing := range f.wings {
			if len(packages) > 1 && !there[wing] {
				breaches = append(breaches, fmt.Sprintf("the plan has a floor for %s, which does not exist", wing))
			}
		}
	}
	return breaches
}

// checkWings checks the imports between wings. A wing is a first-level folder of internal with
// everything in it.
func checkWings(packages []*pkg) (breaches []string) {
	imports := map[string]map[string]string{} // by importing and imported wing: the import, for the report
	for _, p := range packages {
		wing := wingOf(p.path)
		if wing == "" {
			continue
		}
		if imports[wing] == nil {
			imports[wing] = map[string]string{}
		}
		for _, path := range p.ourImports() {
			if to := wingOf(path); to != "" && to != wing {
				imports[wing][to] = fmt.Sprintf("%s imports %s", p.path, path)
			}
		}
	}
	if len(imports) > maxWings {
		breaches = append(breaches, fmt.Sprintf("internal has %d wings, and %d can be read in one look: move one "+
			"of %v into another", len(imports), maxWings, sorted(imports)))
	}
	for len(imports) > 0 { // remove the lowest wings one by one; what remains is a cycle
		low := slices.DeleteFunc(sorted(imports), func(wing string) bool {
			return slices.ContainsFunc(sorted(imports[wing]), func(to string) bool { return imports[to] != nil })
		})
		if len(low) == 0 {
			for _, wing := range sorted(imports) {
				for _, to := range sorted(imports[wing]) {
					if imports[to] != nil {
						breaches = append(breaches, imports[wing][to]+", which closes a cycle: wings import each "+
							"other in one direction, so that each can be read without those above it")
					}
				}
			}
			break
		}
		for _, wing := range low {
			delete(imports, wing)
		}
	}
	return breaches
}

func checkTop(packages []*pkg) (breaches []string) {
	level := func(path string) int {
		first, _, _ := strings.Cut(path, "/")
		return len(top) - slices.Index(append(slices.Clone(top), first), first) // the highest for cmd, 0 for internal
	}
	for _, p := range packages {
		for _, path := range p.ourImports() {
			if to := level(path); to > 0 && to > level(p.path) {
				breaches = append(breaches, fmt.Sprintf("%s imports %s: the plan points downwards, and what is on "+
					"top of it (%v) can be replaced without asking those below", p.path, path, top))
			}
		}
	}
	return breaches
}

// covers reports whether path is the banned import or a package below it.
func covers(banned, path string) bool {
	return path == banned || strings.HasPrefix(path, banned+"/")
}

func checkBans(packages []*pkg) (breaches []string) {
	for _, p := range packages {
		for _, b := range bans {
			if b.from != nil && !slices.Contains(b.from, p.name()) || slices.Contains(b.but, p.path) {
				continue
			}
			for _, path := range sorted(p.imports) {
				if slices.ContainsFunc(b.imports, func(banned string) bool { return covers(banned, path) }) {
					breaches = append(breaches, fmt.Sprintf("%s imports %s (%s): %s", p.path, path,
						p.imports[path], b.because))
				}
			}
		}
	}
	return breaches
}

func checkClock(packages []*pkg) (breaches []string) {
	reads := map[string]bool{}
	for _, p := range packages {
		for _, call := range sorted(p.time) {
			if p.name() == "team" && !slices.Contains(durations, call) {
				breaches = append(breaches, fmt.Sprintf("%s uses %s (%s): the core may use only the durations of "+
					"package time; the current time comes in with the command", p.path, call, p.time[call]))
			}
			if !slices.Contains([]string{"time.Now", "time.Since", "time.Until"}, call) {
				continue
			}
			reads[p.path] = true
			if !slices.ContainsFunc(mayReadTheClock, func(r struct{ pkg, because string }) bool {
				return r.pkg == p.path
			}) {
				breaches = append(breaches, fmt.Sprintf("%s calls %s (%s): the current time comes in from outside, "+
					"so that a test can set it; the plan lists the packages that may read the clock, each with a "+
					"reason", p.path, call, p.time[call]))
			}
		}
	}
	for _, r := range mayReadTheClock {
		if len(packages) > 1 && !reads[r.pkg] {
			breaches = append(breaches, fmt.Sprintf("the plan lets %s read the clock (%s), but it does not",
				r.pkg, r.because))
		}
	}
	return breaches
}

func checkOutput(packages []*pkg) (breaches []string) {
	used := map[int]bool{}
	for _, p := range packages {
		for u := range p.output {
			if !slices.Contains(streams, u.what) && p.path != "cmd/cadre" {
				continue
			}
			i := slices.IndexFunc(mayWrite, func(r writing) bool { return r.pkg == p.path && r.use == u })
			if i < 0 {
				breaches = append(breaches, fmt.Sprintf("%s uses %s (%s): everything that a person reads passes the "+
					"sanitizer in the writers of app, so that no text of an agent reaches a terminal as it is; "+
					"Printf takes a format of ours and any arguments, Value what is to be JSON, Draw "+
					"control sequences", p.path, u.what, u.file))
			}
			used[i] = true
		}
	}
	for i, r := range mayWrite {
		if len(packages) > 1 && !used[i] {
			breaches = append(breaches, fmt.Sprintf("the plan lets %s use %s (%s: %s), but it does not", r.pkg,
				r.use.what, r.use.file, r.because))
		}
	}
	slices.Sort(breaches)
	return breaches
}

func checkAssembly(packages []*pkg) (breaches []string) {
	for _, p := range packages {
		for _, a := range assembled {
			file, uses := p.parts[a.use]
			allowed := slices.Contains(append([]string{"internal/engine", "internal/testkit/simtest"}, a.by...), p.path)
			if uses && !allowed {
				breaches = append(breaches, fmt.Sprintf("%s uses %s (%s): only the engine assembles the parts of a "+
					"team, because two assemblies drift apart; %v may use it too: %s", p.path,
					a.use, file, a.by, a.because))
			}
		}
	}
	for _, a := range assembled {
		for _, path := range a.by {
			i := slices.IndexFunc(packages, func(p *pkg) bool { return p.path == path })
			if len(packages) > 1 && (i < 0 || packages[i].parts[a.use] == "") {
				breaches = append(breaches, fmt.Sprintf("the plan lets %s use %s, but it does not", path, a.use))
			}
		}
	}
	return breaches
}

// checkFront checks that the command line uses only the parts of the module that it may use.
func checkFront(packages []*pkg) (breaches []string) {
	i := slices.IndexFunc(packages, func(p *pkg) bool { return p.path == "cmd/cadre" })
	if i < 0 {
		return nil
	}
	p := packages[i]
	used := map[string]bool{}
	for _, path := range p.ourImports() {
		name := strings.TrimPrefix(path, "internal/")
		i := slices.IndexFunc(front, func(f fronted) bool { return f.name == name })
		if i < 0 {
			breaches = append(breaches,
				fmt.Sprintf("%s imports %s (%s): the next front end would need the same "+
					"code; move it into the engine, or say in the plan why only the command line needs it",
					p.path, path,
					p.imports[module+"/"+path]))
			continue
		}
		used[name] = true
		for _, what := range sorted(p.names) {
			of, is := strings.CutPrefix(what, path+".")
			if is {
				used[name+"."+of] = true
			}
			if is && front[i].names != nil && !slices.Contains(front[i].names, of) {
				breaches = append(breaches, fmt.Sprintf("%s uses %s (%s), and may use only %v of it: %s. The "+
					"next front end would need the same code", p.path, what, p.names[what], front[i].names,
					front[i].because))
			}
		}
	}
	for _, f := range front {
		if len(packages) > 1 && !used[f.name] {
			breaches = append(breaches, fmt.Sprintf("the plan lets %s import %s, but it does not", p.path, f.name))
		}
		for _, of := range f.names {
			if len(packages) > 1 && used[f.name] && !used[f.name+"."+of] {
				breaches = append(breaches, fmt.Sprintf("the plan lets %s use %s.%s, but it does not", p.path,
					f.name, of))
			}
		}
	}
	return breaches
}

func checkDependencies(packages []*pkg) (breaches []string) {
	check := func(p *pkg, imports map[string]string, test bool) {
		for _, path := range sorted(imports) {
			first, _, _ := strings.Cut(path, "/")
			if !strings.Contains(first, ".") { // the standard library or this module
				continue
			}
			i := slices.IndexFunc(dependencies, func(d dependency) bool { return covers(d.module, path) })
			switch {
			case i < 0:
				breaches = append(breaches, fmt.Sprintf("%s imports %s (%s): a dependency is argued in the plan, in "+
					"the commit that adds it", p.path, path, imports[path]))
			case dependencies[i].tests && !test && !strings.HasSuffix(p.path, "test"):
				breaches = append(breaches, fmt.Sprintf("%s imports %s (%s), which may be used in tests only: %s",
					p.path, path, imports[path], dependencies[i].because))
			}
		}
	}
	for _, p := range packages {
		check(p, p.imports, false)
		check(p, p.tests, true)
	}
	return breaches
}

func checkNames(packages []*pkg) (breaches []string) {
	for _, p := range packages {
		for part := range strings.SplitSeq(p.path, "/") {
			if slices.Contains(vague, part) {
				breaches = append(breaches, fmt.Sprintf("%s: the name %s does not say what the package is for, so "+
					"in time it collects everything; name it after the concept", p.path, part))
			}
		}
	}
	return breaches
}

func checkComments(packages []*pkg) (breaches []string) {
	for _, p := range packages {
		if len(p.lines) > 0 && len(p.comment) < minComment {
			breaches = append(breaches, fmt.Sprintf("%s has a package comment of %d bytes: it must state the "+
				"authority of the package and its guarantees, which a reader cannot find in the code", p.path,
				len(p.comment)))
		}
	}
	return breaches
}

func checkSizes(packages []*pkg) (breaches []string) {
	for _, p := range packages {
		for _, file := range slices.Sorted(maps.Keys(p.lines)) {
			if n := p.lines[file]; n > maxLines && !strings.Contains(p.comment, file) {
				breaches = append(breaches, fmt.Sprintf("%s/%s has %d lines, and the limit is %d: split it into two "+
					"files, or name it in the package comment with the reason", p.path, file, n, maxLines))
			}
		}
	}
	return breaches
}

// checkWidths checks how many lines are wider than the limits for code and for comments.
func checkWidths(packages []*pkg) (breaches []string) {
	var wide, comments []string
	lines := 0
	for _, p := range packages {
		wide, comments = append(wide, p.wide...), append(comments, p.wideComments...)
		for _, n := range p.lines {
			lines += n
		}
		for _, n := range p.testLines {
			lines += n
		}
	}
	if 1000*len(wide) > maxWide*lines {
		breaches = append(breaches, fmt.Sprintf("%d of %d lines of Go are wider than %d columns, and %d permille may "+
			"be: a reader does not see their ends. Break some of %v", len(wide), lines, maxColumn, maxWide, wide))
	}
	if len(comments) > maxWideComments {
		breaches = append(breaches, fmt.Sprintf("%d lines of comments are wider than %d columns, and %d were before: "+
			"wrap them. They are %v", len(comments), maxCommentColumn, maxWideComments, comments))
	}
	return breaches
}
