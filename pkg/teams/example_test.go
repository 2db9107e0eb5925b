package teams_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"cadre/pkg/teams"
)

// This example runs two agents that are Go functions on a task list. The third task is blocked by
// the other two, and finds their results on the list.
func Example() {
	ctx := context.Background()
	counter := teams.Worker{Task: func(ctx context.Context, slot *teams.Slot, job teams.Job) (string, error) {
		if len(job.Task.BlockedBy) == 0 {
			return fmt.Sprintf("%d words", len(strings.Fields(job.Task.Description))), nil
		}
		var parts []string
		for _, id := range job.Task.BlockedBy {
			part, err := slot.Tasks().Get(ctx, id)
			if err != nil {
				return "", err
			}
			parts = append(parts, part.Result)
		}
		return strings.Join(parts, " and "), nil
	}}
	m, err := teams.New(teams.Options{Memory: new(teams.Memory), Agents: map[string]teams.Agent{"counter": counter}})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	team, err := m.CreateTeam(ctx, teams.TeamConfig{Name: "words", Goal: "count words"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := team.Tasks().CreateAll(ctx, []teams.TaskConfig{
		{Name: "one", Subject: "chapter one", Description: "it was a dark night"},
		{Name: "two", Subject: "chapter two", Description: "then came the morning after it"},
		{Subject: "both", BlockedBy: []string{"one", "two"}},
	}); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"ann", "bob"} {
		if _, err := team.Spawn(ctx, teams.MemberConfig{Name: name, Agent: "counter"}); err != nil {
			log.Fatal(err)
		}
	}
	for e, err := range team.EventsAfter(ctx, 0) {
		if err != nil {
			log.Fatal(err)
		}
		if done, ok := e.Fact.(teams.TaskCompleted); ok && done.Task == "3" {
			fmt.Println(done.Result)
			break
		}
	}
	for _, name := range []string{"ann", "bob"} {
		if err := team.Shutdown(ctx, name); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("cleaned up:", m.Cleanup(ctx) == nil)
	// Output:
	// 5 words and 6 words
	// cleaned up: true
}

// This example acts as external members, which have no session. Only the holder of the claim can
// complete a task. ann loses her claim when the lead reassigns her task to bob.
func ExampleTeam_As() {
	ctx := context.Background()
	m, err := teams.New(teams.Options{Memory: new(teams.Memory)})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	team, err := m.CreateTeam(ctx, teams.TeamConfig{Name: "fix"})
	if err != nil {
		log.Fatal(err)
	}
	members := map[string]*teams.Teammate{}
	for _, name := range []string{"ann", "bob"} {
		if _, err := team.Spawn(ctx, teams.MemberConfig{Name: name, Agent: teams.External}); err != nil {
			log.Fatal(err)
		}
		if members[name], err = team.As(name); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := team.Tasks().Create(ctx, teams.TaskConfig{Subject: "fix the parser"}); err != nil {
		log.Fatal(err)
	}

	hers, err := members["ann"].Tasks().ClaimNext(ctx)
	fmt.Println("ann claims:", hers.Task.Subject, err)
	_, err = members["bob"].Tasks().ClaimNext(ctx)
	fmt.Println("nothing for bob:", errors.Is(err, teams.ErrNoTask))

	if _, err := team.Tasks().Update(ctx, hers.ID, teams.TaskUpdate{Owner: new("bob")}); err != nil {
		log.Fatal(err)
	}
	his, err := members["bob"].Tasks().ClaimNext(ctx)
	fmt.Println("bob claims:", his.Task.Subject, err)
	_, err = members["ann"].Tasks().Complete(ctx, hers, "mended")
	fmt.Println("ann is too late:", errors.Is(err, teams.ErrConflict))
	_, err = members["bob"].Tasks().Complete(ctx, his, "mended")
	fmt.Println("bob completes it:", err)
	// Output:
	// ann claims: fix the parser <nil>
	// nothing for bob: true
	// bob claims: fix the parser <nil>
	// ann is too late: true
	// bob completes it: <nil>
}

// This example opens a team again after the manager that created it, or its process, has ended.
func ExampleManager_OpenTeam() {
	ctx := context.Background()
	home, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)
	options := teams.Options{Home: home + "/cadre", ClaudeHome: home + "/claude"}

	first, err := teams.New(options)
	if err != nil {
		log.Fatal(err)
	}
	team, err := first.CreateTeam(ctx, teams.TeamConfig{Name: "long-haul"})
	if err != nil {
		log.Fatal(err)
	}
	for _, subject := range []string{"load", "drive"} {
		if _, err := team.Tasks().Create(ctx, teams.TaskConfig{Subject: subject}); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := team.Tasks().Complete(ctx, teams.Claim{ID: "1"}, "loaded"); err != nil {
		log.Fatal(err)
	}
	if err := first.Close(); err != nil { // or kill -9
		log.Fatal(err)
	}

	second, err := teams.New(options)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	team, err = second.OpenTeam(ctx, "long-haul")
	if err != nil {
		log.Fatal(err)
	}
	tasks, err := team.Tasks().List(ctx, teams.TaskFilter{})
	if err != nil {
		log.Fatal(err)
	}
	for _, task := range tasks {
		fmt.Printf("%s: %s %s\n", task.Subject, task.Status, task.Result)
	}
	// Output:
	// load: completed loaded
	// drive: pending
}

// This example uses hooks: functions that can reject an action, with feedback for the member.
func ExampleHook() {
	ctx := context.Background()
	m, err := teams.New(teams.Options{
		Memory: new(teams.Memory),
		Agents: map[string]teams.Agent{"writer": teams.Worker{
			Task: func(_ context.Context, _ *teams.Slot, job teams.Job) (string, error) {
				if job.Feedback != "" {
					fmt.Println("again, because:", job.Feedback)
					return "written and tested", nil
				}
				return "written", nil
			},
		}},
		Hooks: []teams.Hook{{Event: teams.HookTaskCreated, Ask: func(_ context.Context, e teams.HookEvent) error {
			if len(e.Subject) > 40 {
				return teams.Reject("a subject has at most 40 letters")
			}
			return nil
		}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	checked := false
	err = m.AddHook(teams.Hook{Name: "tests", Event: teams.HookTaskCompleted,
		Ask: func(context.Context, teams.HookEvent) error {
			if !checked {
				checked = true
				return teams.Reject("there are no tests")
			}
			return nil
		}})
	if err != nil {
		log.Fatal(err)
	}
	team, err := m.CreateTeam(ctx, teams.TeamConfig{Name: "gated"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = team.Tasks().Create(ctx, teams.TaskConfig{Subject: strings.Repeat("long ", 10)})
	fmt.Println("rejected:", errors.Is(err, teams.ErrRejected), "-", err)
	if _, err := team.Tasks().Create(ctx, teams.TaskConfig{Subject: "write"}); err != nil {
		log.Fatal(err)
	}
	if _, err := team.Spawn(ctx, teams.MemberConfig{Name: "ann", Agent: "writer"}); err != nil {
		log.Fatal(err)
	}
	for e, err := range team.EventsAfter(ctx, 0) {
		if err != nil {
			log.Fatal(err)
		}
		if done, ok := e.Fact.(teams.TaskCompleted); ok {
			fmt.Println("done:", done.Result)
			break
		}
	}
	// Output:
	// rejected: true - a subject has at most 40 letters
	// again, because: there are no tests
	// done: written and tested
}

// This example reads the lead's mail. The lead gets the messages of its teammates in order, and
// waits for them if necessary.
func ExampleMailbox_All() {
	ctx := context.Background()
	m, err := teams.New(teams.Options{Memory: new(teams.Memory)})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	team, err := m.CreateTeam(ctx, teams.TeamConfig{Name: "talk"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := team.Spawn(ctx, teams.MemberConfig{Name: "ann", Agent: teams.External}); err != nil {
		log.Fatal(err)
	}
	ann, err := team.As("ann")
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"I begin", "I am done"} {
		if _, err := ann.Mail().Send(ctx, teams.Message{To: team.Lead(), Body: text}); err != nil {
			log.Fatal(err)
		}
	}
	for message, err := range team.Mail().All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", message.From, message.Body)
		if message.Body == "I am done" {
			break
		}
	}
	// Output:
	// ann: I begin
	// ann: I am done
}
