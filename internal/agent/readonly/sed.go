package readonly

import "strings"

// sedReads reports whether a sed script only prints, deletes and replaces parts of its input. It
// must not write a file (w, W, s///w), read another file (r, R) or run a program (e, s///e).
// sedReads knows a part of the language, and refuses the rest.
func sedReads(script string) bool {
	if !ascii(script) { // the end of other characters depends on the locale
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

// address reads an optional address: a line number, $ or a pattern.
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
	if there = len(s.rest) < before; there && strings.HasPrefix(s.rest, "~") { // a step: every so many lines
		s.rest = strings.TrimLeft(s.rest[1:], "0123456789")
	}
	return there, true
}

// substitution reads the rest of an s command: a pattern, its replacement, and flags that neither
// write nor run anything.
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

// until reads to the mark. It refuses a mark that could be in a set of characters, because versions
// of sed differ there.
func (s *sedScanner) until(mark byte, sets bool) bool {
	plain := end(s.rest, mark, false)
	if plain < 0 || sets && end(s.rest, mark, true) != plain {
		return false
	}
	s.rest = s.rest[plain+1:]
	return true
}

// end returns the position of the mark that ends a pattern, and -1 if there is none. sets says
// whether to skip sets of characters.
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
