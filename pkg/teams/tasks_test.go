package teams_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"cadre/pkg/teams"
)

func TestSharedTaskList(t *testing.T) {
	ctx := limited(t)
	m := manage(t, teams.Options{})
	team := create(t, m, "core", "ann", "bob")
	ann, bob := as(t, team, "ann").Tasks(), as(t, team, "bob").Tasks()
	task, err := team.Tasks().Create(ctx, teams.TaskConfig{Subject: "look", Description: "closely", Priority: "high",
		Retries: 1, Metadata: map[string]json.RawMessage{"k": []byte("1")}})
	ok(t, err)
	equal(t, "id and creator", task.ID+" "+task.CreatedBy, "1 lead")
	add(t, ann, "from a teammate")

	claim, err := ann.ClaimNext(ctx)
	ok(t, err)
	equal(t, "claimed", claim.ID+" "+claim.Task.Owner, "1 ann")
	_, err = bob.Claim(ctx, "1")
	want(t, err, teams.ErrConflict)
	ok(t, ann.Release(ctx, claim, "cannot"))
	_, err = ann.Complete(ctx, claim, "late")
	want(t, err, teams.ErrConflict)
	his, err := bob.Claim(ctx, "1")
	ok(t, err)
	ok(t, bob.Fail(ctx, his, "no luck", "half"))
	task, err = bob.Get(ctx, "1")
	ok(t, err)
	equal(t, "failed once", fmt.Sprintf("%s %d/%d %s %v", task.Status, task.Failures, task.Attempts, task.Failure,
		task.OutOfRetries), "pending 1/2 no luck false")

	task, err = team.Tasks().Update(ctx, "1", teams.TaskUpdate{Owner: new("bob"), Metadata: map[string]json.RawMessage{
		"k": []byte("null")}})
	ok(t, err)
	equal(t, "updated", fmt.Sprintf("%s %d", task.Owner, len(task.Metadata)), "bob 0")
	change := first(t, team, any1[teams.TaskUpdated]).Changes
	equal(t, "changes", fmt.Sprintf("%+v", change), "[{Field:owner Was: Is:bob Added:[] Removed:[]} "+
		"{Field:metadata.k Was:1 Is: Added:[] Removed:[]}]")
	_, err = ann.Claim(ctx, "1")
	want(t, err, teams.ErrConflict)
	his, err = bob.ClaimNext(ctx)
	ok(t, err)
	_, err = bob.Complete(ctx, his, "seen")
	ok(t, err)
	ok(t, ann.Delete(ctx, "2"))
	_, err = bob.ClaimNext(ctx)
	want(t, err, teams.ErrNoTask)
	_, err = bob.Get(ctx, "9")
	want(t, err, teams.ErrNotFound)
	_, err = bob.Claim(ctx, "")
	want(t, err, teams.ErrInvalid)
	all, err := team.Tasks().List(ctx, teams.TaskFilter{})
	ok(t, err)
	equal(t, "tasks", len(all), 1)
	equal(t, "result", all[0].Result+" by "+all[0].CompletedBy, "seen by bob")

	all[0].BlockedBy = append(all[0].BlockedBy, "9") // the caller's own copy
	again, err := team.Tasks().Get(ctx, "1")
	ok(t, err)
	equal(t, "blockers", len(again.BlockedBy), 0)
}

// TestCreateAll checks that a list of tasks with its own names is added in one record, or not at
// all.
func TestCreateAll(t *testing.T) {
	ctx := limited(t)
	team := create(t, manage(t, teams.Options{}), "core", "ann")
	l := team.Tasks()
	first := add(t, l, "first")
	all, err := l.CreateAll(ctx, []teams.TaskConfig{
		{Name: "test", Subject: "Test", BlockedBy: []string{"7", "build", first.ID}, When: teams.WhenAlways},
		{Name: "build", Subject: "Build", Run: "make", RunDir: "services/api", RunEnv: []string{"CGO_ENABLED=0"},
			Metadata: map[string]json.RawMessage{"ticket": []byte(`"B-12"`)}},
		{Name: "7", Subject: "A name of digits"},
	})
	ok(t, err)
	names := ""
	for _, one := range all {
		names += one.ID + "=" + one.Name + " "
	}
	equal(t, "in the order given", names, "4=test 3=build 2=7 ")
	equal(t, "blockers", strings.Join(all[0].BlockedBy, " "), "2 3 1")
	equal(t, "the rest", fmt.Sprintf("%s %s %s %s %s", all[0].When, all[1].RunDir, all[1].RunEnv, all[1].Run,
		all[1].Metadata["ticket"]), `always services/api [CGO_ENABLED=0] make "B-12"`)

	for what, list := range map[string][]teams.TaskConfig{
		"none":                  nil,
		"one without a subject": {{Subject: "fine"}, {}},
		"a circle": {{Name: "a", Subject: "a", BlockedBy: []string{"b"}},
			{Name: "b", Subject: "b", BlockedBy: []string{"a"}}},
		"itself":                 {{Name: "a", Subject: "a", BlockedBy: []string{"a"}}},
		"a name that is two":     {{Name: "2", Subject: "a"}, {Subject: "b", BlockedBy: []string{"2"}}},
		"a directory that leads": {{Subject: "a", Run: "true", RunDir: "../up"}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := l.CreateAll(ctx, list)
			want(t, err, teams.ErrInvalid)
		})
	}
	for what, list := range map[string][]teams.TaskConfig{
		"twice":   {{Name: "a", Subject: "a"}, {Name: "a", Subject: "b"}},
		"a taken": {{Subject: "a"}, {Name: "test", Subject: "b"}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := l.CreateAll(ctx, list)
			want(t, err, teams.ErrNameTaken)
		})
	}
	_, err = l.CreateAll(ctx, []teams.TaskConfig{{Subject: "a"}, {Subject: "b", BlockedBy: []string{"nowhere"}}})
	want(t, err, teams.ErrNotFound)
	listed, err := l.List(ctx, teams.TaskFilter{})
	ok(t, err)
	equal(t, "tasks after the refusals", len(listed), 4)
}

func TestTaskDependencies(t *testing.T) {
	ctx := limited(t)
	team := create(t, manage(t, teams.Options{}), "core", "ann")
	l, ann := team.Tasks(), as(t, team, "ann").Tasks()
	add(t, l, "first")
	add(t, l, "second", "1")
	add(t, l, "third", "1", "2")
	_, err := ann.Claim(ctx, "2")
	want(t, err, teams.ErrNotReady)
	ready, err := l.List(ctx, teams.TaskFilter{Unblocked: true})
	ok(t, err)
	equal(t, "unblocked", len(ready), 1)
	_, err = l.Update(ctx, "1", teams.TaskUpdate{AddBlockedBy: []string{"3"}})
	want(t, err, teams.ErrInvalid)
	if !strings.Contains(err.Error(), "3") {
		t.Errorf("the error does not name the cycle: %v", err)
	}
	_, err = l.Create(ctx, teams.TaskConfig{Subject: "x", BlockedBy: []string{"7"}})
	want(t, err, teams.ErrNotFound)

	waited := make(chan teams.Claim, 1)
	first, err := ann.ClaimNext(ctx)
	ok(t, err)
	go func() {
		if c, err := ann.WaitNext(ctx); err == nil {
			waited <- c
		}
	}()
	unblocked, err := ann.Complete(ctx, first, "")
	ok(t, err)
	equal(t, "unblocked", strings.Join(unblocked, " "), "2")
	equal(t, "the one that was waited for", next(t, waited).ID, "2")
	third, err := l.Get(ctx, "3")
	ok(t, err)
	equal(t, "the third waits for", strings.Join(third.Waiting, " ")+" of "+strings.Join(third.BlockedBy,
		" "), "2 of 1 2")
	_, err = l.Complete(ctx, teams.Claim{ID: "2"}, "the lead says so")
	ok(t, err)
	ready, err = l.List(ctx, teams.TaskFilter{Unblocked: true})
	ok(t, err)
	equal(t, "unblocked", ready[0].ID, "3")
}

// TestTaskClaiming uses several managers of one team on disk in place of processes. They share
// files and locks, and nothing in memory.
func TestTaskClaiming(t *testing.T) {
	t.Parallel()
	const managers, tasks = 6, 60
	o := folders(t)
	var names []string
	for i := range managers {
		names = append(names, fmt.Sprintf("m%d", i))
	}
	team := create(t, manage(t, o), "core", names...)
	for i := range tasks {
		add(t, team.Tasks(), fmt.Sprint("task ", i+1))
	}
	var mu sync.Mutex
	won := map[string]string{}
	var work sync.WaitGroup
	for _, name := range names {
		o := o
		o.As = name
		other := manage(t, o)
		_, err := other.OpenTeam(limited(t), "core")
		ok(t, err)
		work.Go(func() {
			l := other.Team().Tasks()
			for {
				claim, err := l.ClaimNext(limited(t))
				if errors.Is(err, teams.ErrNoTask) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if won[claim.ID] != "" {
					t.Errorf("task %s went to %s and to %s", claim.ID, won[claim.ID], name)
				}
				won[claim.ID] = name
				mu.Unlock()
				if _, err := l.Complete(limited(t), claim, name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	all, err := team.Tasks().List(limited(t), teams.TaskFilter{})
	ok(t, err)
	for _, task := range all {
		equal(t, "task "+task.ID, string(task.Status)+" "+task.Result, "completed "+won[task.ID])
	}
	equal(t, "tasks", len(won), tasks)
}

func TestDelegateMode(t *testing.T) {
	ctx := limited(t)
	team := create(t, manage(t, teams.Options{}), "core", "ann")
	add(t, team.Tasks(), "look")
	ok(t, team.EnterDelegateMode(ctx))
	want(t, team.Allows(ctx, "lead", "Bash"), teams.ErrDenied)
	ok(t, team.Allows(ctx, "ann", "Bash"))
	for _, tool := range []string{"SpawnTeammate", "ShutdownTeammate", "SendMessage", "Broadcast", "TaskCreate",
		"TaskUpdate", "TaskList", "TaskGet", "CleanupTeam"} {
		ok(t, team.Allows(ctx, "lead", tool))
	}
	_, err := team.Tasks().ClaimNext(ctx)
	want(t, err, teams.ErrDenied)
	_, err = as(t, team, "ann").Tasks().ClaimNext(ctx)
	ok(t, err)
	ok(t, team.LeaveDelegateMode(ctx))
	ok(t, team.Allows(ctx, "lead", "Bash"))
}

func TestBudget(t *testing.T) {
	ctx := limited(t)
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
	team, err := m.CreateTeam(ctx, teams.TeamConfig{Name: "core", Budget: teams.Budget{Tokens: 100}})
	ok(t, err)
	_, err = m.Team().Spawn(ctx, teams.MemberConfig{Name: "ann", Agent: "listener"})
	ok(t, err)
	add(t, team.Tasks(), "look")
	slot := next(t, agent.slots)
	slot.Used("1", teams.Usage{InputTokens: 60, OutputTokens: 41})
	equal(t, "spent", first(t, team, any1[teams.BudgetExhausted]).What, "tokens")
	info, err := team.Info(ctx)
	ok(t, err)
	equal(t, "usage", info.Usage, teams.Usage{InputTokens: 60, OutputTokens: 41})
	first(t, team, func(d teams.MemberDetached) bool { return d.Member == "ann" }) // its session is ended
	ok(t, team.SetBudget(ctx, teams.Budget{Tokens: 1000}))
	equal(t, "incarnation that continues", next(t, agent.slots).Incarnation, 2)
}

// TestBudgetOfAMember checks that a member's budget ends the work of that member only, and that the
// lead is warned before.
func TestBudgetOfAMember(t *testing.T) {
	ctx := limited(t)
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
	team, err := m.CreateTeam(ctx, teams.TeamConfig{Name: "core",
		Members: []teams.MemberConfig{{Name: "ann", Agent: "listener",
			Budget: teams.Budget{Tokens: 100}}}})
	ok(t, err)
	add(t, team.Tasks(), "look")
	slot := next(t, agent.slots)
	slot.Used("1", teams.Usage{InputTokens: 60})
	equal(t, "alert", first(t, team, any1[teams.BudgetAlerted]),
		teams.BudgetAlerted{Member: "ann", What: teams.BudgetTokens, Percent: 50})
	slot.Used("1", teams.Usage{InputTokens: 41})
	equal(t, "spent", first(t, team, any1[teams.MemberBudgetExhausted]),
		teams.MemberBudgetExhausted{Member: "ann", What: teams.BudgetTokens})
	first(t, team, func(d teams.MemberDetached) bool { return d.Member == "ann" })
	info, err := team.Info(ctx)
	ok(t, err)
	equal(t, "the team's", info.Exhausted, teams.BudgetKind(""))
	want(t, team.SetMemberBudget(ctx, "ann", teams.Budget{Tokens: 50}), teams.ErrInvalid)
	want(t, team.SetMemberBudget(ctx, "", teams.Budget{}), teams.ErrInvalid)
	want(t, team.SetMemberBudget(ctx, "lead", teams.Budget{Tokens: 50}), teams.ErrInvalid)
	ok(t, team.SetMemberBudget(ctx, "ann", teams.Budget{Tokens: 1000}))
	equal(t, "incarnation that continues", next(t, agent.slots).Incarnation, 2)
}

func TestEvents(t *testing.T) {
	ctx, cancel := context.WithCancel(limited(t))
	defer cancel()
	m := manage(t, teams.Options{})
	team := create(t, m, "core", "ann")
	events := team.Events(ctx) // from here on
	add(t, team.Tasks(), "look")
	ann := as(t, team, "ann")
	claim, err := ann.Tasks().ClaimNext(ctx)
	ok(t, err)
	ok(t, send(ctx, m, "", "ann", "hurry"))
	_, err = ann.Mail().Receive(ctx)
	ok(t, err)
	_, err = ann.Tasks().Complete(ctx, claim, "seen")
	ok(t, err)
	var saw []string
	for e, err := range events {
		ok(t, err)
		switch f := e.Fact.(type) {
		case teams.TaskCreated:
			saw = append(saw, e.By+" creates "+f.Task.Subject)
		case teams.TaskClaimed:
			saw = append(saw, f.Member+" claims "+f.Task)
		case teams.MessageSent:
			saw = append(saw, f.Message.From+" says "+f.Message.Body)
		case teams.MessagesDelivered:
			saw = append(saw, f.Member+fmt.Sprint(" has ", f.Seqs))
		case teams.TaskCompleted:
			saw = append(saw, f.By+" completes "+f.Task+": "+f.Result)
			cancel()
		}
		if ctx.Err() != nil {
			break
		}
	}
	should := []string{"lead creates look", "ann claims 1", "lead says hurry", "ann has [1]", "ann completes 1: seen"}
	if !slices.Equal(saw, should) {
		t.Errorf("got %q, want %q", saw, should)
	}
	for _, err := range team.EventsAfter(ctx, 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the sequence of an ended context yields %v", err)
		}
	}
	ok(t, team.Abort(limited(t), ""))
	ended := make(chan error, 1)
	go func() {
		var last error
		for _, err := range team.EventsAfter(limited(t), 0) {
			last = err
		}
		ended <- last // it may have ended with the abort, before the cleanup
	}()
	ok(t, m.Cleanup(limited(t)))
	if err := next(t, ended); err != nil { // if Cleanup was faster
		want(t, err, teams.ErrFinished)
	}
	_, err = team.Tasks().List(limited(t), teams.TaskFilter{})
	want(t, err, teams.ErrFinished)
}
