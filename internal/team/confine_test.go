package team

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// bounding returns a team with the member sub, which runs a child team with the given mode, and the
// bounds of that child.
func bounding(t *testing.T, budget, own Budget, mode string, then ...Body) *ConfineTeam {
	t.Helper()
	s := &State{}
	for i, body := range append([]Body{
		&CreateTeam{TeamID: "up-1", Name: "up", Dir: "/w", MaxDepth: 1, Budget: budget, PermissionMode: mode,
			Permissions: Permissions{Allow: []string{"Bash(make:*)", "Edit"}}},
		&SpawnMember{Name: "sub", Agent: NestedTeam, Budget: own, Nested: &Nested{Goal: "build"}},
		&SpawnMember{Name: "ann", Agent: External}, &CreateTask{Subject: "one", Owner: "sub"},
		&ClaimTask{}, &BeginChild{Task: "1", Team: "c1", Name: "c1"}}, then...) {
		actor := User
		switch body.(type) {
		case *ClaimTask, *BeginChild, *ReportChild:
			actor = "sub"
		case *ReportUsage:
			actor = "ann"
		}
		d, err := Decide(s, Command{ID: fmt.Sprint(i), Actor: actor, At: 1000, Body: body})
		if err != nil {
			t.Fatalf("%T: %v", body, err)
		}
		if d.Record != nil {
			s.Apply(d.Record)
		}
	}
	b, known := s.Bounds("c1", 3000)
	if _, other := s.Bounds("c2", 3000); !known || other {
		t.Fatalf("the child is known: %v; another one: %v", known, other)
	}
	return b
}

// TestBounds: a child team may spend what is left of its member's and its parent's budget, with
// what it has used itself.
func TestBounds(t *testing.T) {
	used := &ReportUsage{Member: "ann", Usage: Usage{InputTokens: 30, CostMicroUSD: 4}}
	its := &ReportChild{Team: "c1", Usage: Usage{InputTokens: 20, CostMicroUSD: 2}}
	for name, one := range map[string]struct {
		budget, own, want Budget
		then              []Body
	}{
		"no limit":         {},
		"of the team":      {budget: Budget{Tokens: 100}, want: Budget{Tokens: 100}},
		"of the member":    {budget: Budget{Tokens: 100}, own: Budget{Tokens: 40}, want: Budget{Tokens: 40}},
		"the others use":   {budget: Budget{Tokens: 100}, then: []Body{used}, want: Budget{Tokens: 70}},
		"the child uses":   {budget: Budget{Tokens: 100}, then: []Body{its}, want: Budget{Tokens: 100}},
		"both use":         {budget: Budget{Tokens: 100}, then: []Body{used, its}, want: Budget{Tokens: 70}},
		"the member's own": {own: Budget{Tokens: 50}, then: []Body{used, its}, want: Budget{Tokens: 50}},
		"all is spent":     {budget: Budget{Tokens: 10}, then: []Body{used}, want: Budget{Tokens: 1}},
		"the cost": {budget: Budget{CostMicroUSD: 10}, then: []Body{used, its},
			want: Budget{CostMicroUSD: 6}},
		"the time": {budget: Budget{Time: 5 * time.Second}, want: Budget{Time: 3 * time.Second}},
		"no time":  {budget: Budget{Time: time.Second}, want: Budget{Time: time.Millisecond}},
		"raised": {budget: Budget{Tokens: 100}, then: []Body{used, &SetBudget{Budget: Budget{Tokens: 300}}},
			want: Budget{Tokens: 270}},
		"lowered": {budget: Budget{Tokens: 100}, own: Budget{Tokens: 90},
			then: []Body{&SetBudget{Member: "sub", Budget: Budget{Tokens: 50}}}, want: Budget{Tokens: 50}},
	} {
		t.Run(name, func(t *testing.T) {
			if b := bounding(t, one.budget, one.own, "default", one.then...); b.Budget != one.want {
				t.Errorf("the child may use %+v, want %+v", b.Budget, one.want)
			}
		})
	}
}

// TestBoundsOfPermissions: a child team has at most the mode of its member, and the rules that the
// member has.
func TestBoundsOfPermissions(t *testing.T) {
	created := []string{"Bash(make:*)", "Edit"}
	for name, one := range map[string]struct {
		mode, want string
		rules      []string
		any        bool
		then       []Body
	}{
		"as the team": {mode: "default", want: "default", rules: created},
		"changed": {mode: "default", want: "plan", rules: created,
			then: []Body{&SetMode{Member: "sub", Mode: "plan"}}},
		"everything": {mode: "bypassPermissions", want: "bypassPermissions", any: true},
		"added for all": {mode: "default", want: "default", rules: append(slices.Clone(created), "Read(a)"),
			then: []Body{&AddRule{Rule: "Read(a)"}}},
		"added for it": {mode: "default", want: "default", rules: append(slices.Clone(created), "Read(a)"),
			then: []Body{&AddRule{Rule: "Read(a)", Member: "sub"}}},
		"added for ann": {mode: "default", want: "default", rules: created,
			then: []Body{&AddRule{Rule: "Read(a)", Member: "ann"}}},
		"removed again": {mode: "default", want: "default", rules: created,
			then: []Body{&AddRule{Rule: "Read(a)"}, &RemoveRule{Rule: "Read(a)"}}},
		"the team's own": {mode: "acceptEdits", want: "acceptEdits", rules: created},
	} {
		t.Run(name, func(t *testing.T) {
			b := bounding(t, Budget{}, Budget{}, one.mode, one.then...)
			if b.Mode != one.want || b.AnyRule != one.any || !slices.Equal(b.Rules, one.rules) {
				t.Errorf("the child may have %+v", b)
			}
		})
	}
}

// TestConfinedModes compares each mode that a member of a child team asks for with each mode of its
// parent's member: it gets the one that allows less.
func TestConfinedModes(t *testing.T) {
	for i, own := range widening {
		for j, most := range widening {
			s := &State{}
			for n, body := range []Body{
				&CreateTeam{TeamID: "c", Name: "c", Dir: "/w", Depth: 1, Parent: Parent{Team: "up"}, PermissionMode: own},
				&SpawnMember{Name: "ann", Agent: "claude"}, &ConfineTeam{Mode: most}} {
				d, err := Decide(s, Command{ID: fmt.Sprint(n), Actor: User, Body: body})
				if err != nil {
					t.Fatal(err)
				}
				s.Apply(d.Record)
			}
			for _, m := range s.Members() {
				if want := widening[min(i, j)]; m.PermissionMode != want {
					t.Errorf("%s of mode %s below mode %s has mode %s, want %s", m.Name, own, most, m.PermissionMode, want)
				}
			}
			for k, mode := range widening {
				_, err := Decide(s, Command{ID: "set", Actor: User, Body: &SetMode{Member: "ann", Mode: mode}})
				if (err != nil) != (k > j) {
					t.Errorf("mode %s below mode %s: %v", mode, most, err)
				}
			}
		}
	}
}

// TestConfinedRules: a child team keeps the permission rules that its parent's member has, alone or
// for the whole tool, and nothing widens its policy.
func TestConfinedRules(t *testing.T) {
	for _, one := range []struct {
		own, parent, want []string
		any               bool
	}{
		{own: []string{"Bash(make:*)"}, want: []string{}},
		{own: []string{"Bash(make:*)"}, parent: []string{"Bash(make:*)"}, want: []string{"Bash(make:*)"}},
		{own: []string{"Bash(make:*)"}, parent: []string{"Bash"}, want: []string{"Bash(make:*)"}},
		{own: []string{"Bash"}, parent: []string{"Bash(make:*)"}, want: []string{}},
		{own: []string{"Edit", "Bash"}, parent: []string{"Edit"}, want: []string{"Edit"}},
		{own: []string{"Edit", "Bash"}, any: true, want: []string{"Edit", "Bash"}},
	} {
		s := &State{team: Team{ID: "c", Parent: Parent{Team: "up"}, Permissions: Permissions{Allow: one.own}}}
		s.join(Member{Name: "lead", Agent: External, Status: Active, PermissionMode: "default"}, &Record{})
		d, err := Decide(s, Command{ID: "1", Actor: User, Body: &ConfineTeam{Mode: "default", Rules: one.parent,
			AnyRule: one.any}})
		if err != nil {
			t.Fatal(err)
		}
		d.Record.Seq = 1
		s.Apply(d.Record)
		if got := s.team.Permissions.Allow; !slices.Equal(got, one.want) {
			t.Errorf("%v below %v leaves %v", one.own, one.parent, got)
		}
	}
	for i, parent := range yielding {
		for j, own := range yielding {
			s := &State{team: Team{Permissions: Permissions{Policy: parent}}}
			c := &CreateTeam{Permissions: Permissions{Policy: own}}
			if s.Confine(c); c.Permissions.Policy != yielding[min(i, j)] {
				t.Errorf("the policy %q below %q is %q", own, parent, c.Permissions.Policy)
			}
		}
	}
}

// TestRaised checks which command raises a budget of a nested team. What its parent leaves it is
// raised in the parent, for the member if that budget is the smaller one. The team's own budget is
// raised in the team.
func TestRaised(t *testing.T) {
	tokens := func(n int64) Budget { return Budget{Tokens: n} }
	for name, one := range map[string]struct {
		budget, own, its Budget
		want             Hint
	}{
		"of the team":   {budget: tokens(10), its: tokens(50), want: Hint{Team: "up"}},
		"of the member": {budget: tokens(10), own: tokens(5), want: Hint{Team: "up", Member: "sub"}},
		"its own":       {budget: tokens(10), its: tokens(2), want: Hint{Team: "c1"}},
		"only its own":  {its: tokens(2), want: Hint{Team: "c1"}},
	} {
		b := bounding(t, one.budget, one.own, "default")
		of := Team{Name: "c1", Parent: Parent{Name: "up", Member: "sub", Left: b.Budget, Binds: b.Binds, Own: one.its}}
		one.want.Action, one.want.Budget = ActRaiseBudget, "tokens"
		if got := of.Aim(Hint{Action: ActRaiseBudget, Budget: "tokens"}); got.Team != one.want.Team ||
			got.Member != one.want.Member || got.Action != one.want.Action || got.Budget != one.want.Budget {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
