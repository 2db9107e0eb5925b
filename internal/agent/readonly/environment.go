package readonly

import (
	"path/filepath"
	"slices"
	"strings"
)

// Variables that change what a shell or a listed program does: which files it reads first, which
// programs it runs, in which folder, and how it splits words.
var (
	steering = []string{"PATH", "HOME", "ENV", "IFS", "CDPATH", "FPATH", "ZDOTDIR", "PAGER", "MAGIC", "TERM", "PS4",
		"LANG", "LANGUAGE",
		"BASHOPTS", "BASH_ENV", "BASH_COMPAT", "BASH_XTRACEFD", "BASH_LOADABLES_PATH", "SHELL", "SHELLOPTS",
		"GLOBIGNORE", "POSIXLY_CORRECT", "_POSIX2_VERSION",
		"GCONV_PATH", "LOCPATH", "NLSPATH", "TMPDIR", "CLAUDE_CONFIG_DIR", "CLAUDE_ENV_FILE", "CODEX_HOME",
		"GEMINI_CLI_HOME"}
	steeringPrefixes = []string{"GIT_", "LD_", "DYLD_", "LC_", "LESS", "GREP_", "RIPGREP_", "XDG_", "BASH_FUNC_",
		"MALLOC_", "GLIBC_",
		"CLAUDE_CODE_SHELL", "CLAUDE_CODE_GIT", "CLAUDE_BASH_", "NODE_", "OPENCODE_"}
	// Variables that name files of code.
	loading         = []string{"BASH_ENV", "ENV", "ZDOTDIR", "FPATH", "GCONV_PATH", "LOCPATH", "BASH_LOADABLES_PATH"}
	loadingPrefixes = []string{"LD_", "DYLD_"}
)

// Steers reports whether a variable may change what a command does that would otherwise only read.
// A project's own settings may set such a variable, and then nothing is certain.
func Steers(name string) bool { return named(name, steering, steeringPrefixes) }

func named(name string, names, prefixes []string) bool {
	return slices.Contains(names, name) || slices.ContainsFunc(prefixes,
		func(p string) bool { return strings.HasPrefix(name, p) })
}

// surroundings reports whether no variable makes the shell, or any program, load code that a member
// could have written, or run the value of another variable.
func (l *looker) surroundings() bool {
	for name, value := range l.env {
		if value == "" {
			continue
		}
		if name == "SHELLOPTS" && strings.Contains(value, "xtrace") { // it expands PS4
			return false
		}
		if !named(name, loading, loadingPrefixes) {
			continue
		}
		for _, file := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' }) {
			for _, part := range filepath.SplitList(file) {
				real, ok := resolve(part)
				if !filepath.IsAbs(part) || !ok || l.inside(real) {
					return false
				}
			}
		}
	}
	return true
}
