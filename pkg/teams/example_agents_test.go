package teams_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cadre/pkg/teams"
)

// This example gives a coding agent a goal, and a colleague of another kind. The team works until
// the agent gives its report. The program answers the agents' questions, and continues interrupted
// work: it can be killed at any point and started again.
func ExampleManager_CreateTeam() {
	helper := teams.Helper() // first in main

	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	m, err := teams.New(teams.Options{Helper: helper})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	team, err := m.OpenTeam(ctx, "port")
	if errors.Is(err, teams.ErrNotFound) {
		team, err = m.CreateTeam(ctx, teams.TeamConfig{
			Name: "port",
			Goal: "Port the parser to the new grammar, with tests.",
			Lead: teams.MemberConfig{Agent: teams.Claude, Model: "opus", PermissionMode: teams.ModeAcceptEdits},
			Members: []teams.MemberConfig{
				{Name: "ann", Agent: teams.Codex, Isolation: teams.IsolationWorktree},
				{Name: "eve", Agent: teams.ACP + "my-agent --acp", Role: "reviewer", PlanApproval: true},
			},
			Permissions: teams.PermissionRules{Allow: []string{"Bash(go test:*)"}, Policy: teams.PolicyUser,
				Timeout: 10 * time.Minute},
			Budget: teams.Budget{Tokens: 2_000_000},
		})
	}
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for q, err := range team.Questions(ctx) {
			if err != nil {
				return
			}
			fmt.Printf("%s asks to use %s: %s\n", q.Member, q.Tool, q.Input)
			if err := team.Decline(ctx, q, "not in this example"); err != nil {
				log.Print(err)
			}
		}
	}()
	result, err := team.Run(ctx, teams.RunOptions{ReportFile: "REPORT.md"})
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, teams.ErrBudgetExhausted):
		fmt.Println("it takes more than it was given:", err)
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println(result.Report)
}

// This example runs a team of shells without a model. When a task fails, the team stays as it is.
// The program fixes the cause, and the team continues.
func ExampleTeam_Run() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	m, err := teams.New(teams.Options{Memory: new(teams.Memory), Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	team, err := m.CreateTeam(ctx, teams.TeamConfig{
		Name: "release",
		Goal: "Find out whether we can release.",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell}, {Name: "bob", Agent: teams.Shell,
			Env: []string{"LEVEL=high"}}},
		Tasks: []teams.TaskConfig{
			{Subject: "build", Run: "echo built"},
			{Subject: "test", Run: "test -e config && echo tested at level $LEVEL", Owner: "bob",
				BlockedBy: []string{"1"}},
			{Subject: "sum up", Run: `cat "$CADRE_RESULTS"/*`, BlockedBy: []string{"1", "2"}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	result, err := team.Run(ctx, teams.RunOptions{})
	fmt.Printf("%d done, %d failed: %v\n", result.Completed, result.Failed, err)
	if errors.Is(err, teams.ErrNotReady) {
		if err := os.WriteFile(filepath.Join(dir, "config"), nil, 0o600); err != nil {
			log.Fatal(err)
		}
		if err := team.Retry(ctx); err != nil {
			log.Fatal(err)
		}
		result, err = team.Run(ctx, teams.RunOptions{ReportFile: "release.md"})
	}
	fmt.Printf("%d done, %d failed: %v\n", result.Completed, result.Failed, err)
	sum, err := team.Tasks().Get(ctx, "3")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(sum.Result)
	fmt.Println("in the report:", strings.Contains(result.Report, "tested at level high"))
	// Output:
	// 1 done, 1 failed: 2 tasks could not be done
	// 3 done, 0 failed: <nil>
	// built
	// tested at level high
	// in the report: true
}

// This example answers the permission requests of a member. Requests that a rule decides do not
// reach the program.
func ExampleTeam_Questions() {
	ctx := context.Background()
	builder := teams.Worker{Task: func(ctx context.Context, slot *teams.Slot, job teams.Job) (string, error) {
		answer, err := slot.AskPermission(ctx, "Bash", fmt.Sprintf(`{"command":%q}`, job.Task.Subject), time.Minute)
		return string(answer.Outcome) + ": " + answer.Reason, err
	}}
	m, err := teams.New(teams.Options{Memory: new(teams.Memory), Agents: map[string]teams.Agent{"builder": builder}})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	team, err := m.CreateTeam(ctx, teams.TeamConfig{
		Name:        "build",
		Members:     []teams.MemberConfig{{Name: "ann", Agent: "builder"}},
		Tasks:       []teams.TaskConfig{{Subject: "go test ./..."}, {Subject: "make install"}, {Subject: "rm -rf /"}},
		Permissions: teams.PermissionRules{Allow: []string{"Bash(go test:*)"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for q, err := range team.Questions(ctx) {
			if err != nil {
				return
			}
			answer := team.Decline
			if strings.Contains(q.Input, "make") {
				answer = team.Approve
			}
			if err := answer(ctx, q, "says the program"); err != nil {
				log.Print(err)
			}
		}
	}()
	if _, err := team.Run(ctx, teams.RunOptions{}); err != nil {
		log.Fatal(err)
	}
	tasks, err := team.Tasks().List(ctx, teams.TaskFilter{})
	if err != nil {
		log.Fatal(err)
	}
	for _, task := range tasks {
		fmt.Printf("%s: %s\n", task.Subject, task.Result)
	}
	// Output:
	// go test ./...: allowed: a rule of the team allows it
	// make install: allowed: says the program
	// rm -rf /: denied: says the program
}

// This example chooses a lead among the installed agents. A team without a model is always
// possible.
func ExampleInstalled() {
	lead := teams.MemberConfig{Agent: teams.External}
	if all := teams.Installed(context.Background()); len(all) > 0 {
		lead.Agent = all[0].Agent
		fmt.Println(all[0].Path, all[0].Version)
	}
	fmt.Println("led by", lead.Agent)
}
