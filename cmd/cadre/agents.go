package main

import (
	"os"

	"cadre/internal/agent/drivers"
)

// agents returns the agents that this program runs, with itself as their helper.
func agents() drivers.Set { return drivers.Set{Helper: []string{self()}} }

func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
