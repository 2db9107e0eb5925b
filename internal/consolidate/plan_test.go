package consolidate

import (
	"fmt"
	"strings"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestPreview checks that the plan of a consolidation has each path with what becomes of it, and
// that making it changes nothing. The consolidation does what the plan says.
func TestPreview(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("yours.txt", "the person's\n")
	l.write("a.txt", "the person's\n")
	l.found(team.Check{Name: "all", Command: "true"})
	l.write("new.txt", "the team's\n")
	l.write("a.txt", "the person's, and more\n")
	l.isolate("eve", "hers.txt")
	before, refs, seq := l.scene(), l.git("for-each-ref"), l.replica.Seq()
	plan := func(change func(*Options)) *Plan {
		t.Helper()
		o := l.options()
		change(&o)
		p, err := Preview(l.ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		if l.scene() != before || l.git("for-each-ref") != refs || l.replica.Seq() != seq {
			t.Errorf("it was\n%s\nand is\n%s", before, l.scene())
		}
		l.tidy()
		return p
	}
	show := func(p *Plan) (all []string) {
		for _, one := range p.Paths {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s:%s:%s %s", one.Fate, one.Change, one.Path, one.Branch)))
		}
		return all
	}
	p := plan(func(*Options) {})
	l.want(show(p), "unclear::a.txt", "commit:A:hers.txt cadre/demo@eve", "commit:A:new.txt", "left out::yours.txt")
	if !strings.Contains(p.Obstacle, "a.txt had changes before the team was created") ||
		len(team.HintsOf(p.Refused)) == 0 || team.HintsOf(p.Refused)[0].Action != team.ActIncludeFiles {
		t.Errorf("the obstacle is %q, %+v", p.Obstacle, p.Refused)
	}
	if p.String() != "2 paths to commit, 1 path that is unclear, 1 path left out, 1 check" ||
		p.Paths[1].From[0] != "eve" {
		t.Errorf("%s, %+v", p, p.Paths[1])
	}
	p = plan(func(o *Options) { o.Include = []string{"a.txt"} })
	l.want(show(p), "commit:M:a.txt", "commit:A:hers.txt cadre/demo@eve", "commit:A:new.txt", "left out::yours.txt")
	if p.Obstacle != "" {
		t.Errorf("the obstacle is %q", p.Obstacle)
	}
	p = plan(func(o *Options) { o.Only = []string{"new.txt"} })
	l.want(show(p), "commit:A:hers.txt cadre/demo@eve", "commit:A:new.txt", "left out::a.txt", "left out::yours.txt")
	o := l.options()
	o.Include = []string{"a.txt"}
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(l.committed(), "M:a.txt", "A:hers.txt", "A:new.txt")
}

// TestPreviewOfConflicts checks that the plan names the paths of a branch that does not merge.
func TestPreviewOfConflicts(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.found()
	l.write("new.txt", "the team's\n")
	l.isolate("eve", "new.txt")
	l.hers("eve", "also.txt", "hers\n")
	before := l.scene()
	p, err := Preview(l.ctx, l.options())
	if err != nil {
		t.Fatal(err)
	}
	if last := p.Paths[len(p.Paths)-1]; last.Path != "also.txt" || last.Fate != LeftOut || last.Change != "A" ||
		!strings.Contains(last.Why, "its branch does not merge") {
		t.Errorf("the other path of the branch is %+v", last)
	}
	if len(p.Paths) != 3 || p.Paths[0].Fate != Conflicts || p.Paths[0].Path != "new.txt" ||
		p.Paths[0].From[0] != "eve" ||
		!strings.Contains(p.Paths[0].Why, "creates a task that says how") || p.Paths[1].Fate != Commits {
		t.Errorf("%+v", p.Paths)
	}
	if after := l.scene(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}
