package transport_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"cadre/internal/git/transport"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	soak.InMemory()
	goleak.VerifyTestMain(m)
}

// clone is a clone of the project, with its road to the remote.
type clone struct {
	*transport.Road
	t   *testing.T
	dir string
}

// clones returns two clones of a project, with the same remote, and the team.
func clones(t *testing.T) (one, two clone, of team.Team) {
	t.Helper()
	root := t.TempDir()
	remote := filepath.Join(root, "remote")
	one, two = clone{t: t, dir: filepath.Join(root, "one")}, clone{t: t, dir: filepath.Join(root, "two")}
	git(t, root, "init", "-q", "-b", "main", "one")
	one.git("commit", "-q", "--allow-empty", "-m", "first")
	git(t, root, "clone", "-q", "--bare", "one", "remote")
	one.git("remote", "add", "origin", remote)
	git(t, root, "clone", "-q", "remote", "two")
	one.git("commit", "-q", "--allow-empty", "-m", "not pushed yet")
	of = team.Team{ID: "demo-a", Name: "demo", Remote: "origin",
		Base: team.Base{Commit: one.git("rev-parse", "HEAD")}}
	one.Road, two.Road = one.open(of), two.open(of)
	return one, two, of
}

func (c clone) open(of team.Team) *transport.Road {
	c.t.Helper()
	procs, err := proc.Open("")
	c.must(err)
	c.t.Cleanup(func() { c.must(procs.Close(context.Background())) })
	road, err := transport.Open(c.t.Context(), procs, c.dir, of)
	c.must(err)
	return road
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=ann", "-c", "user.email=ann@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c clone) git(args ...string) string { c.t.Helper(); return git(c.t, c.dir, args...) }

func (c clone) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// commits adds a commit to the branch, which begins at the commit if it is new, and returns it.
func (c clone) commits(branch, from, message string) string {
	c.t.Helper()
	if c.git("for-each-ref", "refs/heads/"+branch) != "" {
		from = branch
	}
	tree := c.git("rev-parse", from+"^{tree}")
	commit := c.git("commit-tree", tree, "-p", from, "-m", message)
	c.git("update-ref", "refs/heads/"+branch, commit)
	return commit
}

func (c clone) tip(branch string) string {
	c.t.Helper()
	return c.git("for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

func (c clone) sends(member string) {
	c.t.Helper()
	c.must(c.Send(c.t.Context(), member))
}

// takes fetches and takes the member's branch, and returns where other work went.
func (c clone) takes(member string) (aside string) {
	c.t.Helper()
	c.must(c.Fetch(c.t.Context()))
	aside, err := c.Take(c.t.Context(), member)
	c.must(err)
	return aside
}

const ann = "cadre/demo@ann"

// TestThere: a member's work goes from one clone to another and back, from a commit that only one
// of them had.
func TestThere(t *testing.T) {
	t.Parallel()
	one, two, of := clones(t)
	one.must(one.SendBase(t.Context()))
	if aside := two.takes("ann"); aside != "" || two.tip(ann) != of.Base.Commit {
		t.Fatalf("the branch begins at %s, and %q is aside", two.tip(ann), aside)
	}
	first := two.commits(ann, "", "first")
	two.sends("ann")
	if sent, err := one.Sent(t.Context(), "ann"); sent || err != nil {
		t.Errorf("before it is fetched: %t, %v", sent, err)
	}
	one.takes("ann")
	if one.tip(ann) != first {
		t.Fatalf("the branch is at %s", one.tip(ann))
	}
	second := one.commits(ann, "", "second")
	one.sends("ann")
	if two.takes("ann"); two.tip(ann) != second {
		t.Errorf("back, the branch is at %s", two.tip(ann))
	}
	if sent, err := two.Leave(t.Context(), "ann"); !sent || err != nil || two.tip(ann) != "" {
		t.Errorf("a branch that was sent stays: %t, %v", sent, err)
	}
	two.commits(ann, of.Base.Commit, "not sent")
	if sent, err := two.Leave(t.Context(), "ann"); sent || err != nil || two.tip(ann) == "" {
		t.Errorf("a branch that was not sent goes: %t, %v", sent, err)
	}
}

// TestTwoHistories: where both clones went on, each keeps its work, and the remote's is continued.
func TestTwoHistories(t *testing.T) {
	t.Parallel()
	one, two, _ := clones(t)
	one.must(one.SendBase(t.Context()))
	one.takes("ann")
	two.takes("ann")
	mine := one.commits(ann, "", "of one")
	theirs := two.commits(ann, "", "of two")
	two.sends("ann")
	if err := one.Send(t.Context(), "ann"); !errors.Is(err, transport.ErrOther) {
		t.Fatalf("the second one sends: %v", err)
	}
	one.must(one.Fetch(t.Context()))
	if news, err := one.News(t.Context(), "ann"); !news || err != nil {
		t.Errorf("no news: %v", err)
	}
	aside := one.takes("ann")
	if one.tip(aside) != mine || one.tip(ann) != theirs {
		t.Errorf("aside is %q at %s, the branch is at %s", aside, one.tip(aside), one.tip(ann))
	}
	if again := one.takes("ann"); again != "" {
		t.Errorf("a second time, %s is aside", again)
	}
}

// TestEarlierTeam: what a team of the same name left in a clone is not the member's.
func TestEarlierTeam(t *testing.T) {
	t.Parallel()
	one, two, of := clones(t)
	one.must(one.SendBase(t.Context()))
	old := two.commits(ann, "main", "of an earlier team")
	if news, err := two.News(t.Context(), "ann"); !news || err != nil {
		t.Errorf("the branch counts as the team's: %v", err)
	}
	aside := two.takes("ann")
	if two.tip(aside) != old || two.tip(ann) != of.Base.Commit {
		t.Errorf("aside is %q at %s, the branch is at %s", aside, two.tip(aside), two.tip(ann))
	}
}

// TestDrop: a team leaves nothing on the remote, and takes nothing of another team.
func TestDrop(t *testing.T) {
	t.Parallel()
	one, two, of := clones(t)
	other := of
	other.ID = "demo-b"
	one.must(one.SendBase(t.Context()))
	one.must(one.open(other).SendBase(t.Context()))
	two.takes("ann")
	two.commits(ann, "", "work")
	two.sends("ann")
	one.takes("ann")
	one.must(one.Drop(t.Context()))
	if left := one.git("ls-remote", "origin", "refs/cadre/*"); !strings.Contains(left, "demo-b") ||
		strings.Contains(left, "demo-a") {
		t.Errorf("the remote has %s", left)
	}
	if refs := one.git("for-each-ref", "refs/cadre/demo-a"); refs != "" || one.tip(ann) == "" {
		t.Errorf("the clone has %s, and the branch at %s", refs, one.tip(ann))
	}
	one.must(one.Drop(t.Context()))
}

// TestNoRemote: a clone without the remote is refused, with what to do.
func TestNoRemote(t *testing.T) {
	t.Parallel()
	one, _, of := clones(t)
	of.Remote = "upstream"
	procs, err := proc.Open("")
	one.must(err)
	defer procs.Close(context.Background())
	_, err = transport.Open(t.Context(), procs, one.dir, of)
	if team.CodeOf(err) != team.NotFound || len(team.HintsOf(err)) != 1 ||
		team.HintsOf(err)[0].Action != team.ActAddRemote {
		t.Errorf("the refusal is %v, %v", err, team.HintsOf(err))
	}
	one.git("remote", "add", "upstream", "https://ann:geheim@127.0.0.1:1/nothing")
	road := one.open(of)
	if err := road.SendBase(t.Context()); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("a remote that is away: %v", err)
	}
}
