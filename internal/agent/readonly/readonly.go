// Package readonly tells whether a shell command certainly only reads, and only inside some
// folders.
//
// # Authority
//
// A member whose plan waits for approval, and one that asks before it acts, may look around without
// asking anybody. This package says which commands are that. It allows nothing itself: what the
// team or the user denies or wants to be asked about is matched by [Found.Concerns], and the team's
// core decides.
//
// # What it accepts
//
// A list, with && || ; | and newlines, of the programs in this package's table, each with options
// that are known to write nothing, run nothing and follow no links. Every word must be known before
// the command runs: no assignments, expansions, substitutions, functions or background jobs. The
// only redirections are those to and from /dev/null, and of one output into the other. Every path
// that a program is given is resolved, with its links, and must be inside the folders. A glob is
// expanded, and each match must be too.
//
// A command must be harmless in every way in which it can be read: by bash, zsh and the plain
// shell, with their usual options set or not, in each locale, and by programs that take options
// behind operands (GNU's) or do not (BSD's, and GNU's with POSIXLY_CORRECT). So a glob may only be
// an operand that is a path, because its matches have no certain order. No option may stand behind
// an operand of a program that runs a script or writes an operand.
//
// # Guarantees
//
//   - The answer is false whenever it is not certain: an unknown option, a path that cannot be
//     looked at, a shell in which the text could mean something else. A false answer costs a
//     question, and nothing else.
//   - A git command is accepted only in a repository whose worktree, folder and objects are inside,
//     and whose configuration, attributes and hooks run no program for it. An unknown setting of
//     the repository's is refused.
//   - No program is run to find out, and nothing is written.
//
// git status and git diff may refresh the index: what it remembers of the times and sizes of files.
// No hook runs for that. GIT_OPTIONAL_LOCKS=0, which sessions have, keeps git status from it.
//
// What changes between the answer and the command is not seen: a link that another process puts in
// place meanwhile is followed. The aliases and functions of the user's own shell are the user's.
package readonly

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Scope is where a command runs, and what it may read there.
type Scope struct {
	Dir   string   // where it runs: absolute
	Roots []string // folders in which it may read: absolute
	Env   []string // of the process that runs it, as far as that is known; NAME=value
}

// Found is what an accepted command does.
type Found struct {
	Calls [][]string // the words of each program that it runs
	Files []string   // files that it reads and folders in which it searches, as they are named and resolved
	Reads bool       // it shows what is in files, not only which there are
	Walks bool       // it may read files below the folders that it searches
	Lists bool       // it shows which files there are
}

// maxCommand bounds a command. A longer one is no look around.
const maxCommand = 8192

// Call tells what a call of an agent's tool reads. Tools and their inputs are named as Claude Code
// names them. A command may carry the folder in which it runs as "cwd".
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

// bash tells what a call of a shell reads.
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
		default: // it may say that the sandbox is to be left, or where else it runs
			if text := string(value); text != "false" && text != "null" {
				return nil, false
			}
		}
	}
	return s.Command(command)
}

// Command tells what a shell command reads. It is not ok when that is not certain.
func (s Scope) Command(command string) (found *Found, ok bool) {
	return s.command(command, runtime.GOOS != "linux")
}

// command is Command on a system whose programs are BSD's, or GNU's.
func (s Scope) command(command string, bsd bool) (found *Found, ok bool) {
	if len(command) > maxCommand || strings.TrimSpace(command) == "" {
		return nil, false
	}
	l := looker{scope: s, env: environment(s.Env), bsd: bsd}
	if !l.begin() || !l.surroundings() || !l.script(command) {
		return nil, false
	}
	slices.Sort(l.found.Files)
	l.found.Files = slices.Compact(l.found.Files)
	return &l.found, true
}

// looker looks at one command.
type looker struct {
	scope Scope
	env   map[string]string
	bsd   bool
	roots []string // resolved
	dirs  []string // in which the next program may run, resolved: a cd may have failed
	moved bool     // the folder was given by a path with links, so that .. may mean either
	found Found
}

func environment(list []string) map[string]string {
	env := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}

// begin resolves the folders. The one where the command runs must be inside.
func (l *looker) begin() bool {
	for _, root := range l.scope.Roots {
		if !filepath.IsAbs(root) {
			return false
		}
		if real, err := filepath.EvalSymlinks(root); err == nil { // one that is not there has nothing to read
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
