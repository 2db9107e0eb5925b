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

// initialised lists the third-party packages that the program may initialise, and how many
// allocations they may make. Go initialises every linked package before main, for each command.
// Before you add a package, measure its cost (cd bench && go test -bench Start -run '^$').
// docs/architecture/start.md has the figures, and lists what the program does not link.
var initialised = map[string]int{
	"github.com/charmbracelet/colorprofile":       10,
	"github.com/charmbracelet/ultraviolet":        30,
	"github.com/charmbracelet/x/ansi":             10,
	"github.com/charmbracelet/x/ansi/parser":      10,
	"github.com/charmbracelet/x/termios":          40,
	"github.com/coder/websocket":                  5,
	"github.com/fsnotify/fsnotify":                20,
	"github.com/jackc/pgpassfile":                 30,
	"github.com/jackc/pgx/v5/internal/iobufpool":  50,
	"github.com/jackc/pgx/v5/pgconn":              5,
	"github.com/jackc/pgx/v5/pgtype":              50,
	"golang.org/x/text/cases":                     50,
	"golang.org/x/text/internal/language":         15,
	"golang.org/x/text/internal/language/compact": 15,
	"golang.org/x/text/language":                  5,
	"golang.org/x/text/secure/bidirule":           5,
	"golang.org/x/text/secure/precis":             20,
	"golang.org/x/text/unicode/norm":              5,
	"github.com/mattn/go-runewidth":               80,
	"github.com/muesli/cancelreader":              5,
	"github.com/spf13/cobra":                      20,
	"github.com/spf13/pflag":                      10,
	"go.yaml.in/yaml/v4":                          30,
	"go.yaml.in/yaml/v4/internal/libyaml":         400,
	"go.yaml.in/yaml/v4/internal/plugin":          100,
	"go.yaml.in/yaml/v4/plugin/aliasdata":         50,
	"github.com/xo/terminfo":                      5,
	"golang.org/x/sys/unix":                       10,
	"mvdan.cc/sh/v3/fileutil":                     120,
	"rsc.io/qr/coding":                            5,
}

// These are the most allocations that the initialisation of a package may make: for each package of
// this module, for all of them together, and for the standard library, where encoding/gob, for
// example, makes 360. Do more expensive work when it is first needed.
const (
	mostOfOurs      = 80
	allOfOurs       = 356
	mostOfAStandard = 60
)

// TestStart checks what cadre version initialises. It counts allocations and measures no time,
// because a busy machine would falsify that.
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
		t.Fatalf("cannot parse the trace:\n%s", &trace)
	}
	ours := 0
	for _, name := range slices.Sorted(maps.Keys(allocations)) {
		n := allocations[name]
		first, _, _ := strings.Cut(name, "/")
		switch most, known := initialised[name]; {
		case first == "cadre" || first == "main":
			if ours += n; n > mostOfOurs {
				t.Errorf("%s makes %d allocations when it is initialised, and the limit is %d: do it when it is "+
					"first needed (sync.OnceValue, lazyregexp)", name, n, mostOfOurs)
			}
		case !strings.Contains(first, "."): // the standard library, and its dependencies
			if n > mostOfAStandard {
				t.Errorf("each command initialises %s, which makes %d allocations", name, n)
			}
		case !known:
			t.Errorf("each command now initialises %s; measure its cost, and add it to this table", name)
		case n > most:
			t.Errorf("%s makes %d allocations when it is initialised, and had %d: measure it again", name, n, most)
		}
	}
	if ours > allOfOurs {
		t.Errorf("our packages make %d allocations when they are initialised, and the limit is %d", ours, allOfOurs)
	}
	for name := range initialised {
		if _, there := allocations[name]; !there && runtime.GOOS == "linux" {
			t.Errorf("%s is not initialised any more; remove it from the table", name)
		}
	}
}
