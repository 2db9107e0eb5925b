package readonly

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/sys/lazyregexp"
)

// Concerns reports whether a deny or ask rule may apply to what was found. Rules have the syntax of
// Claude Code: Bash(git log:*), Read(./secrets/**). home is the user's home, and base the folder
// for relative paths of the rule. A rule applies unless it certainly does not.
func (f *Found) Concerns(rule, home, base string) bool {
	tool, pattern, patterned := strings.Cut(strings.TrimSpace(rule), "(")
	pattern = strings.TrimSuffix(pattern, ")")
	if tool = strings.TrimSpace(tool); tool == "*" {
		return true
	}
	everything := !patterned || pattern == "" || pattern == "*"
	switch tool {
	case "Bash":
		return slices.ContainsFunc(f.Calls, func(call []string) bool {
			return everything ||
				callMatches(pattern, call)
		})
	case "Agent", "Task":
		return len(f.Calls) == 0 && (everything || strings.EqualFold(pattern, "Explore"))
	case "Read":
		return f.Reads && (everything || f.touches(pattern, home, base))
	case "Grep":
		return f.Reads && f.Walks
	case "Glob", "LS":
		return f.Walks || f.Lists
	}
	return false
}

// callMatches reports whether a pattern for commands may match a call: the call has the pattern's
// words in their order, or the texts between its stars.
func callMatches(pattern string, call []string) bool {
	pattern = strings.TrimSuffix(pattern, ":*")
	if strings.Contains(pattern, "*") && starsMatch(pattern, call) {
		return true
	}
	if strings.ContainsAny(pattern, "\"'\\$`|&;<>?[") {
		name, _, _ := strings.Cut(pattern, " ")
		return strings.ContainsAny(name, "*\"'\\$`?[") || name == call[0]
	}
	words := strings.Fields(pattern)
	if len(words) == 0 || !wordMatches(words[0], call[0]) {
		return len(words) == 0
	}
	rest := call[1:]
	for _, w := range words[1:] {
		if w == "*" {
			continue
		}
		i := slices.IndexFunc(rest, func(word string) bool { return wordMatches(w, word) })
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// starsMatch reports whether a call has the parts of a pattern between its stars and spaces, in
// their order. A star may stand for any text, even several words. The first part begins the call,
// and a part after a space begins a word.
func starsMatch(pattern string, call []string) bool {
	text := " " + strings.Join(call, " ")
	for i, part := range strings.Split(" "+pattern, "*") {
		for j, word := range strings.Fields(part) {
			if j > 0 || strings.HasPrefix(part, " ") {
				word = " " + word
			}
			at := strings.Index(text, word)
			if at < 0 || i == 0 && j == 0 && at > 0 {
				return false
			}
			text = text[at+len(word):]
		}
	}
	return true
}

// wordMatches reports whether a word may match a word of a pattern. A short option may be bundled
// with others, and a path may be written in another way.
func wordMatches(pattern, word string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == word || path.Clean(pattern) == path.Clean(word) || path.Base(word) == pattern ||
			len(pattern) == 2 && pattern[0] == '-' && len(word) > 2 && word[0] == '-' && word[1] != '-' &&
				strings.Contains(word, pattern[1:])
	}
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(word, parts[0]) {
		return false
	}
	word = word[len(parts[0]):]
	for _, part := range parts[1:] {
		i := strings.Index(word, part)
		if i < 0 {
			return false
		}
		word = word[i+len(part):]
	}
	return true // ignore the rest: a * may stand for several words
}

// touches reports whether a pattern for paths may match a file that is read.
func (f *Found) touches(pattern, home, base string) bool {
	rooted := true
	switch {
	case strings.HasPrefix(pattern, "//"):
		pattern = pattern[1:]
	case strings.HasPrefix(pattern, "~/"):
		pattern = path.Join(home, pattern[2:])
	case strings.HasPrefix(pattern, "/"), strings.HasPrefix(pattern, "./"), strings.HasPrefix(pattern, "../"),
		strings.Contains(strings.TrimSuffix(pattern, "/"), "/"):
		pattern = path.Join(base, pattern)
	default: // a name, at any depth
		rooted = false
	}
	if !rooted {
		pattern = "**/" + pattern
	} else { // a link may lead to the folder
		fixed := pattern[:max(0, strings.LastIndex(before(pattern, "*?["), "/"))]
		if real, err := filepath.EvalSymlinks(filepath.FromSlash(fixed)); fixed != "" && err == nil {
			pattern = filepath.ToSlash(real) + pattern[len(fixed):]
		}
	}
	want := strings.Split(strings.Trim(strings.ToLower(pattern), "/"), "/")
	for _, file := range f.Files {
		have := strings.Split(strings.Trim(strings.ToLower(filepath.ToSlash(file)), "/"), "/")
		if mayMatch(want, have, f.Walks) {
			return true
		}
	}
	return false
}

func before(text, any string) string {
	if i := strings.IndexAny(text, any); i >= 0 {
		return text[:i]
	}
	return text
}

// mayMatch reports whether the pattern matches a file or a folder above it. With below set, it also
// reports true if the pattern may match a file below.
func mayMatch(pattern, file []string, below bool) bool {
	switch {
	case len(pattern) == 0:
		return true // the pattern names a folder above it
	case len(file) == 0:
		return below || !slices.ContainsFunc(pattern, func(p string) bool { return p != "**" })
	case pattern[0] == "**":
		return mayMatch(pattern[1:], file, below) || mayMatch(pattern, file[1:], below)
	}
	ok, err := path.Match(wider(pattern[0]), file[0])
	return (err != nil || ok) && mayMatch(pattern[1:], file[1:], below)
}

// unclear matches what tools read in different ways: a letter with an accent, for example, may be
// one character or two.
var unclear = lazyregexp.New(`[a-z]?[^\x00-\x7f]+|[\[{\\].*`)

// wider replaces everything uncertain in a pattern for one name by a star. Uncertain are sets of
// characters, which path.Match negates in its own way, choices between braces, backslashes, and
// letters that are not ASCII.
func wider(name string) string { return unclear().ReplaceAllString(name, "*") }
