package server

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hostileWords are words that a unit must quote.
var hostileWords = []string{"/opt/ca dre/cadre", "serve", `--dir`, `/tmp/50% "of" $HOME\x <&>`}

// TestSystemdUnit checks with systemd itself, where it is installed, that the words of the command
// arrive as they are.
func TestSystemdUnit(t *testing.T) {
	u := systemd("/home/ann", hostileWords, []string{"PATH=/bin:/usr/bin", `A=50% "x" \n`})
	for _, want := range []string{"KillMode=process", "Restart=on-failure",
		`ExecStart="/opt/ca dre/cadre" "serve" "--dir" "/tmp/50%% \"of\" $$HOME\\x <&>"`,
		`Environment="A=50%% \"x\" \\n"`} {
		if !strings.Contains(u.Text, want) {
			t.Errorf("%q is missing:\n%s", want, u.Text)
		}
	}
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	file := filepath.Join(t.TempDir(), "cadre.service")
	text := strings.Replace(u.Text, `"/opt/ca dre/cadre"`, `"/bin/true"`, 1) // it must exist
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := exec.Command(path, "verify", "--user", file)
	verify.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := verify.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("cadre.service")) {
		t.Errorf("systemd says: %v\n%s", err, out)
	}
}

// TestLaunchdUnit checks that the property list is XML with the words as they are.
func TestLaunchdUnit(t *testing.T) {
	u := launchd("/Users/ann", hostileWords, []string{"PATH=/bin:/usr/bin", "A=<b> & c"})
	var texts []string
	d := xml.NewDecoder(strings.NewReader(u.Text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, is := token.(xml.CharData); is {
			texts = append(texts, string(data))
		}
	}
	all := strings.Join(texts, "\n")
	for _, want := range append([]string{"cadre.serve", "A", "<b> & c"}, hostileWords...) {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing:\n%s", want, u.Text)
		}
	}
}
