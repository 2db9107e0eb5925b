package run

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Retry returns tasks that failed in an earlier run to the queue, and adds a teammate to replace
// each one that has ended since. The new one continues the budget of the old one. Retry adds none
// if that budget is spent, or if the program of the old one is still missing.
func (l *Lead) Retry(ctx context.Context) error {
	var again, troubled []string
	var ended []team.Member
	l.Team.View(func(s *team.State) {
		for t := range s.Tasks() {
			if t.OutOfRetries() {
				again = append(again, t.ID)
			}
		}
		for _, m := range s.Members() {
			if m.Status.Running() && m.Setbacks > 0 {
				troubled = append(troubled, m.Name)
			}
		}
		if !workLeft(s) {
			return
		}
		for _, m := range s.Members() {
			if !m.Status.Running() && m.Agent != team.External && !m.Dropped && !replaced(s, m.Name) {
				ended = append(ended, m)
			}
		}
	})
	for _, name := range troubled {
		if err := l.do(ctx, team.User, &team.RetryMember{Member: name}); err != nil {
			return err
		}
	}
	for _, m := range ended {
		if err := l.missing(m); err != nil {
			l.Log(fmt.Sprintf("%s is not replaced: %s cannot work here: %v", m.Name, m.Agent, err))
			continue
		}
		if err := l.replace(ctx, m); err != nil {
			return err
		}
	}
	for _, id := range again {
		if err := l.do(ctx, team.User, &team.ReleaseTask{Task: id, Reason: "the team is run again"}); err != nil {
			return err
		}
	}
	return nil
}

// replace spawns a teammate that continues for one that has ended, if there is room and budget for
// it.
func (l *Lead) replace(ctx context.Context, m team.Member) error {
	origin, n := inLine(m.Name)
	for {
		n++
		name := successor(origin, n)
		err := l.do(ctx, team.User, &team.SpawnMember{Name: name, Agent: m.Agent, Model: m.Model,
			Role: m.Role, Prompt: m.Prompt,
			Mode: m.PermissionMode, PlanApproval: m.Plan.Required, Program: m.Program, Args: m.Args, Env: m.Env,
			Isolation: m.Isolation, RunsOn: m.RunsOn, Budget: m.Budget, Nested: m.Nested, Resume: m.Session, Succeeds: m.Name})
		if err == nil {
			if m.Status == team.Stopped {
				l.Log(fmt.Sprintf("%s has stopped (%s), and work is left: %s takes its place", m.Name, m.Summary, name))
			}
			return nil
		}
		t := l.Team.Team()
		full := team.CodeOf(err) == team.MaxTeammatesReached // others have joined since
		if full || team.CodeOf(err) == team.Exhausted && t.BudgetSpent(l.Team.Now()) == "" {
			l.Log(fmt.Sprintf("%s is not replaced: %v", m.Name, err))
			return nil
		}
		if team.CodeOf(err) != team.Taken {
			return err
		}
	}
}

func (l *Lead) missing(m team.Member) error {
	if l.Agent == nil {
		return nil
	}
	return agent.Missing(l.Agent(m.Agent), m.Program)
}

// workLeft reports whether a task is left that is not only for external members.
func workLeft(s *team.State) bool {
	for t := range s.Tasks() {
		if t.Status == team.Completed {
			continue
		}
		if owner, ok := s.Member(t.Owner); !ok || owner.Agent != team.External {
			return true
		}
	}
	return false
}

// againMark stands between the name of a teammate and the number of the one that replaces it.
const againMark = "-again-"

// successor returns the nth name in the line of teammates that begins with origin: the second
// replaces origin, the third replaces the second.
func successor(origin string, n int) string {
	suffix := fmt.Sprintf("%s%d", againMark, n)
	return origin[:min(len(origin), team.MaxName-len(suffix))] + suffix
}

// inLine returns with which name the line of the teammate begins, and its own place there, from 1.
func inLine(name string) (origin string, n int) {
	if i := strings.LastIndex(name, againMark); i > 0 {
		if n, err := strconv.Atoi(name[i+len(againMark):]); err == nil && n >= 2 {
			return name[:i], n
		}
	}
	return name, 1
}

// replaced reports whether another member replaces this one, or did.
func replaced(s *team.State, name string) bool {
	origin, n := inLine(name)
	for _, m := range s.Members() {
		if _, later := inLine(m.Name); later > n && m.Name == successor(origin, later) {
			return true
		}
	}
	_, is := s.Member(name + againMark + "2") // as earlier versions called it
	return is
}
