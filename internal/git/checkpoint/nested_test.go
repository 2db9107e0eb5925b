package checkpoint

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// kid is the id of the team in the team of [nesting].
const kid = "kid-aaaaaaaaaaaaaaaaaaaaaaaaaa"

// nesting returns a team whose member sub runs another one, and that one.
func nesting(t testing.TB, dir string) (parent, child *work) {
	parent, child = &work{state: &team.State{}}, &work{state: &team.State{}}
	parent.do(t, team.User, &team.CreateTeam{TeamID: "T1", Name: "demo", Dir: dir, MaxDepth: 1})
	parent.do(t, team.User, &team.SpawnMember{Name: "sub", Agent: team.NestedTeam, Nested: &team.Nested{Goal: "Do it."}})
	parent.do(t, team.User, &team.CreateTask{Subject: "inside"})
	parent.do(t, team.User, &team.ClaimTask{Task: "1", Member: "sub"})
	parent.do(t, "sub", &team.BeginChild{Task: "1", Team: kid, Name: "kid", Lead: "claude"})
	child.do(t, team.User, &team.CreateTeam{TeamID: kid, Name: "kid", Dir: dir, Depth: 1, LeadAgent: "claude",
		Parent: team.Parent{Team: "T1", Name: "demo", Member: "sub", Task: "1"}})
	return parent, child
}

// writeTree makes a checkpoint of the parent, in which do makes one of the child.
func (l *lab) writeTree(s *Store, parent *work, do func()) Checkpoint {
	l.Helper()
	c, err := s.Write(l.Context(), parent, Beside{Nested: func(_ context.Context, of team.Team) ([]Nested, error) {
		do()
		return []Nested{{Team: of.Children[0].Team, Name: of.Children[0].Name}}, nil
	}})
	if err != nil {
		l.Fatal(err)
	}
	return c
}

func (l *lab) storeOf(project, name string) *Store {
	l.Helper()
	s, err := Open(l.Context(), l.procs, project, name, filepath.Join(l.dir, "own-"+name))
	if err != nil {
		l.Fatal(err)
	}
	return s
}

// TestMailIsInOneTeam checks that each message of a team in the team to its parent is carried in
// one of the two, although it is passed on while the checkpoint is made.
func TestMailIsInOneTeam(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	project := l.repository("r")
	parent, child := nesting(t, project)
	own := l.storeOf(project, "kid")
	times := 0
	pass := func() {
		if times++; times > 3 {
			return
		}
		child.do(t, "lead", &team.SendMessage{To: team.ParentName, Body: fmt.Sprint("word ", times)})
		var mail []team.Message
		child.View(func(s *team.State) { mail = s.MailToParent() })
		parent.do(t, "sub", &team.HearChild{Team: kid, Message: mail[0]})
		child.do(t, team.User, &team.PassedToParent{Through: mail[0].Seq})
	}
	made := l.writeTree(l.store(project), parent, func() {
		pass()
		l.checkpoint(own, child)
	})
	if times != 4 || len(made.Nested) != 1 || made.Nested[0].Commit != l.git(project, "rev-parse", "cadre/kid") {
		t.Errorf("after %d checkpoints of the child it carries %+v", times, made.Nested)
	}
	r := brings(t, l.store(project), parent)
	at, err := own.RestoreAt(t.Context(), r.Nested[0].Commit)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, m := range r.Messages {
		words = append(words, m.Body)
	}
	if left := at.State.MailToParent(); len(left) > 0 || strings.Join(words, ", ") != "word 1, word 2, word 3" {
		t.Errorf("the parent has %q, and the child %+v", words, left)
	}
}

// TestTreeIsOnOneBranch checks that a clone which has only the branch of the parent has the
// checkpoints of the team in it with its work, and lists it. The child is no checkpoint of the
// parent, is not counted as its work, and stays as it was where its branch was lost.
func TestTreeIsOnOneBranch(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	project := l.repository("r")
	parent, child := nesting(t, project)
	own, store := l.storeOf(project, "kid"), l.store(project)
	tip := l.git(project, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "of ann")
	l.git(project, "branch", "cadre/kid@ann", tip)
	made := l.writeTree(store, parent, func() { l.checkpoint(own, child) })
	if again := l.writeTree(store, parent, func() {}); again.Written {
		t.Errorf("without news, another checkpoint was made: %+v", again)
	}
	child.do(t, team.User, &team.CreateTask{Subject: "more"})
	if made = l.writeTree(store, parent, func() { l.checkpoint(own, child) }); !made.Written {
		t.Error("what is new in the child alone is not carried")
	}
	if line := l.git(project, "log", "--first-parent", "--format=%s", made.Commit); strings.Contains(line, "kid:") {
		t.Errorf("the line of checkpoints is\n%s", line)
	}
	out, err := store.Outgoing(t.Context(), Remote{Name: "origin"}, made.Commit, "")
	if err != nil || out.Commits != 2 || out.Files != 1 || !slices.Equal(out.Teams, []string{"kid"}) ||
		!slices.Equal(out.Branches, []string{"cadre/kid@ann"}) || out.Tasks != 2 {
		t.Errorf("a push would send %+v, %v", out, err)
	}
	clone := filepath.Join(l.dir, "clone")
	l.git(l.dir, "init", "-q", clone)
	l.git(clone, "fetch", "-q", project, "cadre/demo:refs/remotes/origin/cadre/demo")
	if kind := l.git(clone, "cat-file", "-t", tip); kind != "commit" {
		t.Errorf("the work of the child is a %s there", kind)
	}
	all, err := List(t.Context(), l.procs, clone)
	if err != nil || len(all) != 1 || len(all[0].Nested) != 1 || all[0].Nested[0].Name != "kid" ||
		all[0].Nested[0].Pending != 1 || all[0].Nested[0].Why != "" {
		t.Errorf("the list is %+v, %v", all, err)
	}
	if all, err := List(t.Context(), l.procs, project); err != nil || len(all) != 2 || len(all[0].Nested) > 0 {
		t.Errorf("where the child has its own branch, the list is %+v, %v", all, err)
	}
	l.git(project, "update-ref", "-d", "refs/heads/cadre/kid")
	parent.do(t, team.User, &team.CreateTask{Subject: "more"})
	last := l.writeTree(store, parent, func() {})
	if n := last.Nested[0]; n.Commit != made.Nested[0].Commit || !strings.Contains(n.Why, "cadre/kid has no checkpoint") {
		t.Errorf("without its branch, %+v is carried", n)
	}
}
