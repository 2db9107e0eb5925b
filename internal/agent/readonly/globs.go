package readonly

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/sys/paths"
)

// expand returns the words that a word with a glob may become, in any order. No match may look like
// an option, and a word that begins like an option must have no match. If nothing matches, the word
// stays, or the shell drops it or refuses the command.
func (l *looker) expand(w word) ([]string, bool) {
	if !w.globs {
		return []string{w.text}, true
	}
	if hasDotDot(w.text) {
		return nil, false
	}
	words := []string{}
	for _, dir := range l.dirs {
		from := ""
		if filepath.IsAbs(w.text) {
			dir, from = "/", "/"
		}
		matches, ok := l.matches(dir, from, strings.Split(strings.TrimLeft(w.glob, "/"), "/"))
		if !ok {
			return nil, false
		}
		for _, m := range matches {
			if strings.HasPrefix(m, "-") || strings.HasPrefix(m, "+") || !plain(m) {
				return nil, false
			}
			words = append(words, m)
		}
	}
	if strings.HasPrefix(w.text, "-") && len(words) > 0 {
		return nil, false
	}
	return append(words, w.text), true
}

// matches returns what the parts of a pattern match below a folder, each after from. Every folder
// that a shell would list must be inside. Folders before the first part with a pattern need not be.
//
// The answer includes what any shell matches. Some shells can be set to match names that begin with
// a dot, or to ignore case, and zsh then also compares the parts of the path without a pattern.
// Whether a name that is not ASCII matches depends on the locale. Each of these counts as a match.
func (l *looker) matches(dir, from string, parts []string) (words []string, ok bool) {
	for len(parts) > 0 && !strings.Contains(parts[0], "*") {
		real, ok := resolve(dir)
		if !ok || !l.inside(real) && !slices.ContainsFunc(l.roots,
			func(root string) bool { return paths.Within(root, real) }) {
			return nil, false
		}
		if l.inside(real) && parts[0] != "" && parts[0] != "." {
			break
		}
		name := unescaped.Replace(parts[0])
		dir, from, parts = dir+"/"+name, from+name, parts[1:]
		if len(parts) > 0 {
			from += "/"
		}
	}
	if len(parts) == 0 {
		_, err := os.Stat(dir)
		if err != nil {
			_, err = os.Lstat(dir)
		}
		if err != nil {
			return nil, missing(err)
		}
		return []string{from}, true
	}
	real, ok := resolve(dir)
	if !ok || !l.inside(real) {
		return nil, false
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil, missing(err)
	}
	for _, e := range entries {
		hit, err := path.Match(strings.ToLower(parts[0]), strings.ToLower(e.Name()))
		if err != nil || len(words) > maxMatches {
			return nil, false
		}
		if !hit && (ascii(e.Name()) || parts[0][0] == '-' && e.Name()[0] != '-' || ascii(parts[0]) &&
			!strings.Contains(parts[0], "*")) {
			continue
		}
		next := from + e.Name()
		if len(parts) == 1 {
			words = append(words, next)
			continue
		}
		if info, err := os.Stat(real + "/" + e.Name()); err != nil || !info.IsDir() {
			continue
		}
		more, ok := l.matches(real+"/"+e.Name(), next+"/", parts[1:])
		if !ok {
			return nil, false
		}
		words = append(words, more...)
	}
	return words, len(words) <= maxMatches
}

// unescaped removes the backslashes that quote characters of a pattern.
var unescaped = strings.NewReplacer(`\\`, `\`, `\*`, "*", `\?`, "?", `\[`, "[")
