package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/git/worktree"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// looked returns the project's state before a team begins, as the consolidation records it.
func (l *lab) looked(project string, dirty ...string) team.Base {
	l.Helper()
	top := l.git(project, "rev-parse", "--show-toplevel")
	commit, _ := l.try(project, "rev-parse", "--verify", "-q", "HEAD")
	b := team.Base{Top: top, Commit: commit}
	for _, path := range dirty {
		most := int64(1 << 30)
		sum, err := worktree.Digest(l.Context(), l.procs, filepath.Join(top, path), &most)
		if err != nil {
			l.Fatal(err)
		}
		b.Dirty = append(b.Dirty, team.Fact{Path: path, SHA256: sum})
	}
	return b
}

// workIn returns a team of two that was created on that base.
func workIn(t testing.TB, dir string, base team.Base) *work {
	w := &work{state: &team.State{}}
	w.do(t, team.User, &team.CreateTeam{TeamID: "T1", Name: "demo", Dir: dir, Base: base})
	w.do(t, "lead", &team.SpawnMember{Name: "ann", Agent: team.External})
	w.do(t, "lead", &team.SpawnMember{Name: "bob", Agent: "claude", Isolation: team.Worktree})
	w.do(t, team.Host("h1"), &team.AttachMember{Member: "bob"})
	return w
}

// TestWorkIsCarried checks that a fetch of the one branch brings the branches of the members and
// the team's uncommitted work. No file of the person is touched.
func TestWorkIsCarried(t *testing.T) {
	l := newLab(t)
	project := l.repository("r")
	for path, text := range map[string]string{"kept.txt": "kept\n", "gone.txt": "gone\n", "run.sh": "#!/bin/sh\n",
		"folder/x": "x\n", "yours.txt": "yours\n", "both.txt": "both\n", "crlf.txt": "a\n",
		".gitattributes": "crlf.txt text eol=crlf\n"} {
		l.write(filepath.Join(project, path), text)
	}
	l.git(project, "add", "-A")
	l.git(project, "commit", "-q", "-m", "more")
	l.write(filepath.Join(project, "yours.txt"), "yours, changed\n")
	l.write(filepath.Join(project, "both.txt"), "both, changed\n")
	l.write(filepath.Join(project, "staged.txt"), "staged\n")
	l.git(project, "add", "staged.txt")
	base := l.looked(project, "yours.txt", "both.txt", "staged.txt")

	// The members work.
	l.write(filepath.Join(project, "both.txt"), "both, changed by the team\n")
	l.write(filepath.Join(project, "a.txt"), "two\n")
	l.write(filepath.Join(project, "crlf.txt"), "a\r\nb\r\n")
	l.write(filepath.Join(project, "new/deep/file"), "new\n")
	l.write(filepath.Join(project, "\"odd\" name\nwith a break"), "odd\n")
	l.write(filepath.Join(project, " leading blank"), "blank\n")
	for _, err := range []error{os.Remove(filepath.Join(project, "gone.txt")),
		os.Chmod(filepath.Join(project, "run.sh"), 0o755), os.RemoveAll(filepath.Join(project, "folder")),
		os.WriteFile(filepath.Join(project, "folder"), []byte("a file now\n"), 0o644),
		os.Symlink("nowhere", filepath.Join(project, "link"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	tree := filepath.Join(l.dir, "bob")
	l.git(project, "worktree", "add", "-q", "-b", "cadre/demo@bob", tree)
	l.write(filepath.Join(tree, "bob.txt"), "by bob\n")
	l.git(tree, "add", "-A")
	l.git(tree, "commit", "-q", "-m", "by bob")
	mislead(t, l)
	before := outside(t, l)

	w := workIn(t, project, base)
	c := l.checkpoint(l.store(project), w)
	if after := outside(t, l); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if out, err := l.try(project, "fsck", "--strict", "--no-dangling"); err != nil {
		t.Errorf("%v: %s", err, out)
	}

	// Only that branch is pushed and fetched.
	l.git(l.dir, "init", "-q", "--bare", "remote.git")
	l.git(project, "push", "-q", filepath.Join(l.dir, "remote.git"), "cadre/demo")
	l.git(l.dir, "clone", "-q", "--no-checkout", filepath.Join(l.dir, "remote.git"), "clone")
	clone := filepath.Join(l.dir, "clone")
	l.git(clone, "fetch", "-q", "origin", "cadre/demo:cadre/demo")
	r, err := l.store(clone).Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Commit != c.Commit || r.Work.Head != l.git(project, "rev-parse", "HEAD") || r.Work.Branch != "main" ||
		r.Work.Top != base.Top || r.Work.Unknown != "" {
		t.Errorf("%+v", r.Work)
	}
	if len(r.Work.Branches) != 1 || r.Work.Branches[0] != (Tip{"cadre/demo@bob",
		l.git(project, "rev-parse", "cadre/demo@bob")}) {
		t.Errorf("branches: %v", r.Work.Branches)
	}
	if got := l.git(clone, "show", r.Work.Branches[0].Commit+":bob.txt"); got != "by bob" {
		t.Errorf("bob has written %q", got)
	}
	if parents := l.git(clone, "log", "-1", "--format=%P %s", r.Work.Shared); parents != r.Work.Head+
		" Uncommitted work of team demo" {
		t.Errorf("it is on %s", parents)
	}
	changed := l.git(clone, "diff-tree", "-r", "--name-status", "-z", r.Work.Head, r.Work.Shared)
	want := "A\x00 leading blank\x00A\x00\"odd\" name\nwith a " +
		"break\x00M\x00a.txt\x00M\x00crlf.txt\x00A\x00folder\x00D\x00folder/x\x00D\x00gone.txt\x00A\x00link\x00A\x00new/deep/file\x00M\x00run.sh\x00"
	if changed != want {
		t.Errorf("it has %q\nand not %q", changed, want)
	}
	if got := l.git(clone, "cat-file", "blob", r.Work.Shared+":crlf.txt"); got != "a\nb" {
		t.Errorf("crlf.txt is %q", got)
	}
	if got := l.git(clone, "ls-tree", r.Work.Shared, "run.sh", "link"); !strings.Contains(got, "100755") ||
		!strings.Contains(got, "120000") {
		t.Error(got)
	}
	if len(r.Work.Left) != 1 || r.Work.Left[0].Path != "both.txt" || !strings.Contains(r.Work.Left[0].Why,
		"yours before the team") {
		t.Errorf("left: %v", r.Work.Left)
	}
}

// TestNotCarried checks that files that git ignores, large files, and files that likely contain a
// secret are named instead. Included paths are carried from then on.
func TestNotCarried(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	l := newLab(t)
	project := l.repository("r")
	l.write(filepath.Join(project, ".gitignore"), "build/\n*.log\n")
	l.git(project, "add", "-A")
	l.git(project, "commit", "-q", "-m", "ignores")
	base := l.looked(project)
	const secret = "token = \"ghp_abcdefghijklmnopqrstuvwxyz0123456789\"\n"
	l.write(filepath.Join(project, "build/out/x"), "built\n")
	l.write(filepath.Join(project, "build/y"), "built\n")
	l.write(filepath.Join(project, "a.log"), "log\n")
	l.write(filepath.Join(project, "big"), strings.Repeat("x", mostFile+1))
	l.write(filepath.Join(project, "fits"), strings.Repeat("x", mostFile))
	l.write(filepath.Join(project, "secret.go"), secret)
	l.write(filepath.Join(project, "key"), "\x00\x01-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE "+
		"KEY-----\n")
	l.write(filepath.Join(project, "own/data"), "cadre's\n")
	l.git(l.dir, "init", "-q", filepath.Join(project, "nested"))
	l.write(filepath.Join(project, "nested/x"), "x\n")
	w := workIn(t, project, base)
	paths := func(s *Store) string {
		r, err := s.Restore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, one := range r.Work.Left {
			left = append(left, one.Path)
		}
		return strings.ReplaceAll(l.git(project, "diff-tree", "-r", "--name-only", r.Work.Head, r.Work.Shared), "\n",
			" ") + " | " + strings.Join(left, " ")
	}
	s := l.store(project)
	write := func(s *Store, include ...string) Checkpoint {
		c, err := s.Write(t.Context(), w, Beside{Except: []string{filepath.Join(project, "own")}, Include: include})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	write(s)
	if got := paths(s); got != "fits | big key nested secret.go a.log build" {
		t.Error(got)
	}
	text := l.git(project, "show", "cadre/demo:README.md")
	for _, path := range []string{"big", "key", "secret&#46;go"} {
		if !strings.Contains(text, "* not carried: "+path+" ") {
			t.Errorf("README.md does not name %s:\n%s", path, text)
		}
	}
	if c := write(s, "secret.go", "build/out"); !c.Written {
		t.Error("nothing was written for what is to be carried")
	}
	if got := paths(s); got != "build/out/x fits secret.go | big key nested a.log build" {
		t.Error(got)
	}
	// This holds even for a process that knows nothing of it yet.
	w.do(t, "lead", &team.CreateTask{Subject: "more"})
	write(l.store(project))
	if got := paths(s); got != "build/out/x fits secret.go | big key nested a.log build" {
		t.Error(got)
	}
	write(s, "build", "big")
	if got := paths(s); got != "big build/out/x build/y fits secret.go | key nested a.log" {
		t.Error(got)
	}
	all := l.git(project, "rev-list", "--objects", "--no-object-names", "cadre/demo")
	if key := l.git(project, "hash-object", "key"); strings.Contains(all, key) {
		t.Error("the key is reachable from the branch")
	}
	// A carried file is dropped once it contains a secret.
	l.write(filepath.Join(project, "fits"), secret)
	write(s)
	if got := paths(s); got != "big build/out/x build/y secret.go | fits key nested a.log" {
		t.Error(got)
	}
}

// TestWorkIsCarriedOnce checks that unchanged work gets no further commits, and makes no checkpoint
// due.
func TestWorkIsCarriedOnce(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	project := l.repository("r")
	w := workIn(t, project, l.looked(project))
	l.write(filepath.Join(project, "new.txt"), "new\n")
	s := l.store(project)
	first := l.checkpoint(s, w)
	if again := l.checkpoint(s, w); again.Written {
		t.Errorf("%+v", again)
	}
	if again := l.checkpoint(l.store(project), w); again.Written || again.Commit != first.Commit {
		t.Errorf("by another process: %+v", again)
	}
	for range 3 {
		w.step(t)
		for _, s := range []*Store{s, l.store(project)} {
			l.checkpoint(s, w)
		}
		if parents := l.git(project, "log", "-1", "--format=%P", "cadre/demo"); strings.Contains(parents, " ") {
			t.Errorf("nothing is new, and the parents are %s", parents)
		}
	}
	l.write(filepath.Join(project, "new.txt"), "newer\n")
	if c := l.checkpoint(s, w); !c.Written {
		t.Error("a change in the work tree is not carried")
	}
	l.git(project, "add", "-A")
	l.git(project, "commit", "-q", "-m", "by a member")
	l.checkpoint(s, w)
	r := brings(t, s, w)
	if r.Work.Shared != "" || r.Work.Head != l.git(project, "rev-parse", "HEAD") ||
		l.git(project, "merge-base", "--is-ancestor", "HEAD", "cadre/demo") != "" {
		t.Errorf("%+v", r.Work)
	}
}

// TestManyBranches checks that a checkpoint has few parents, however much is new, and carries
// everything.
func TestManyBranches(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	project := l.repository("r")
	w := workIn(t, project, l.looked(project))
	for n := range 40 {
		tree := l.git(project, "rev-parse", "HEAD^{tree}")
		commit := l.git(project, "commit-tree", "-p", "HEAD", "-m", fmt.Sprint("of member ", n), tree)
		l.git(project, "update-ref", fmt.Sprintf("refs/heads/cadre/demo@m%d", n), commit)
	}
	l.checkpoint(l.store(project), w)
	for line := range strings.SplitSeq(l.git(project, "rev-list", "--parents", "cadre/demo"), "\n") {
		if n := len(strings.Fields(line)) - 1; n > mostParents+1 {
			t.Errorf("a commit has %d parents", n)
		}
	}
	for n := range 40 {
		l.git(project, "merge-base", "--is-ancestor", fmt.Sprintf("cadre/demo@m%d", n), "cadre/demo")
	}
	if files := l.git(project, "ls-tree", "-r", "--name-only", "cadre/demo"); strings.Contains(files, "a.txt") {
		t.Errorf("the tree has\n%s", files)
	}
}

// TestUnknownWork checks that a checkpoint is made, and says so, if it is unknown which changes are
// the team's.
func TestUnknownWork(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for name, make := range repositories {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			project := make(l)
			w := workIn(t, project, team.Base{Top: "/elsewhere"})
			l.checkpoint(l.store(project), w)
			r := brings(t, l.store(project), w)
			if bare := name == "bare"; bare != (r.Work.Unknown == "") || r.Work.Shared != "" {
				t.Errorf("%+v", r.Work)
			}
		})
	}
}

// TestFilesThatVanish makes checkpoints while agents write and remove files.
func TestFilesThatVanish(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	project := l.repository("r")
	w := workIn(t, project, l.looked(project))
	s := l.store(project)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; n < 400; n++ {
			path := filepath.Join(project, fmt.Sprint("f", n%7))
			os.WriteFile(path, []byte(strings.Repeat("x", n)), 0o600)
			os.Remove(path)
			os.Mkdir(path, 0o700)
			os.WriteFile(filepath.Join(path, "in"), nil, 0o600)
			os.RemoveAll(path)
		}
	}()
	for more := true; more; {
		w.step(t)
		l.checkpoint(s, w)
		select {
		case <-done:
			more = false
		default:
		}
	}
	l.write(filepath.Join(project, "last"), "last\n")
	w.step(t)
	l.checkpoint(s, w)
	if r := brings(t, s, w); r.Work.Unknown != "" || l.git(project, "show", r.Work.Shared+":last") != "last" {
		t.Errorf("%+v", r.Work)
	}
}

// TestLooseObjects checks that a thousand checkpoints leave few loose objects and few packs. Every
// object exists, and other loose objects stay loose.
func TestLooseObjects(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	total, every := 120, 8 // like 1,000 with the default of 64, and faster
	if testing.Short() {
		total, every = 30, 4
	}
	l := newLab(t)
	project := l.repository("r")
	w := workIn(t, project, l.looked(project))
	open := func() *Store {
		s := l.store(project)
		s.shelf.(*branch).packed.every = every
		return s
	}
	s := open()
	others := strings.Fields(l.git(project, "rev-list", "--objects", "--no-object-names", "HEAD"))
	most := 0
	for n := range total {
		w.step(t)
		if n%10 == 0 {
			l.write(filepath.Join(project, "new.txt"), fmt.Sprint(n, "\n"))
		}
		if n%50 == 0 {
			s = open()
		}
		l.checkpoint(s, w)
		if n%5 == 0 {
			most = max(most, loose(t, project))
		}
	}
	packs, _ := filepath.Glob(filepath.Join(project, ".git/objects/pack/*.pack"))
	t.Logf("%d checkpoints: at most %d loose objects, %d packs", total, most, len(packs))
	if most > 15*every+50 || len(packs) == 0 || len(packs) > mostPacks {
		t.Errorf("at most %d loose objects, %d packs", most, len(packs))
	}
	for _, id := range others {
		if _, err := os.Stat(filepath.Join(project, ".git/objects", id[:2], id[2:])); err != nil {
			t.Errorf("what the person committed is not where it was: %v", err)
		}
	}
	if out, err := l.try(project, "fsck", "--strict", "--full"); err != nil || strings.Contains(out, "missing") {
		t.Errorf("%v: %s", err, out)
	}
	brings(t, l.store(project), w)
	if out := l.git(project, "count-objects", "-v"); !strings.Contains(out, "garbage: 0") {
		t.Error(out)
	}
}

func loose(t *testing.T, project string) (n int) {
	folders, err := filepath.Glob(filepath.Join(project, ".git/objects/??"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range folders {
		entries, _ := os.ReadDir(dir)
		n += len(entries)
	}
	return n
}

// TestSubjects checks that the subject of a checkpoint says what happened, and contains nothing
// that an agent wrote.
func TestSubjects(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	project := l.repository("r")
	w := newWork(t, "T1")
	s := l.store(project)
	said := func() string {
		l.checkpoint(s, w)
		text := l.git(project, "log", "-1", "--format=%B", "cadre/demo")
		if !strings.Contains(text, "\n\n[skip ci]\n") {
			t.Errorf("CI would run for %q", text)
		}
		subject, _, _ := strings.Cut(text, "\n")
		return subject
	}
	if got := said(); got != "demo: ann, bob joined, 2 tasks added; 0/2" {
		t.Error(got)
	}
	w.do(t, "ann", &team.ClaimTask{Task: "1"})
	w.do(t, "ann", &team.CompleteTask{Task: "1", Result: "\x1b[2J evil\nmerge main"})
	for range 3 {
		w.do(t, "ann", &team.SendMessage{To: "lead", Body: "\x1b]0;evil\a"})
	}
	if got := said(); got != "demo: task 1 completed (ann), 4 messages; 1/2" {
		t.Error(got)
	}
	w.do(t, "ann", &team.ClaimTask{Task: "2"})
	w.do(t, "ann", &team.FailTask{Task: "2", Reason: "no"})
	if got := said(); got != "demo: task 2 failed, 1 message; 1/2" {
		t.Error(got)
	}
	w.do(t, team.User, &team.SetDelegate{On: true})
	if got := said(); got != "demo: checkpoint; 1/2" {
		t.Error(got)
	}
	for range 5 {
		w.step(t)
	}
	if got := said(); got != "demo: 5 tasks completed, 5 tasks added, 10 messages; 6/7" {
		t.Error(got)
	}
	w.do(t, team.User, &team.SetStatus{Status: team.TeamAborted})
	if got := said(); !strings.HasPrefix(got, "demo: aborted") {
		t.Error(got)
	}
}

// TestReadme checks that what a forge shows of the branch is about the team, and contains no markup
// from other people or agents.
func TestReadme(t *testing.T) {
	t.Parallel()
	w := &work{state: &team.State{}}
	hostile := "<img src=x onerror=alert(1)> [a](http://evil) @everyone #1 `x` **b** | c\n# Heading \u202e \x1b[2J token ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	w.do(t, team.User, &team.CreateTeam{TeamID: "T1", Name: "demo", Goal: hostile, Dir: "/d"})
	w.do(t, "lead", &team.SpawnMember{Name: "ann", Agent: team.External, Role: hostile})
	for range 30 {
		w.do(t, "lead", &team.CreateTask{Subject: hostile})
	}
	w.do(t, "ann", &team.ClaimTask{Task: "1"})
	shelf := &memory{}
	if _, err := (&Store{team: "demo", shelf: shelf}).Write(t.Context(), w, Beside{}); err != nil {
		t.Fatal(err)
	}
	text := string(shelf.files[readmeFile])
	for _, bad := range []string{"<img", "](", "@everyone", " #1", "**", "http:", "\u202e", "\x1b", "ghp_",
		"\n# Heading"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in\n%s", bad, text)
		}
	}
	for _, part := range []string{"# Team demo\n", "0 of 30 tasks done, 1 in progress, 29 pending",
		"| ann | external | active | 1 |", "* task 1 ann", "cadre pull demo", "cadre resume demo"} {
		if !strings.Contains(strings.NewReplacer("&#40;", "", "&#41;", "", "(", "", ")", "").Replace(text), part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	if len(text) > 8<<10 {
		t.Errorf("it has %d bytes", len(text))
	}
}

// TestCompleted checks that the record of a consolidated team gets one more checkpoint, though
// nothing happened in the team.
func TestCompleted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	project, w := l.repository("r"), newWork(t, "T1")
	s := l.store(project)
	first := l.checkpoint(s, w)
	record := Beside{Completed: []byte(`{"goal":"use ghp_abcdefghijklmnopqrstuvwxyz0123456789"}`)}
	c, err := s.Write(t.Context(), w, record)
	if err != nil || !c.Written || c.Commit == first.Commit || c.Seq != first.Seq {
		t.Fatalf("%+v, %v", c, err)
	}
	if again, err := l.store(project).Write(t.Context(), w, record); err != nil || again.Written {
		t.Errorf("%+v, %v", again, err)
	}
	if text := l.git(project, "show", "cadre/demo:.claude/teams/demo/COMPLETED"); text != `{"goal":"use [redacted]"}` {
		t.Error(text)
	}
	brings(t, s, w)
}

// TestHistoriesBefore checks that a checkpoint names the histories that its own continues.
func TestHistoriesBefore(t *testing.T) {
	t.Parallel()
	s := &Store{team: "demo", shelf: &memory{}}
	w := newWork(t, "T1")
	var want []Ended
	for life := range 3 {
		w.do(t, "lead", &team.CreateTask{Subject: "more"})
		if _, err := s.Write(t.Context(), w, Beside{}); err != nil {
			t.Fatal(err)
		}
		r, err := s.Restore(t.Context())
		if err != nil || !slices.Equal(r.Before, want) {
			t.Fatalf("life %d: %v, %v, not %v", life, r, err, want)
		}
		want = append(want, Ended{r.History, r.Seq})
		d, err := team.Decide(&team.State{}, r.Command(fmt.Sprint("restored ", life), r.At+1, ""))
		if err != nil {
			t.Fatal(err)
		}
		w = &work{state: &team.State{}, records: []*team.Record{d.Record}, sent: 1000 * (life + 1)}
		w.state.Apply(d.Record)
	}
}
