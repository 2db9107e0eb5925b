package e2e

import (
	"slices"
	"strings"
	"testing"
)

// patchPair is two changes of one repository. Each is a shell script that makes its change to
// whatever it finds, so that both can be made one after the other.
type patchPair struct {
	name        string
	left, right string
	paths       string   // a pattern that covers what both change
	surfaces    string   // what the run has to name when both are merged; "" if they merge well
	both        []string // lines that the repository has when left is made first and then right
	turned      []string // lines that it has in the other order; nil if they are the same
}

// ledger are the files of the repository. Its test reads them as a program would.
var ledger = map[string]string{
	"lib.sh":    "round() { printf '%.0f\\n' \"$1\"; }\n",
	"main.sh":   ". ./lib.sh\nround 2.4 >/dev/null\n",
	"rates.txt": "standard 20\n\n\n\nreduced 5\n\n\n\nzero 0\n",
	"codes.txt": "A1 refund\n\n\n\n\n\nA2 charge\n",
	"limits.sh": "ledger=40\n\n\n\n\n\nbilling=40\n",
	"old.sh":    "old() { :; }\n",
	"test.sh": `set -e
for script in *.sh; do test "$script" = test.sh || sh -e "$script"; done
twice=$(cut -d' ' -f1 codes.txt | grep . | sort | uniq -d)
test -z "$twice" || { echo "the code $twice is there twice"; exit 1; }
. ./limits.sh
test $((ledger + billing)) -le 100 || { echo "the limits are over 100"; exit 1; }
for part in parts/*; do test ! -e "$part" || grep -qx "$part" parts.txt || { echo "$part is not listed"; exit 1; }; done
`,
}

// code adds a code with the next free number, at the line that a sed address says.
func code(at, what string) string {
	return `n=$(grep -c '^A' codes.txt); sed -i.was "` + at + ` a\\
A$((n + 1)) ` + what + `" codes.txt; rm codes.txt.was`
}

// raise sets a limit to 60, or to what the other one leaves.
func raise(limit, other string) string {
	return `. ./limits.sh; new=$((100 - ` + other + `)); test $new -le 60 || new=60
sed -i.was "s/^` + limit + `=.*/` + limit + `=$new/" limits.sh; rm limits.sh.was`
}

var patchPairs = []patchPair{
	{"one line", "sed -i.was '/^standard/s/$/ ann/' rates.txt; rm rates.txt.was",
		"sed -i.was '/^standard/s/$/ bob/' rates.txt; rm rates.txt.was", "rates.txt", "rates.txt",
		[]string{"standard 20 ann bob"}, []string{"standard 20 bob ann"}},
	{"one new file", "echo ann >>new.txt", "echo bob >>new.txt", "new.txt", "new.txt", []string{"ann", "bob"}, nil},
	{"the end of a list", code("$", "fee"), code("$", "tax"), "codes.txt", "codes.txt",
		[]string{"A3 fee", "A4 tax"}, []string{"A3 tax", "A4 fee"}},
	{"changed and removed", "echo 'older() { :; }' >>old.sh", "cat old.sh >>lib.sh; rm old.sh", "*.sh", "old.sh",
		[]string{"old() { :; }", "older() { :; }"}, nil},
	{"renamed and called", "sed -i.was 's/round/round_half/' *.sh; rm *.was",
		`name=$(sed -n 's/^\(round[a-z_]*\)().*/\1/p' lib.sh); printf '. ./lib.sh\n%s 3.6 >/dev/null\n' "$name" >more.sh`,
		"*.sh", "check test failed", []string{"round_half 2.4 >/dev/null", "round_half 3.6 >/dev/null"}, nil},
	{"the same number twice", code("1", "fee"), code("$", "tax"), "codes.txt", "the code A3 is there twice",
		[]string{"A3 fee", "A4 tax"}, []string{"A3 tax", "A4 fee"}},
	{"a sum", raise("ledger", "billing"), raise("billing", "ledger"), "limits.sh", "the limits are over 100",
		[]string{"ledger=60", "billing=40"}, []string{"ledger=40", "billing=60"}},
	{"a list that one replaces", "mkdir -p parts; echo ann >parts/ann; ls -d parts/* >parts.txt",
		"mkdir -p parts; echo bob >parts/bob; ls -d parts/* >parts.txt", "parts*", "parts.txt",
		[]string{"parts/ann", "parts/bob"}, nil},
	{"two files", "echo ann >ann.txt", "echo bob >bob.txt", "*.txt", "", []string{"ann", "bob"}, nil},
	{"two places of a file", "sed -i.was '/^standard/s/$/ ann/' rates.txt; rm rates.txt.was",
		"sed -i.was '/^zero/s/$/ bob/' rates.txt; rm rates.txt.was", "rates.txt", "",
		[]string{"standard 20 ann", "zero 0 bob"}, nil},
}

// pairTeam returns a team of two in which each makes one change. The check is the repository's own
// test.
func pairTeam(p patchPair, isolation, paths string) string {
	indent := func(script string) string { return strings.ReplaceAll(script, "\n", "\n      ") }
	member := func(name string) string { return "  - {name: " + name + ", agent: shell" + isolation + "}\n" }
	task := func(id, owner, script string) string {
		return "  - id: " + id + "\n    owner: " + owner + "\n" + paths + "    run: |\n      set -e\n      " + indent(script) + "\n"
	}
	return "name: pair\nconsolidate: true\nmembers:\n" + member("ann") + member("bob") +
		"checks:\n  - {name: test, run: sh test.sh}\n" +
		"tasks:\n" + task("left", "ann", p.left) + task("right", "bob", p.right)
}

// pairWorld has the repository, whose test passes with either change alone.
func pairWorld(t *testing.T, p patchPair) *world {
	t.Helper()
	w := newWorld(t)
	for name, text := range ledger {
		w.write(name, text)
	}
	w.git("init", "-q", "-b", "main")
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "first")
	return w
}

// TestPatchPairsAreSurfaced: where two changes conflict, or merge and then fail the test, a team
// with worktrees and a check names each of them, and commits none. What merges well is committed.
func TestPatchPairsAreSurfaced(t *testing.T) {
	t.Parallel()
	for _, p := range patchPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := pairWorld(t, p)
			head := w.gitSays("rev-parse", "HEAD")
			r := w.cadre("run", w.write("../pair.yaml", pairTeam(p, ", isolation: worktree", "")))
			if p.surfaces == "" {
				if r.code != 0 {
					t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
				}
				w.hasBoth(p)
				return
			}
			said := r.out + r.err
			if strings.Contains(said, "does not merge") {
				said = w.must("task", "show", "pair", "3") // the task to merge the branch
			}
			if r.code == 0 || !strings.Contains(said, p.surfaces) {
				t.Errorf("exit status %d, and %q is not named:\n%s%s\n%s", r.code, p.surfaces, r.out, r.err, said)
			}
			if now := w.gitSays("rev-parse", "HEAD"); now != head {
				t.Errorf("committed:\n%s", w.gitSays("show", "--stat"))
			}
			if left := w.gitSays("status", "--porcelain"); left != "?? pair-report.md" {
				t.Errorf("left in the work tree:\n%s", left)
			}
		})
	}
}

// TestPatchPairsInOrder: with paths, and without worktrees, the same two changes are made one after
// the other, and both are in one commit whose test passes.
func TestPatchPairsInOrder(t *testing.T) {
	t.Parallel()
	for _, p := range patchPairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := pairWorld(t, p)
			w.must("run", w.write("../pair.yaml", pairTeam(p, "", "    paths: ['"+p.paths+"']\n")))
			w.hasBoth(p)
		})
	}
}

// hasBoth checks that the last commit has both changes and passes the test.
func (w *world) hasBoth(p patchPair) {
	w.t.Helper()
	if got := w.gitSays("rev-list", "--count", "--first-parent", "HEAD"); got != "2" {
		w.t.Errorf("%s commits, want 2", got)
	}
	if got := w.gitSays("status", "--porcelain"); got != "?? pair-report.md" {
		w.t.Errorf("not committed:\n%s", got)
	}
	all := strings.Split(w.gitSays("grep", "-h", "", "HEAD"), "\n")
	lacks := func(line string) bool { return !slices.Contains(all, line) }
	if slices.ContainsFunc(p.both, lacks) && (p.turned == nil || slices.ContainsFunc(p.turned, lacks)) {
		w.t.Errorf("want %q, or in the other order %q, in\n%s", p.both, p.turned, strings.Join(all, "\n"))
	}
}
