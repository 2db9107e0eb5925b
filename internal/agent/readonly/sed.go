package readonly

import "strings"

// sedReads reports whether a script of sed's only prints, deletes and replaces in what it read: it
// writes no file (w, W, s///w), reads no other (r, R) and runs nothing (e, s///e). It knows a part
// of the language, and refuses the rest.
func sedReads(script string) bool {
	if !ascii(script) { // where a character ends depends on the locale
		return false
	}
	s := sedScanner{rest: script}
	for {
		s.rest = strings.TrimLeft(s.rest, " \t\n;")
		if s.rest == "" {
			return true
		}
		if !s.command() {
			return false
		}
		s.rest = strings.TrimLeft(s.rest, " \t")
		if s.rest != "" && s.rest[0] != ';' && s.rest[0] != '\n' {
			return false
		}
	}
}

// sedScanner reads a script from its beginning.
type sedScanner struct{ rest string }

func (s *sedScanner) next() byte {
	if s.rest == "" {
		return 0
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	return c
}

func (s *sedScanner) command() bool {
	if one, ok := s.address(); !ok {
		return false
	} else if one && strings.HasPrefix(s.rest, ",") {
		s.next()
		if strings.HasPrefix(s.rest, "+") || strings.HasPrefix(s.rest, "~") {
			s.next()
		}
		if two, ok := s.address(); !ok || !two {
			return false
		}
	}
	s.rest = strings.TrimLeft(s.rest, " ")
	if strings.HasPrefix(s.rest, "!") {
		s.next()
	}
	switch c := s.next(); c {
	case 'p', 'P', 'd', 'D', 'n', 'N', 'g', 'G', 'h', 'H', 'x', 'q', 'Q', '=', 'l':
		return true
	case 's':
		return s.substitution()
	}
	return false
}

// address reads a line's number, $ or a pattern. There need not be one.
func (s *sedScanner) address() (there, ok bool) {
	switch {
	case s.rest == "":
		return false, true
	case s.rest[0] == '$':
		s.next()
		return true, true
	case s.rest[0] == '/':
		s.next()
		if !s.until('/', true) {
			return false, false
		}
		if strings.HasPrefix(s.rest, "I") {
			s.next()
		}
		return true, true
	}
	before := len(s.rest)
	s.rest = strings.TrimLeft(s.rest, "0123456789")
	if there = len(s.rest) < before; there && strings.HasPrefix(s.rest, "~") { // every so many
		s.rest = strings.TrimLeft(s.rest[1:], "0123456789")
	}
	return there, true
}

// substitution reads what follows s: a pattern, what takes its place, and flags that neither write
// nor run anything.
func (s *sedScanner) substitution() bool {
	mark := s.next()
	if !strings.ContainsRune("/|,#@:%", rune(mark)) || mark == 0 {
		return false
	}
	if !s.until(mark, true) || !s.until(mark, false) {
		return false
	}
	s.rest = strings.TrimLeft(s.rest, "gpiI0123456789")
	return true
}

// until reads to the mark. Where it could be in a set of characters, versions differ, so that is
// refused.
func (s *sedScanner) until(mark byte, sets bool) bool {
	plain := end(s.rest, mark, false)
	if plain < 0 || sets && end(s.rest, mark, true) != plain {
		return false
	}
	s.rest = s.rest[plain+1:]
	return true
}

// end returns where the mark is that ends a pattern, with sets of characters taken into account or
// not; -1 where there is none.
func end(text string, mark byte, sets bool) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '\n':
			return -1
		case sets && text[i] == '[':
			i++
			if i < len(text) && text[i] == '^' {
				i++
			}
			if i < len(text) && text[i] == ']' {
				i++
			}
			for i < len(text) && text[i] != ']' {
				if strings.HasPrefix(text[i:], "[:") || strings.HasPrefix(text[i:], "[.") ||
					strings.HasPrefix(text[i:], "[=") {
					class := strings.Index(text[i+2:], text[i+1:i+2]+"]")
					if class < 0 {
						return -1
					}
					i += 2 + class + 1
				}
				i++
			}
		case text[i] == mark:
			return i
		}
	}
	return -1
}
