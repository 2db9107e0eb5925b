package team

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"cadre/internal/testkit/soak"
)

// TestCleanPattern: a pattern has one spelling. Other texts are refused, with what to write
// instead.
func TestCleanPattern(t *testing.T) {
	for pattern, want := range map[string]string{
		"src/parser/**": "src/parser", "src/*/**": "src/*/**", "src/parser/": "src/parser",
		"./src//parser": "src/parser", "**": "**", ".": "**",
		"**/**": "**", "src/**/*.go": "src/**/*.go", "docs/[a-c]?.md": "docs/[a-c]?.md", "Größe/ü*": "Größe/ü*",
		"a b/c": "a b/c", "-rf": "-rf",
	} {
		if got, err := CleanPath(pattern); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", pattern, got, err, want)
		}
	}
	for pattern, says := range map[string]string{
		"": "empty", "  ": "empty", "/etc/**": "relative", "~/src": "relative", "../other/**": "..", "a/../b": "..",
		`src\parser`: "separated by /", "{a,b}.go": "one pattern for each", "!src": "one pattern for each",
		"src/**.go": "both sides", "[a": "no ]", "[]": "no ]", "a\nb": "control characters", "a\xff": "no characters",
		strings.Repeat("x", MaxPathPattern+1): "of at most",
	} {
		if got, err := CleanPath(pattern); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %q, %v; want a refusal with %q", pattern, got, err, says)
		}
	}
}

// TestCovers: a pattern covers what it matches. A plain one covers everything below, too.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"src/parser", "src/parser/lex/a.go", true}, {"src/parser", "src/parser", true},
		{"src/parser", "src/parsers/a.go", false},
		{"src/parser", "src", false}, {"**", "a/b", true}, {"**/*.go", "a.go", true}, {"**/*.go", "x/y/a.go", true},
		{"**/*.go", "a.go.txt", false}, {"**/*.go", "a.go/b", false}, {"*.md", "docs/a.md", false},
		{"src/*", "src/a/b", false}, {"src/*/**", "src/a/b", true}, {"src/*/**", "src/a", true}, {"src/*/**", "src", false},
		{"Makefile", "makefile", true}, {"[A-C]x", "bX", true}, {"[^a]x", "ax", true}, {"[^a]1", "a1", true},
		{"[^ab]1", "c1", true}, {"a?c", "a/c", false}, {"docs/**/b", "docs/b", true},
		{"a", "[a]", false}, {"a*", "a*b", true}, {"**/x", "**/y", false},
	} {
		if got := Covers(c.pattern, c.file); got != c.want {
			t.Errorf("%q covers %q: %v", c.pattern, c.file, got)
		}
	}
}

// TestOverlapOfPatterns compares the rule with a search through all short paths.
func TestOverlapOfPatterns(t *testing.T) {
	soak.Long(t)
	random := rand.New(rand.NewPCG(1, 2))
	const letters = "abB"
	var files []string
	var more func(file string, names int)
	more = func(file string, names int) {
		var name func(n string)
		name = func(n string) {
			if n != "" {
				f := path.Join(file, n)
				files = append(files, f)
				if names > 1 {
					more(f, names-1)
				}
			}
			if len(n) < 2 {
				for _, l := range letters {
					name(n + string(l))
				}
			}
		}
		name("")
	}
	more("", 3)
	piece := func() string {
		return []string{"a", "b", "B", "*", "?", "[ab]", "[^a]", "[a-c]"}[random.IntN(8)]
	}
	pattern := func() string {
		var names []string
		for range 1 + random.IntN(2) {
			if random.IntN(4) == 0 {
				names = append(names, "**")
				continue
			}
			name := piece()
			if random.IntN(2) == 0 {
				name += piece()
			}
			if strings.Contains(name, "**") {
				name = "*"
			}
			names = append(names, name)
		}
		p, err := CleanPath(strings.Join(names, "/"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	// matches is the rule for one file in its plainest form.
	var matches func(names, file []string) bool
	below := false
	matches = func(names, file []string) bool {
		switch {
		case len(names) == 0:
			return len(file) == 0 || below
		case names[0] == "**":
			return matches(names[1:], file) || len(file) > 0 && matches(names, file[1:])
		case len(file) == 0:
			return false
		}
		same := false
		for _, n := range eachCase(file[0]) {
			for _, p := range []string{names[0], strings.ToLower(names[0])} {
				ok, err := path.Match(p, n)
				if err != nil {
					t.Fatal(err)
				}
				same = same || ok
			}
		}
		return same && matches(names[1:], file[1:])
	}
	both := 0
	for range 1500 {
		a, b := pattern(), pattern()
		want := false
		for _, f := range files {
			below = !strings.ContainsAny(a, "*?[")
			inA := matches(strings.Split(a, "/"), strings.Split(f, "/"))
			below = !strings.ContainsAny(b, "*?[")
			inB := matches(strings.Split(b, "/"), strings.Split(f, "/"))
			if inA != Covers(a, f) {
				t.Fatalf("%q covers %q: want %v", a, f, inA)
			}
			want = want || inA && inB
		}
		if got := overlaps(a, b, false); got != want {
			t.Fatalf("%q and %q overlap: %v", a, b, got)
		}
		if overlaps(a, b, false) != overlaps(b, a, false) {
			t.Fatalf("%q and %q overlap in one direction only", a, b)
		}
		if want {
			both++
		}
	}
	if both < 100 || both > 1400 {
		t.Errorf("%d of 1500 pairs overlap: the pairs are too much alike", both)
	}
}

// eachCase returns the name with each of its letters in upper and in lower case.
func eachCase(name string) []string {
	all := []string{""}
	for _, r := range name {
		var next []string
		for _, n := range all {
			next = append(next, n+strings.ToLower(string(r)), n+strings.ToUpper(string(r)))
		}
		all = next
	}
	return all
}

// TestHostilePatterns: a pattern of any agent is compared in a time that grows with its length
// alone.
func TestHostilePatterns(t *testing.T) {
	a := strings.TrimSuffix(strings.Repeat("**/a/", 100), "/") + "/b"
	b := strings.TrimSuffix(strings.Repeat("a/", 250), "/")
	if overlaps(a, b, true) {
		t.Error("no file of a alone ends in b")
	}
	stars := strings.TrimSuffix(strings.Repeat("*a", 250), "/")
	if !overlaps(stars, stars+"b*", false) && overlaps(stars+"b", strings.Repeat("a", 500), true) {
		t.Error("stars")
	}
}

func BenchmarkOverlap(b *testing.B) {
	for _, pair := range [][2]string{{"src/parser", "src/lexer/file.go"}, {"src/**/*.go", "src/parser/x.go"}} {
		b.Run(fmt.Sprint(pair[0], " ", pair[1]), func(b *testing.B) {
			for b.Loop() {
				overlaps(pair[0], pair[1], false)
			}
		})
	}
}
