package team

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A path pattern names files of the project by their paths from its directory. Its folders are
// separated by /. In a folder's or a file's name, *, ? and [a-z] stand for characters, as in
// [path.Match]. A ** between slashes stands for any number of folders. A pattern without any of
// these covers everything below, too: src and src/** cover the same files.
//
// Upper and lower case are the same in a pattern: there are file systems on which they name the
// same file.

// Limits on the paths of a task.
const (
	MaxPaths       = 100 // patterns of one task
	MaxPathPattern = 512 // bytes of one pattern
)

// everything is the pattern of the whole project.
const everything = "**"

// CleanPath returns a path pattern in its one spelling, or says what is wrong with it.
func CleanPath(pattern string) (string, error) {
	wrong := func(format string, args ...any) (string, error) {
		return "", refuse(Invalid, "%q cannot be a path of a task: "+format, append([]any{brief(pattern)}, args...)...)
	}
	switch {
	case strings.TrimSpace(pattern) == "":
		return "", refuse(Invalid, "a path of a task is empty; write a pattern from the project's directory, like "+
			"src/parser/**")
	case len(pattern) > MaxPathPattern:
		return "", refuse(TooLarge, "a path of a task has %d bytes, of at most %d", len(pattern), MaxPathPattern)
	case !utf8.ValidString(pattern) || strings.ContainsFunc(pattern, unicode.IsControl):
		return wrong("it has control characters, or bytes that are no characters")
	case strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "~"):
		return wrong("it must be relative to the project's directory, like src/parser/**")
	case strings.Contains(pattern, `\`):
		return wrong("folders are separated by /, and \\ has no meaning")
	case strings.ContainsAny(pattern, "{}") || strings.HasPrefix(pattern, "!"):
		return wrong("{…} and ! have no meaning in it; write one pattern for each alternative")
	}
	var names []string
	for name := range strings.SplitSeq(pattern, "/") {
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			return wrong("it leads out of the project's directory with ..")
		case name != everything && strings.Contains(name, everything):
			return wrong("** stands for folders and has a / on both sides, as in src/**/*.go")
		}
		if _, err := path.Match(name, ""); err != nil {
			return wrong("its [ has no ], or nothing between them")
		}
		names = append(names, name)
	}
	for len(names) > 1 && names[len(names)-1] == everything &&
		(names[len(names)-2] == everything || plainPattern(names[:len(names)-1])) { // that covers what is below it
		names = names[:len(names)-1]
	}
	if len(names) == 0 {
		return everything, nil
	}
	return strings.Join(names, "/"), nil
}

// cleanPaths returns the patterns in their one spelling, each once.
func cleanPaths(patterns []string) ([]string, error) {
	var clean []string
	for _, p := range patterns {
		p, err := CleanPath(p)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(clean, p) {
			clean = append(clean, p)
		}
	}
	if len(clean) > MaxPaths {
		return nil, refuse(TooLarge, "the task would have %d paths, of at most %d; write fewer and wider patterns",
			len(clean), MaxPaths)
	}
	return clean, nil
}

// Covers reports whether the pattern covers the file, whose path is relative to the project's
// directory.
func Covers(pattern, file string) bool { return overlaps(pattern, file, true) }

// PathsMeet reports whether there can be a file that patterns of both lists cover.
func PathsMeet(a, b []string) bool {
	_, _, common := commonPath(a, b)
	return common
}

// commonPath returns the first of a that has a file in common with one of b, and that one.
func commonPath(a, b []string) (ofA, ofB string, common bool) {
	for _, p := range a {
		for _, q := range b {
			if overlaps(p, q, false) {
				return p, q, true
			}
		}
	}
	return "", "", false
}

// plainPattern reports whether all names of a pattern stand for themselves.
func plainPattern(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !isPlain(name) })
}

// overlaps reports whether there can be a file that both patterns cover. With literal, b is the
// path of a file and no pattern.
func overlaps(a, b string, literal bool) bool {
	belowA, belowB := isPlain(a), !literal && isPlain(b)
	for a != "" && b != "" {
		nameA, restA, _ := strings.Cut(a, "/")
		nameB, restB, _ := strings.Cut(b, "/")
		if nameA == everything || nameB == everything && !literal {
			return foldersMeet(a, b, literal, belowA, belowB)
		}
		if !namesMeet(nameA, nameB, literal) {
			return false
		}
		a, b = restA, restB
	}
	return a == b || a == "" && (belowA || b == everything && !literal) || b == "" && (belowB || a == everything)
}

// foldersMeet is [overlaps] for any patterns; belowA and belowB say which of them cover what is
// below. reach[j] says whether the first names of a and the first j of b can match the same path.
func foldersMeet(a, b string, literal, belowA, belowB bool) bool {
	namesA, namesB := strings.Split(a, "/"), strings.Split(b, "/")
	if belowA {
		namesA = append(namesA, everything)
	}
	if belowB {
		namesB = append(namesB, everything)
	}
	many := func(name string) bool { return name == everything }
	manyB := func(name string) bool { return !literal && many(name) }
	reach := []bool{true}
	for j, name := range namesB {
		reach = append(reach, reach[j] && manyB(name))
	}
	for _, nameA := range namesA {
		corner := reach[0]
		reach[0] = corner && many(nameA)
		for j, nameB := range namesB {
			above, left := reach[j+1], reach[j]
			if many(nameA) || manyB(nameB) {
				reach[j+1] = above || left
			} else {
				reach[j+1] = corner && namesMeet(nameA, nameB, literal)
			}
			corner = above
		}
	}
	return reach[len(namesB)]
}

// namesMeet reports whether there is a name that both match. With literal, b is a name.
func namesMeet(a, b string, literal bool) bool {
	plainA, plainB := isPlain(a), literal || isPlain(b)
	if plainA && plainB {
		return strings.EqualFold(a, b)
	}
	return meet(split(a, plainA), split(b, plainB))
}

// isPlain reports whether no character of the name has a meaning of its own.
func isPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c == '*' || c == '?' || c == '[' {
			return false
		}
	}
	return true
}

// unit is one part of the pattern of a name: a character, one of a class, any one, or any number.
type unit struct {
	char  rune
	class string // what stands between [ and ]; "" for none
	any   bool   // ? for one character
	many  bool   // * for any number of them
}

// split returns the units of a name. A plain one has characters alone.
func split(name string, plain bool) (units []unit) {
	for name != "" {
		r, size := utf8.DecodeRuneInString(name)
		u := unit{char: unicode.ToLower(r)}
		switch {
		case plain:
		case r == '*':
			u = unit{many: true}
		case r == '?':
			u = unit{any: true}
		case r == '[':
			end := 1
			if strings.HasPrefix(name[end:], "^") {
				end++
			}
			// a ] that comes first has been refused
			end += strings.IndexByte(name[end:], ']')
			u, size = unit{class: name[1:end]}, end+1
		}
		units, name = append(units, u), name[size:]
	}
	return units
}

// meet reports whether there is a text that both lists of units match. reach[j] says whether the
// first units of a and the first j of b can match the same text.
func meet(a, b []unit) bool {
	reach := []bool{true}
	for _, u := range b { // the first units of b against nothing
		reach = append(reach, reach[len(reach)-1] && u.many)
	}
	for _, u := range a {
		corner := reach[0]
		reach[0] = corner && u.many
		for j, v := range b {
			above, left := reach[j+1], reach[j]
			if u.many || v.many {
				reach[j+1] = above || left
			} else {
				reach[j+1] = corner && u.meets(v)
			}
			corner = above
		}
	}
	return reach[len(b)]
}

// meets reports whether there is a character that both match.
func (u unit) meets(v unit) bool {
	switch {
	case u.any || v.any:
		return true
	case u.class == "" && v.class == "":
		return u.char == v.char
	case u.class == "":
		return inClass(v.class, u.char)
	case v.class == "":
		return inClass(u.class, v.char)
	}
	// Two classes have a character in common if one at, or beside, an end of their ranges is.
	for _, c := range u.class + v.class {
		for _, r := range []rune{c - 1, c, c + 1} {
			if r > 0 && r != '/' && inClass(u.class, r) && inClass(v.class, r) {
				return true
			}
		}
	}
	return false
}

// inClass reports whether the character is in the class, in upper or in lower case.
func inClass(class string, r rune) bool {
	rest, negated := strings.CutPrefix(class, "^")
	in := func(r rune) bool {
		for rest := []rune(rest); len(rest) > 0; {
			low, high := rest[0], rest[0]
			if rest = rest[1:]; len(rest) > 1 && rest[0] == '-' {
				high, rest = rest[1], rest[2:]
			}
			if low <= r && r <= high {
				return true
			}
		}
		return false
	}
	lower, upper := in(unicode.ToLower(r)), in(unicode.ToUpper(r))
	if negated {
		return !lower || !upper
	}
	return lower || upper
}
