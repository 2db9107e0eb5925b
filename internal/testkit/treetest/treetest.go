// Package treetest holds folders, in tests, to what was in them.
//
// # Authority
//
// The package knows names, kinds, contents and times of files. What may change them is its caller's
// affair.
//
// # Guarantees
//
//   - Whatever was made, changed, touched or taken away is told, each by its path.
package treetest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Keep remembers what is below the folders, and returns a check that it is so still: mode, size,
// time of change and content of everything. The check says of whatever is not that this did it.
func Keep(t testing.TB, folders ...string) (unchanged func(this string)) {
	t.Helper()
	before := below(t, folders)
	return func(this string) {
		t.Helper()
		after := below(t, folders)
		for path, was := range before {
			if after[path] != was {
				t.Errorf("%s changed %s:\n%s\n%s", this, path, was, after[path])
			}
		}
		for path := range after {
			if before[path] == "" {
				t.Errorf("%s made %s", this, path)
			}
		}
	}
}

func below(t testing.TB, folders []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			all[path] = fmt.Sprintf("%s %d %s", info.Mode(), info.Size(), info.ModTime())
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				all[path] += fmt.Sprintf(" %x", sha256.Sum256(data))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
