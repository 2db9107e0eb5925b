package e2e

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// initialised are the packages of others that the program may initialise, and how many allocations
// they may make. Go initialises whatever is linked, before main and for each command. Whoever adds a
// package measures first what it costs (cd bench && go test -bench Start -run '^$'):
// docs/architecture/start.md has the figures, and says what is not linked.
var initialised = map[string]int{
	"github.com/fsnotify/fsnotify":        20,
	"github.com/spf13/cobra":              20,
	"github.com/spf13/pflag":              10,
	"go.yaml.in/yaml/v4":                  30,
	"go.yaml.in/yaml/v4/internal/libyaml": 400,
	"go.yaml.in/yaml/v4/internal/plugin":  100,
	"go.yaml.in/yaml/v4/plugin/aliasdata": 50,
	"golang.org/x/sys/unix":               10,
	"mvdan.cc/sh/v3/fileutil":             120,
}

// The most allocations that the initialisation of a package may make: of ours, of all of ours
// together, and of the standard library, where encoding/gob, for one, makes 360. What takes longer
// is done when it is first needed.
const (
	mostOfOurs      = 200
	allOfOurs       = 750
	mostOfAStandard = 60
)

// TestStart holds what cadre version initialises. It counts allocations and takes no time: a machine
// that is busy would make that a lie.
func TestStart(t *testing.T) {
	if strings.Contains(os.Getenv("GODEBUG"), "inittrace") {
		t.Skip("GODEBUG asks for the trace already")
	}
	var trace bytes.Buffer
	c := exec.Command(cadre, "version")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	c.Stderr = &trace
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &trace)
	}
	allocations := map[string]int{}
	line := regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) allocs$`)
	for _, m := range line.FindAllStringSubmatch(trace.String(), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		allocations[m[1]] += n
	}
	if allocations["runtime"] != 0 || len(allocations) < 20 {
		t.Fatalf("the trace is not understood:\n%s", &trace)
	}
	ours := 0
	for _, name := range slices.Sorted(maps.Keys(allocations)) {
		n := allocations[name]
		first, _, _ := strings.Cut(name, "/")
		switch most, known := initialised[name]; {
		case first == "cadre" || first == "main":
			if ours += n; n > mostOfOurs {
				t.Errorf("%s makes %d allocations when it is initialised, and %d are the most: do it when it is "+
					"first needed (sync.OnceValue, lazyregexp)", name, n, mostOfOurs)
			}
		case !strings.Contains(first, "."): // the standard library, and what comes with it
			if n > mostOfAStandard {
				t.Errorf("%s makes %d allocations when it is initialised, by each command", name, n)
			}
		case !known:
			t.Errorf("%s is initialised by each command now; measure what that costs, and say so in this table", name)
		case n > most:
			t.Errorf("%s makes %d allocations when it is initialised, and had %d: measure what that costs now", name, n, most)
		}
	}
	if ours > allOfOurs {
		t.Errorf("our packages make %d allocations when they are initialised, and %d are the most", ours, allOfOurs)
	}
	for name := range initialised {
		if _, there := allocations[name]; !there && runtime.GOOS == "linux" {
			t.Errorf("%s is not initialised any more; take it out of the table", name)
		}
	}
}
