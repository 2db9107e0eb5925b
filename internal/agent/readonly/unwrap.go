package readonly

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Unwrap returns the script of a command line that runs a shell with a script, which is how agents
// report their commands: /bin/bash -lc 'ls -l'. It returns any other command line unchanged.
func Unwrap(command string) string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(
		strings.NewReader(command), "")
	if err != nil || len(file.Stmts) != 1 || len(file.Last) > 0 {
		return command
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || len(s.Redirs)+len(s.Comments)+len(call.Assigns) > 0 ||
		len(call.Args) != 3 {
		return command
	}
	var words []string
	for _, arg := range call.Args {
		w, ok := wordOf(arg)
		if !ok || w.globs {
			return command
		}
		words = append(words, w.text)
	}
	shells := []string{"bash", "sh", "zsh", "dash"}
	folders := []string{"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"}
	if !slices.Contains(shells, filepath.Base(words[0])) || !slices.Contains(folders, filepath.Dir(words[0])) ||
		words[1] != "-c" && words[1] != "-lc" {
		return command
	}
	return words[2]
}
