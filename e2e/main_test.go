// Package e2e tests the program as people use it: a real binary, real processes, signals, files and
// git repositories. Every test has its own home, and kills only what it started.
package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cadre/internal/testkit/postgrestest"
	"cadre/internal/testkit/soak"
)

// cadre is the path of the program under test.
var cadre string

// helperMode makes the test binary a helper process. Its value says which.
const helperMode = "CADRE_E2E_HELPER"

var helpers = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	if mode := os.Getenv(helperMode); mode != "" {
		if err := helpers[mode](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	soak.Beside(6)
	soak.InMemory()
	code, err := withProgram(m.Run)
	postgrestest.Stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withProgram builds the program once for all tests.
func withProgram(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "cadre-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // some tests run the program as another user
		return 0, err
	}
	// go test caches a result until a file that the test read changes. It does not know the inputs
	// of go build, so read them here.
	for _, sources := range []string{"../cmd", "../internal", "../go.mod"} {
		err := filepath.WalkDir(sources, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	cadre = filepath.Join(dir, "cadre")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", cadre, "cadre/cmd/cadre")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return 0, fmt.Errorf("build the program: %w", err)
	}
	// The programs under test must not use the environment of the test run.
	for _, name := range []string{"CADRE_TEAM", "CADRE_MEMBER_NAME", "CADRE_SESSION_HOME", "CADRE_HOME",
		"CLAUDE_CONFIG_DIR"} {
		os.Unsetenv(name)
	}
	return run(), nil
}
