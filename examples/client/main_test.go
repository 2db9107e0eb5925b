package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/server"
	"cadre/pkg/teams"
	"cadre/pkg/teams/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFollow checks what the program prints of a team of a real server.
func TestFollow(t *testing.T) {
	home := layout.Home{Root: filepath.Join(t.TempDir(), "cadre"), Claude: t.TempDir()}
	t.Setenv("CADRE_HOME", home.Root)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	serving, end := context.WithCancel(ctx)
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- server.Run(serving, server.Options{Engine: &engine.Engine{Home: home}, Dir: t.TempDir(),
			Shutdown: time.Second, Log: func(text string) { t.Log(text) }}, func(*server.Server) { close(ready) })
	}()
	defer func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	<-ready

	c, err := client.Open(client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = c.CreateTeam(ctx, client.TeamSpec{Name: "docs"})
	must(err)
	_, err = c.Spawn(ctx, "docs", client.MemberSpec{Name: "ann", Agent: teams.External})
	must(err)
	_, err = c.AddTask(ctx, "docs", client.TaskSpec{Subject: "Describe it"})
	must(err)
	claim, err := c.As("ann").ClaimNext(ctx, "docs")
	must(err)
	_, err = c.As("ann").CompleteTask(ctx, "docs", claim, "It is \x1b[1mdone.")
	must(err)
	_, err = c.AbortTeam(ctx, "docs", "enough")
	must(err)

	var out bytes.Buffer
	must(follow(ctx, "docs", &out))
	for _, want := range []string{`ann joined, with the agent "external"`, `task 1: "Describe it"`,
		"ann works on task 1",
		`ann completed task 1: "It is \x1b[1mdone."`, "the team is aborted"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the program does not print %s, but\n%s", want, out.String())
		}
	}
}
