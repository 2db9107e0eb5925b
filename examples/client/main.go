// Command client follows a team that a server of cadre runs, and prints what its members do. It
// shows how a program uses the server without running teams itself. It changes nothing and answers
// nothing.
//
//	cadre serve &
//	go run ./examples/client docs
//
// It continues after a restart of the server, and ends when the team is complete or removed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"cadre/pkg/teams"
	"cadre/pkg/teams/client"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client TEAM")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := follow(ctx, os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// follow prints what happens in a team until it has ended.
func follow(ctx context.Context, name string, to io.Writer) error {
	c, err := client.Open(client.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	for e, err := range c.Events(ctx, name, 0) {
		if err != nil {
			return err
		}
		// Agents wrote some of these texts, so %q keeps them from acting on the terminal.
		switch f := e.Fact.(type) {
		case teams.MemberSpawned:
			fmt.Fprintf(to, "%d %s joined, with the agent %q\n", e.Seq, f.Member.Name, f.Member.Agent)
		case teams.TaskCreated:
			fmt.Fprintf(to, "%d task %s: %q\n", e.Seq, f.Task.ID, f.Task.Subject)
		case teams.TaskClaimed:
			fmt.Fprintf(to, "%d %s works on task %s\n", e.Seq, f.Member, f.Task)
		case teams.TaskCompleted:
			fmt.Fprintf(to, "%d %s completed task %s: %q\n", e.Seq, f.By, f.Task, f.Result)
		case teams.TaskFailed:
			fmt.Fprintf(to, "%d task %s failed: %q\n", e.Seq, f.Task, f.Reason)
		case teams.PermissionRequested:
			fmt.Fprintf(to, "%d %s asks to use %q\n", e.Seq, f.Permission.Member, f.Permission.Tool)
		case teams.TeamStatusChanged:
			fmt.Fprintf(to, "%d the team is %s\n", e.Seq, f.Status)
			if f.Status.Ended() {
				return nil
			}
		}
	}
	return nil
}
