package teams_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"cadre/pkg/teams"
)

// This example lists what waits for a person in all teams. It reads each team without opening it
// for work.
func ExampleManager_View() {
	ctx := context.Background()
	m, err := teams.New(teams.Options{Memory: new(teams.Memory)})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	team, err := m.CreateTeam(ctx, teams.TeamConfig{Name: "docs",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External, PlanApproval: true}},
		Tasks:   []teams.TaskConfig{{Subject: "write"}, {Subject: "print", BlockedBy: []string{"1"}}}})
	if err != nil {
		log.Fatal(err)
	}
	ann, err := team.As("ann")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := ann.SubmitPlan(ctx, "Write, then print."); err != nil {
		log.Fatal(err)
	}

	all, err := m.Teams(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range all {
		fmt.Printf("%s: %s, %d of %d tasks done\n", one.Team.Name, one.Team.Status, one.Completed,
			one.Pending+one.InProgress+one.Completed)
		err := m.View(ctx, one.Team.Name, func(v *teams.View) error {
			tasks, err := v.Tasks().List(ctx, teams.TaskFilter{Unblocked: true})
			for _, task := range tasks {
				fmt.Println("  ready:", task.Subject)
			}
			if err != nil {
				return err
			}
			waiting, err := v.Attention(ctx)
			for _, one := range waiting {
				fmt.Println("  waits for", one.WaitsFor+":", one.Kind, "of", one.Member)
			}
			return err
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// docs: active, 0 of 2 tasks done
	//   ready: write
	//   waits for user: plan of ann
}

// This example runs a team file. Its checks pass, and its work becomes one commit.
func ExampleLoadTeamFile() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	project := filepath.Join(dir, "project")
	path := filepath.Join(dir, "hello.yaml")
	text := `
name: hello
checks: [{name: said, run: grep -q hello said}]
members: [{name: ann, agent: shell}]
tasks: [{id: say, run: echo hello >said}]
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", project}, {"-C", project, "config", "user.name", "Ann"},
		{"-C", project, "config", "user.email", "ann@example.org"},
		{"-C", project, "commit", "-q", "--allow-empty", "-m", "first"}} {
		if err := exec.Command("git", args...).Run(); err != nil {
			log.Fatal(err)
		}
	}

	file, err := teams.LoadTeamFile(path)
	if err != nil {
		log.Fatal(err) // every mistake in the file, with line and column
	}
	m, err := teams.New(teams.Options{Home: dir + "/cadre", ClaudeHome: dir + "/claude", Dir: project})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	team, err := m.CreateTeam(ctx, file.Config)
	if err != nil {
		log.Fatal(err)
	}
	file.Run.ReportFile = filepath.Join(dir, "report.md")
	result, err := team.Run(ctx, file.Run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Completed, "task done; the team is", result.Team.Status)
	record, err := team.Consolidate(ctx, teams.ConsolidateOptions{Message: "Say hello"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record.Files, "file committed; checks that passed:", record.Checks)
	// Output:
	// 1 task done; the team is consolidating
	// 1 file committed; checks that passed: [said]
}
