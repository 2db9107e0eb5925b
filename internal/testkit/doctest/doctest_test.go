package doctest

import (
	"slices"
	"strings"
	"testing"
)

const page = "# A page\n\n```sh\ncadre ls          # all of them\n# nothing\ncadre send t '#1 # is it' && x   # yes\n```\n\n" +
	"```text\n$ cadre run x.yaml\n03:00:01  ✓ worker-2  a (3 ms)\n03:00:01  ✓ worker-1  b (3.1 s)\nend\n$ cadre ls\n```\n\n```\n$ no command\n```\n" +
	"```yaml\n$ no: command\n```\n"

func TestCommands(t *testing.T) {
	var lines []string
	all := Commands(page)
	for _, c := range all {
		lines = append(lines, c.Line)
	}
	want := []string{"cadre ls", "cadre send t '#1 # is it' && x", "cadre run x.yaml", "cadre ls"}
	if !slices.Equal(lines, want) {
		t.Fatalf("got commands %q, want %q", lines, want)
	}
	if all[0].Shows || !all[2].Shows || len(all[2].Output) != 3 || !all[3].Shows || len(all[3].Output) != 0 {
		t.Errorf("got shown output %+v", all)
	}
	if got := Written(page, all[3], "NAME\n"); !strings.Contains(got, "$ cadre ls\nNAME\n```") {
		t.Errorf("with another output the document is\n%s", got)
	}
}

// TestWrittenExcerpt checks that an excerpt keeps its lines, except those that the command no
// longer prints.
func TestWrittenExcerpt(t *testing.T) {
	const part = "```text\n$ cadre run x.yaml\nbegins\n…\n03:00:01  ✓ a (3 ms)\n…\n2 of 2 done\n```\n"
	const printed = "begins\n04:00:00  · task a\n04:00:00  ▸ a\n04:00:00  ✓ task a (1 s)\nrest\n2 of 2 done\n"
	want := strings.Replace(part, "03:00:01  ✓ a (3 ms)", "04:00:00  ✓ task a (1 s)", 1)
	if got := Written(part, Commands(part)[0], printed); got != want {
		t.Errorf("it is\n%s", got)
	}
	if got := Written(want, Commands(want)[0], printed); got != want {
		t.Errorf("an up-to-date excerpt is changed to\n%s", got)
	}
}

func TestDiffers(t *testing.T) {
	c := Commands(page)[2]
	for printed, same := range map[string]bool{
		"04:10:59  ✓ worker-1   b (1 min)\n04:11:00  ✓ worker-3  a (12.5 ms)\nend\n": true,
		"04:10:59  ✓ worker-1  b (1 s)\n04:11:00  ✓ worker-3  c (1 s)\nend\n":        false,
		"04:10:59  ✓ worker-1  b (1 s)\nend\n04:11:00  ✓ worker-3  a (1 s)\n":        false,
		"04:10:59  ✓ worker-1  b (1 s)\n04:11:00  ✓ worker-3  a (1 s)\n":             false,
		"": false,
	} {
		if got := c.Differs(printed); (got == "") != same {
			t.Errorf("%q: %s", printed, got)
		}
	}
	c.Output = []string{"…", "end", "…"}
	if got := c.Differs("begin\nend\n"); got != "" {
		t.Error(got)
	}
	if c.Differs("begin\n") == "" || c.Differs("ending\n") == "" {
		t.Error("Differs does not report a line that was not printed")
	}
}
