package observe

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/render"
	"cadre/internal/team"
)

var update = flag.Bool("update", false, "write the transcripts again")

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
			path := filepath.Join("testdata", "log", file)
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("%s differs:\n%s", path, b.String())
			}
		})
	}
}
