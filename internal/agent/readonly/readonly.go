// Package readonly decides whether a shell command certainly only reads, and only inside some
// folders.
//
// # Authority
//
// A member whose plan waits for approval, and one that asks before it acts, may read without
// asking. This package says which commands only read. It allows nothing itself: [Found.Concerns]
// matches what the team or the user denies or wants to be asked about, and the team's core decides.
//
// # What it accepts
//
// It accepts a list, with && || ; | and newlines, of the programs in this package's table. Their
// options must be known to write nothing, run nothing and follow no links. Every word must be known
// before the command runs: no assignments, expansions, substitutions, functions or background jobs.
// The only redirections are to and from /dev/null, and of one output into the other. Every path is
// resolved, with its links, and must be inside the folders. A glob is expanded, and each match must
// be inside too.
//
// A command must be harmless however it is read: by bash, zsh and the plain shell, with their usual
// options set or not, and in each locale. The same holds for programs that take options after
// operands (GNU's) and those that do not (BSD's, and GNU's with POSIXLY_CORRECT). So a glob may
// only be an operand that is a path, because the order of its matches is not certain. No option may
// follow an operand of a program that runs a script or writes to an operand.
//
// # Guarantees
//
//   - The answer is false whenever it is not certain: for an unknown option, a path that cannot be
//     examined, or a text that could mean something else in some shell. A false answer only costs a
//     question.
//   - A git command is accepted only in a repository whose worktree, folder and objects are inside,
//     and whose configuration, attributes and hooks run no program for it. An unknown setting in
//     the repository is refused.
//   - The check itself runs no program and writes nothing.
//
// git status and git diff may refresh the index: its record of the times and sizes of files. No
// hook runs for that. GIT_OPTIONAL_LOCKS=0, which sessions have, keeps git status from it.
//
// The check does not see changes between its answer and the command: a link that another process
// creates meanwhile is followed. Aliases and functions of the user's own shell are the user's
// responsibility.
package readonly

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Scope says where a command runs, and what it may read there.
type Scope struct {
	Dir   string   // working directory, absolute
	Roots []string // folders in which it may read, absolute
	Env   []string // of the process that runs it, as far as known; NAME=value
}

// Found is what an accepted command does.
type Found struct {
	Calls [][]string // the words of each program that it runs
	Files []string   // files that it reads and folders that it searches, both as named and as resolved
	Reads bool       // it shows the content of files, not only their names
	Walks bool       // it may read files below the folders that it searches
	Lists bool       // it lists files
}

// maxCommand bounds the length of a command that can count as reading.
const maxCommand = 8192

// lookers are the tools with calls that may only read.
var lookers = []string{"Bash", "Agent", "Task"}

// Call says what a call of an agent's tool reads. Tools and their inputs have Claude Code's names.
// A command may carry its working directory as "cwd". ok is false if it is not certain that the
// call only reads.
func (s Scope) Call(tool, input string) (*Found, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil {
		return nil, false
	}
	switch tool {
	case "Bash":
		return s.bash(fields)
	case "Agent", "Task":
		if s.explores(fields) {
			return &Found{}, true
		}
	}
	return nil, false
}

// bash says what a call of a shell reads.
func (s Scope) bash(fields map[string]json.RawMessage) (*Found, bool) {
	var command string
	for name, value := range fields {
		switch name {
		case "command":
			if json.Unmarshal(value, &command) != nil {
				return nil, false
			}
		case "cwd":
			var dir string
			if json.Unmarshal(value, &dir) != nil {
				return nil, false
			}
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(s.Dir, dir)
			}
			s.Dir = dir
		case "description", "timeout", "run_in_background":
		default: // it may ask to leave the sandbox, or to run elsewhere
			if text := string(value); text != "false" && text != "null" {
				return nil, false
			}
		}
	}
	return s.Command(command)
}

// Command says what a shell command reads. ok is false if it is not certain that the command only
// reads.
func (s Scope) Command(command string) (found *Found, ok bool) {
	return s.command(command, runtime.GOOS != "linux")
}

// command is Command on a system with BSD's or GNU's programs.
func (s Scope) command(command string, bsd bool) (found *Found, ok bool) {
	if len(command) > maxCommand || strings.TrimSpace(command) == "" {
		return nil, false
	}
	l := looker{scope: s, env: Environment(s.Env), bsd: bsd}
	if !l.begin() || !l.surroundings() || !l.script(command) {
		return nil, false
	}
	slices.Sort(l.found.Files)
	l.found.Files = slices.Compact(l.found.Files)
	return &l.found, true
}

// looker checks one command.
type looker struct {
	scope Scope
	env   map[string]string
	bsd   bool
	roots []string // resolved
	dirs  []string // resolved folders in which the next program may run: a cd may have failed
	moved bool     // a cd went through links, so .. has two meanings
	found Found
}

// Environment returns the values of variables by their names; the last value of a name counts.
func Environment(list []string) map[string]string {
	env := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}

// begin resolves the folders. The working directory must be inside.
func (l *looker) begin() bool {
	for _, root := range l.scope.Roots {
		if !filepath.IsAbs(root) {
			return false
		}
		if real, err := filepath.EvalSymlinks(root); err == nil { // a missing folder has nothing to read
			l.roots = append(l.roots, real)
		}
	}
	if !filepath.IsAbs(l.scope.Dir) {
		return false
	}
	dir, err := filepath.EvalSymlinks(l.scope.Dir)
	if err != nil || !l.inside(dir) {
		return false
	}
	l.dirs, l.moved = []string{dir}, dir != filepath.Clean(l.scope.Dir)
	return true
}
