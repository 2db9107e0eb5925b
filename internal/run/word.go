package run

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/team"
)

// IsWord reports whether the text is one word of ASCII letters, digits, ".", "_", "-" and "/".
// People type such words for a file or a team, and hardly ever for a goal.
func IsWord(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/", r)
	})
}

// NearFile returns the YAML file that the name, with or without its ending, most likely means. That
// is the file of that name in its directory, or one whose name differs in few letters. It returns
// "" if there is none.
func NearFile(name string) string {
	dir, base := filepath.Split(name)
	files := map[string]string{}
	var stems []string
	for _, file := range yamlFiles(dir) {
		s := stem(filepath.Base(file))
		if _, twice := files[s]; !twice { // prefer release.yaml to release.yml
			stems = append(stems, s)
			files[s] = file
		}
	}
	return files[team.Nearest(stem(base), stems)]
}

// mostFiles bounds how many files of a directory are read to find its team files.
const mostFiles = 50

// TeamFiles returns the paths of the team files in the directory that can be run as they are.
func TeamFiles(dir string) (found []string) {
	for i, file := range yamlFiles(dir) {
		if i == mostFiles {
			break
		}
		if _, _, err := LoadFile(file); err == nil {
			found = append(found, file)
		}
	}
	return found
}

// yamlFiles returns the paths of the regular files in the directory with a YAML ending, sorted. For
// "" the paths have no directory.
func yamlFiles(dir string) (found []string) {
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.Type().IsRegular() || e.Type() == fs.ModeSymlink {
			if stem(e.Name()) != e.Name() {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
	}
	return found
}

// stem returns the name of a file without its YAML ending.
func stem(name string) string {
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".yaml") || strings.EqualFold(ext, ".yml") {
		return strings.TrimSuffix(name, ext)
	}
	return name
}
