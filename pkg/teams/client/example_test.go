package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"cadre/pkg/teams"
	"cadre/pkg/teams/client"
)

// This example follows a team, from the event at which it stopped the last time.
func ExampleClient_Events() {
	c, err := client.Open(client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	last := int64(812) // as the program kept it
	for e, err := range c.Events(context.Background(), "docs", last) {
		if err != nil {
			log.Fatal(err)
		}
		switch f := e.Fact.(type) {
		case teams.TaskCompleted:
			fmt.Println(f.By, "completed task", f.Task)
		case teams.PermissionRequested:
			fmt.Println(f.Permission.Member, "asks to use", f.Permission.Tool)
		}
		last = e.Seq
	}
}

// This example is a member of a team: it does the tasks that it can claim.
func ExampleClient_As() {
	ctx := context.Background()
	c, err := client.Open(client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Spawn(ctx, "docs", client.MemberSpec{Name: "checker", Agent: teams.External}); err != nil {
		log.Fatal(err)
	}
	checker := c.As("checker")
	for {
		claim, err := checker.WaitNext(ctx, "docs")
		if errors.Is(err, teams.ErrFinished) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		if _, err := checker.CompleteTask(ctx, "docs", claim, "It is right."); err != nil &&
			!errors.Is(err, teams.ErrConflict) {
			log.Fatal(err)
		}
	}
}

// This example adds a task on another machine. It gives up after a minute.
func ExampleClient_AddTask() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Open(client.Options{Address: "https://build.example.org:7433", TokenFile: "token"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	task, err := c.AddTask(client.WithKey(ctx, "describe-the-flags"), "docs",
		client.TaskSpec{Subject: "Describe the flags."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("task", task.ID) // the same one, however often the program is run
}
