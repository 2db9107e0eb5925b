package observe

import (
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/render"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
)

// TestLog shows recordings like cadre log. The expected output is in testdata/log.
func TestLog(t *testing.T) {
	for name, file := range map[string]string{
		"2.1.47 stream":        "2.1.47.txt",
		"2.1.177 stream":       "2.1.177.txt",
		"2.1.329 team in tmux": "2.1.329.txt",
	} {
		t.Run(name, func(t *testing.T) {
			o := New(Options{})
			var b strings.Builder
			for _, in := range recordings[name] {
				for i, line := range recorded(t, in.file) {
					for _, r := range o.Line(in.source, line, epochMillis+team.Time(i)).Records {
						for _, said := range render.Lines(r, nil) {
							b.WriteString(said + "\n")
						}
					}
				}
			}
			golden.File(t, filepath.Join("testdata", "log", file), b.String())
		})
	}
}
