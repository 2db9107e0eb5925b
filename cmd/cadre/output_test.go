package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"cadre/internal/testkit/soak"
)

// TestColors checks that a terminal has colors unless the user disables them, and a pipe has none
// unless the user asks for them. JSON never has colors.
func TestColors(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	root := t.TempDir()
	for _, c := range []struct {
		env    []string
		args   []string
		onTerm bool
		want   bool
	}{
		{nil, nil, true, true},
		{nil, nil, false, false},
		{[]string{"NO_COLOR=1"}, nil, true, false},
		{[]string{"NO_COLOR="}, nil, true, true},
		{[]string{"TERM=dumb"}, nil, true, false},
		{[]string{"CLICOLOR_FORCE=1"}, nil, false, true},
		{[]string{"CLICOLOR_FORCE=0"}, nil, false, false},
		{[]string{"CLICOLOR_FORCE=1", "NO_COLOR=1"}, nil, false, false},
		{nil, []string{"--color", "never"}, true, false},
		{nil, []string{"--color=always"}, false, true},
		{[]string{"NO_COLOR=1"}, []string{"--color", "always"}, false, true},
		{nil, []string{"--color=always", "--json"}, false, false},
		{nil, []string{"--json"}, true, false},
	} {
		if c.onTerm && !terminals {
			continue
		}
		for _, command := range [][]string{{"doctor"}, {"status", "nowhere"}} {
			// No agent is in PATH: to ask each for its version takes long.
			env := append([]string{"PATH=" + root, "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
				"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude"), "TERM=xterm"}, c.env...)
			lines := [][]string{append(command, c.args...)}
			if len(c.args) > 0 {
				lines = append(lines, append(c.args[:len(c.args):len(c.args)], command...))
			}
			for _, args := range lines {
				p := call{args: args, dir: root, env: env, onTerm: c.onTerm}.run(t)
				if has := bytes.Contains(append(p.out, p.err...), []byte("\x1b[3")); has != c.want {
					t.Errorf("%q with %q, on a terminal %v: has colors: %v\n%q%q", args, c.env, c.onTerm, has, p.out,
						p.err)
				}
			}
		}
	}
	r := call{args: []string{"ls", "--color", "sometimes"}, dir: root, env: []string{"HOME=" + root}}.run(t)
	if r.code != hopeless || !bytes.Contains(r.err, []byte("it is auto, always or never")) {
		t.Errorf("a wrong value ends with %d: %s", r.code, r.err)
	}
}
