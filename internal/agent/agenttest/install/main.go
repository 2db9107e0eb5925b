// Command install installs the coding agents that the tests run, at the versions that package
// agenttest pins. It prints a line of progress for each. make test calls it, so that the user sees
// the installation. It never fails: a test that lacks an agent is skipped with the reason.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"cadre/internal/agent/agenttest"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for _, p := range agenttest.Programs() {
		fmt.Printf("%s %s: ", p.Name, p.Version)
		if p, err := agenttest.Install(ctx, p); err != nil {
			fmt.Println("cannot be installed; its tests are skipped:", err)
		} else {
			fmt.Println(p.Path)
		}
	}
	os.Exit(0)
}
