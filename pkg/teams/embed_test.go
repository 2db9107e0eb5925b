package teams_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inTests lists the modules that only the tests of this module import, and their dependencies.
var inTests = []string{"github.com/anishathalye/porcupine", "github.com/coder/websocket",
	"github.com/google/jsonschema-go",
	"github.com/modelcontextprotocol/go-sdk", "github.com/rogpeppe/go-internal", "go.uber.org/goleak",
	"pgregory.net/rapid", "github.com/yosida95/uritemplate/v3", "golang.org/x/oauth2", "golang.org/x/time",
	"golang.org/x/tools", "github.com/segmentio/encoding", "github.com/segmentio/asm",
	"github.com/prometheus/client_golang", "github.com/prometheus/client_model", "github.com/prometheus/common",
	"google.golang.org/protobuf", "github.com/munnerz/goautoneg"}

// TestTheEmbedder checks what a program that imports the library is built of: the packages of the
// library and their few dependencies. The test dependencies of this module are neither compiled nor
// vendored. Since Go 1.17 the module graph is pruned to what the program's own packages and tests
// import.
func TestTheEmbedder(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the go command")
	}
	root, err := filepath.Abs(filepath.Join(source, "..", ".."))
	ok(t, err)
	dir := t.TempDir()
	write := func(name, text string) { ok(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	ours, err := os.ReadFile(filepath.Join(root, "go.mod"))
	ok(t, err)
	// go mod tidy would add the modules of cadre, and ask a proxy for those that they were tested
	// with.
	_, required, _ := strings.Cut(string(ours), "\nrequire (")
	write("go.mod", "module embedder\n\ngo 1.26.0\n\nrequire cadre v0.0.0\n\nrequire ("+required+
		"\nreplace cadre => "+root+"\n")
	write("main.go", `package main

import (
	"fmt"

	"cadre/pkg/teams"
	"cadre/pkg/teams/client"
)

func main() {
	fmt.Println(teams.New(teams.Options{}))
	fmt.Println(client.Open(client.Options{}))
}
`)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	ok(t, err)
	write("go.sum", string(sums))
	run := func(args ...string) string {
		t.Helper()
		c := exec.Command("go", args...)
		c.Dir = dir
		// An agent's sandbox may have left a folder .git in that of temporary files.
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off", "GOPROXY=off", "GONOSUMDB=*", "GONOSUMCHECK=1",
			"CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	packages := run("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	modules := slices.Compact(slices.Sorted(slices.Values(strings.Fields(packages))))
	if !slices.Contains(modules, "cadre") || len(modules) < 3 {
		t.Fatalf("the program is built of %q", modules)
	}
	run("mod", "vendor")
	vendored, err := os.ReadFile(filepath.Join(dir, "vendor", "modules.txt"))
	ok(t, err)
	for _, module := range inTests {
		if slices.Contains(modules, module) {
			t.Errorf("%s is compiled into a program that embeds teams", module)
		}
		for _, line := range strings.Split(string(vendored), "\n") {
			if line == module || strings.HasPrefix(line, module+"/") { // a package of it
				t.Errorf("%s is vendored with a program that embeds teams", line)
			}
		}
	}
	t.Logf("modules: %s", strings.Join(modules, ", "))
	if packages := run("list", "-mod=vendor", "-deps", "-e", "-f", "{{with .Error}}{{.}}{{end}}", "."); packages != "" {
		t.Errorf("the vendored modules are not enough: %s", packages)
	}
}
