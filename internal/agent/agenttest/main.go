package agenttest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Main is the TestMain of a package that tests a driver with a [Bench], and does not return. The
// test binary is what agents run for the team's tools, too; else it runs the tests, without an
// environment of its own, and looks for goroutines that they left.
func Main(m *testing.M) {
	relay()
	isolate()
	goleak.VerifyTestMain(m)
}

// isolated is the user's cache folder, as it was before [Main] cleared the environment; "" where it
// did not.
var isolated string

// cacheDir is where installed agents and the homes of their sessions are.
func cacheDir() (string, error) {
	if isolated != "" {
		return isolated, nil
	}
	return os.UserCacheDir()
}

// isolate leaves the process nothing of its environment that a driver could pass on: the world has
// all that an agent is to know.
func isolate() {
	isolated, _ = os.UserCacheDir() // who needs it says that there is none
	for name := range own(os.Environ()) {
		os.Unsetenv(name)
	}
	os.Setenv("GORACE", gorace())
}

// ClearEnvironment does for one test, which runs beside no other, what [Main] does for all.
func ClearEnvironment(t testing.TB) {
	for name := range own(os.Environ()) {
		t.Setenv(name, "") // so that it comes back
		os.Unsetenv(name)
	}
	t.Setenv("GORACE", gorace())
}

// own yields the names of the variables that are the person's, and not the machine's.
func own(environ []string) func(yield func(name string) bool) {
	machine := []string{"PATH", "TMPDIR", "GOCOVERDIR", "GORACE"}
	return func(yield func(string) bool) {
		for _, v := range environ {
			if name, _, _ := strings.Cut(v, "="); !slices.Contains(machine, name) && !yield(name) {
				return
			}
		}
	}
}

// gorace has a test binary that agents run, and that has the race detector, not wait for a second
// at each of its ends.
func gorace() string { return os.Getenv("GORACE") + " atexit_sleep_ms=0" }
