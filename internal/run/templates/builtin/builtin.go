// Package builtin holds the team files of this folder as data. So the program can run one, or write
// a copy of one, without a clone of the repository.
//
// # Authority
//
// The package says which templates are in the program and what each is for: that is the first
// sentence of its file. It does not read team files. A program that runs a template parses it like
// any other file.
//
// # Guarantees
//
//   - Every *.yaml file of the folder is a template. Tests run all of them: those that need only a
//     shell are run by the tests of this package, the others by e2e with the real agents.
package builtin

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Template is a team file of this folder.
type Template struct {
	Name    string // of the file, without .yaml
	Summary string // its first sentence
	Text    []byte
}

// All returns the templates, in the order of their names.
func All() (all []Template) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(err) // the pattern is right
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // it is in the program
		}
		all = append(all, Template{strings.TrimSuffix(path.Base(name), ".yaml"), Summary(text), text})
	}
	return all
}

// Summary returns what a team file is for: the first sentence of the comment at its beginning, or
// "".
func Summary(text []byte) string {
	words := ""
	for line := range strings.Lines(string(text)) {
		comment, is := strings.CutPrefix(line, "#")
		if !is || strings.TrimSpace(comment) == "" {
			break
		}
		words += " " + strings.TrimSpace(comment)
	}
	if i := strings.IndexAny(words, ".:"); i >= 0 {
		words = words[:i]
	}
	return strings.TrimSpace(words)
}
