// Package treetest checks, in tests, that folders stay unchanged.
//
// # Authority
//
// The package compares names, kinds, contents and times of files. The caller decides what may
// change them.
//
// # Guarantees
//
//   - It reports everything that was made, changed, touched or removed, each by its path.
package treetest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Keep records the mode, size, modification time and content of everything below the folders. The
// check that it returns fails the test for each difference, and names this as the cause.
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
