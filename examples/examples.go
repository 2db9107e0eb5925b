// Package examples holds the example team files of this folder as data. So the program can run one,
// or write a copy of one, without a clone of the repository.
//
// # Authority
//
// The package says which examples there are and what each is for: that is the first sentence of its
// file. It does not read team files. A program that runs an example parses it like any other file.
//
// # Guarantees
//
//   - Every *.yaml file of the folder is an example. The tests of this package run all of them.
package examples

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Example is a team file of this folder.
type Example struct {
	Name    string // of the file, without .yaml
	Summary string // its first sentence
	Text    []byte
}

// All returns the examples, in the order of their names.
func All() (all []Example) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(err) // the pattern is right
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // it is in the program
		}
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
		all = append(all, Example{strings.TrimSuffix(path.Base(name), ".yaml"), strings.TrimSpace(words), text})
	}
	return all
}
