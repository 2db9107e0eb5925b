// Package paths compares paths of files and folders.
//
// # Authority
//
// It answers whether two paths lead to the same place, and whether one is below another.
//
// # Guarantees
//
//   - It changes nothing on the disk, and opens folders alone.
//   - A path that cannot be looked at is not the same as any other, not even as itself.
package paths

import (
	"os"
	"path/filepath"
	"slices"
)

// Same reports whether both paths exist and lead to the same file or folder.
func Same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// Within reports whether the path is one of the folders or below one. It compares the paths as they
// are written, and follows no links.
func Within(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		rel, err := filepath.Rel(folder, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// NotAround returns those of the folders that the path is not below: the ones that may hold a part
// of what the path names, and not all of it. It compares the paths as [Within] does.
func NotAround(path string, folders ...string) []string {
	return slices.DeleteFunc(slices.Clone(folders), func(folder string) bool {
		rel, err := filepath.Rel(folder, path)
		return err == nil && rel != "." && filepath.IsLocal(rel)
	})
}
