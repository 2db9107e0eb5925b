package agenttest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Main is the TestMain of a package that tests a driver with a [Bench]. It does not return. Agents
// run the test binary for the team's tools too. Otherwise Main clears the environment, runs the
// tests and looks for leaked goroutines.
func Main(m *testing.M) {
	relay()
	isolate()
	goleak.VerifyTestMain(m)
}

// isolated is the user's cache folder before [Main] cleared the environment. It is "" if Main did
// not clear it.
var isolated string

// cacheDir returns the folder for installed agents and the homes of their sessions.
func cacheDir() (string, error) {
	if isolated != "" {
		return isolated, nil
	}
	return os.UserCacheDir()
}

// isolate clears the environment of the process, so that a driver can pass nothing on. The world
// provides everything that an agent needs.
func isolate() {
	isolated, _ = os.UserCacheDir() // a caller that needs it reports the error
	for name := range own(os.Environ()) {
		os.Unsetenv(name)
	}
	os.Setenv("GORACE", gorace())
}

// ClearEnvironment does for one test what [Main] does for all. The test must not run in parallel.
func ClearEnvironment(t testing.TB) {
	for name := range own(os.Environ()) {
		t.Setenv(name, "") // restores the variable after the test
		os.Unsetenv(name)
	}
	t.Setenv("GORACE", gorace())
}

// own yields the names of the variables that belong to the user, not to the machine.
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

// gorace returns a GORACE value without the exit delay of one second. Agents run the test binary,
// which may have the race detector.
func gorace() string { return os.Getenv("GORACE") + " atexit_sleep_ms=0" }
