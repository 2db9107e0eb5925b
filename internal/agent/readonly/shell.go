package readonly

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of a command and its globs.
const (
	maxMatches = 1000 // of its globs
	maxCalls   = 32
	maxDirs    = 8
)

// script checks a whole command. It must mean the same in bash, in zsh and in the plain shell,
// because agents use the user's shell.
func (l *looker) script(text string) bool {
	if !plain(text) || !ascii(text) && !utf8Locale(l.env) {
		return false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(
		strings.NewReader(text), "")
	return err == nil && len(file.Last) == 0 && len(file.Stmts) > 0 && l.statements(file.Stmts)
}

// plain reports whether all shells read every character of a text in the usual way.
func plain(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || r == ' ':
		case r < ' ' || r == 0x7f, r >= 0x80 && (unicode.IsSpace(r) || unicode.IsControl(r) ||
			unicode.Is(unicode.Cf, r)):
			return false
		}
	}
	return true
}

// ascii reports whether a text means the same in every locale.
func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// utf8Locale reports whether the programs read text as UTF-8 or as bytes. In other locales, such as
// those with GBK, a backslash can be the second byte of a character, and then quotes nothing.
func utf8Locale(env map[string]string) bool {
	locale := cmp.Or(env["LC_ALL"], env["LC_CTYPE"], env["LANG"], "C")
	_, charset, _ := strings.Cut(strings.ToLower(locale), ".")
	charset, _, _ = strings.Cut(charset, "@")
	return locale == "C" || locale == "POSIX" || charset == "utf-8" || charset == "utf8"
}

func (l *looker) statements(all []*syntax.Stmt) bool {
	for _, s := range all {
		if !l.statement(s) {
			return false
		}
	}
	return true
}

func (l *looker) statement(s *syntax.Stmt) bool {
	if s.Background || s.Coprocess || len(s.Comments) > 0 {
		return false
	}
	for _, r := range s.Redirs {
		if !harmless(r) {
			return false
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return l.call(c)
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt, syntax.OrStmt, syntax.Pipe, syntax.PipeAll:
			return l.statement(c.X) && l.statement(c.Y)
		}
	}
	return false
}

// harmless reports whether a redirection goes to or from /dev/null, or joins one output to the
// other.
func harmless(r *syntax.Redirect) bool {
	if r.Hdoc != nil || r.Word == nil {
		return false
	}
	to := r.Word.Lit()
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut:
		return to == "/dev/null" && (r.N == nil || r.N.Value == "1" || r.N.Value == "2")
	case syntax.RdrAll:
		return to == "/dev/null" && r.N == nil
	case syntax.RdrIn:
		return to == "/dev/null" && r.N == nil
	case syntax.DplOut:
		return (to == "1" || to == "2") && (r.N == nil || r.N.Value == "1" || r.N.Value == "2")
	}
	return false
}

// call checks one program with its words.
func (l *looker) call(c *syntax.CallExpr) bool {
	if len(c.Assigns) > 0 || len(c.Args) == 0 || len(l.found.Calls) >= maxCalls {
		return false
	}
	var args []arg
	for i, word := range c.Args {
		w, ok := wordOf(word)
		if !ok || i == 0 && (w.globs || w.text != word.Lit()) { // the program's name must be plain text
			return false
		}
		if w.braces && (i == 0 || args[0].text != "git") {
			return false
		}
		all, ok := l.expand(w)
		if !ok || len(args)+len(all) > maxMatches {
			return false
		}
		for _, text := range all {
			args = append(args, arg{text, w.globs})
		}
		l.found.Lists = l.found.Lists || w.globs
	}
	words := texts(args)
	l.found.Calls = append(l.found.Calls, words)
	name := words[0]
	if name == "cd" {
		return l.cd(args[1:])
	}
	p, known := programs()[name]
	if !known || !l.program(name) {
		return false
	}
	for _, v := range p.env {
		if l.env[v] != "" {
			return false
		}
	}
	// A program that only uses a path as a name does not read it.
	before := l.found
	l.found.Reads, l.found.Walks = false, false
	var ok bool
	if p.own != nil {
		ok = p.own(l, args[1:])
	} else {
		ok = l.options(&p, args[1:])
	}
	if !l.found.Reads {
		l.found.Files, l.found.Walks = before.Files, false
	}
	l.found.Reads, l.found.Walks = l.found.Reads || before.Reads, l.found.Walks || before.Walks
	return ok
}

// arg is a word that a program gets.
type arg struct {
	text string
	// globbed says that the word came from a glob. The other matches and their order depend on the
	// shell and its locale. So such a word may only be an operand that is a path.
	globbed bool
}

func texts(args []arg) []string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a.text
	}
	return words
}

// cd adds the folder in which the next programs run. If cd fails, they run in the present one.
func (l *looker) cd(words []arg) bool {
	if len(words) != 1 || words[0].globbed || l.env["CDPATH"] != "" || len(l.dirs) > maxDirs {
		return false
	}
	// Another word could be looked up in the shell's own CDPATH. With .. shells differ after a
	// link.
	to := words[0].text
	if !filepath.IsAbs(to) && to != "." && !strings.HasPrefix(to, "./") || hasDotDot(to) {
		return false
	}
	from := l.dirs
	for _, dir := range from {
		path := to
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		real, err := filepath.EvalSymlinks(path)
		info, statErr := os.Stat(path)
		if err != nil && missing(err) {
			continue // cd fails there
		}
		if err != nil || statErr != nil || !info.IsDir() || !l.inside(real) {
			return false
		}
		l.moved = l.moved || real != filepath.Clean(path)
		l.dirs = append(l.dirs[:len(l.dirs):len(l.dirs)], real)
	}
	return true
}

// hasDotDot reports whether a path has a .. component.
func hasDotDot(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// word is one word of a command as its program gets it.
type word struct {
	text  string
	globs bool   // it has an unquoted * or ?, or a ^, which zsh can be set to read as a pattern
	glob  string // then the pattern, with * also for ?, and with quoted characters after a backslash
	// braces says that it has braces like git's revisions, HEAD@{1}. In zsh they can stand for a
	// set of letters.
	braces bool
}

// wordOf returns what a word stands for, if that is known before the command runs and is the same
// in every shell.
func wordOf(w *syntax.Word) (word, bool) {
	split := *w
	split.Parts = append([]syntax.WordPart{}, w.Parts...)
	syntax.SplitBraces(&split)
	b := wordBuilder{}
	for i := 0; i < len(split.Parts); i++ {
		ok := false
		switch part := split.Parts[i].(type) {
		case *syntax.Lit:
			text := part.Value
			for i+1 < len(split.Parts) { // the parser may split at braces
				next, is := split.Parts[i+1].(*syntax.Lit)
				if !is {
					break
				}
				text += next.Value
				i++
			}
			ok = b.literal(text)
		case *syntax.SglQuoted:
			// Another shell reads \' within quotes as a quote, and zsh can be set to read '' so.
			ok = !part.Dollar && !oddBackslashes(part.Value) && !quotedBefore(split.Parts, i)
			b.quoted(part.Value)
		case *syntax.DblQuoted:
			ok = b.double(part)
		}
		if !ok {
			return word{}, false
		}
	}
	if b.globs && b.tilde { // zsh can be set to read it as: what is before it, without what is after it
		return word{}, false
	}
	return word{b.text.String(), b.globs, b.glob.String(), b.braces}, true
}

func quotedBefore(parts []syntax.WordPart, i int) bool {
	if i == 0 {
		return false
	}
	_, is := parts[i-1].(*syntax.SglQuoted)
	return is
}

func oddBackslashes(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// wordBuilder puts a word together.
type wordBuilder struct {
	text, glob strings.Builder
	globs      bool
	began      bool
	tilde      bool
	braces     bool
	anything   bool // the present part of the path matches anything, whatever follows
}

func (b *wordBuilder) quoted(text string) {
	b.began = true
	b.text.WriteString(text)
	for _, r := range text {
		if b.anything = b.anything && r != '/'; b.anything {
			continue
		}
		if strings.ContainsRune(`\*?[`, r) {
			b.glob.WriteByte('\\')
		}
		b.glob.WriteRune(r)
	}
}

// wild adds a character that makes the word a pattern.
func (b *wordBuilder) wild(r rune) {
	b.globs = true
	b.text.WriteRune(r)
	b.glob.WriteByte('*')
}

// literal adds unquoted text. It refuses characters where they have a meaning in some shell.
func (b *wordBuilder) literal(text string) bool {
	escaped := false
	var last rune
	for i, r := range text {
		switch {
		case escaped:
			if escaped = false; r == '\n' {
				continue
			}
			b.quoted(string(r))
			last = 0
			continue
		case r == '\\':
			escaped = true
			continue
		case r == '*' || r == '?':
			if r == '*' && last == '*' { // in some shells that means every folder below
				return false
			}
			b.wild(r)
		case r == '^' && b.began: // in zsh it can mean everything except what follows
			b.wild(r)
			b.anything = true
		case r == '{' && !strings.HasPrefix(text[i+1:], "}"):
			if last != '@' && last != '^' {
				return false
			}
			b.braces = true
			b.quoted(string(r))
		case strings.ContainsRune("[]()<>|;&$`\"'#!", r):
			if r == '!' && !b.began && text == "!" { // find's word for not
				b.quoted(string(r))
				break
			}
			return false
		case r == '~' && (!b.began || last == '=' || last == ':'), (r == '=' || r == '^' || r == '%') && !b.began:
			return false
		default:
			b.tilde = b.tilde || r == '~'
			b.quoted(string(r))
		}
		b.began = true
		last = r
	}
	return !escaped
}

// double adds the text between double quotes.
func (b *wordBuilder) double(q *syntax.DblQuoted) bool {
	b.began = true
	if q.Dollar {
		return false
	}
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return false
		}
		escaped := false
		for i, r := range lit.Value {
			switch {
			case escaped:
				escaped = false
				if r == '\n' {
					continue
				}
				if !strings.ContainsRune("\\\"$`", r) {
					b.quoted(`\`)
				}
				b.quoted(string(r))
			case r == '\\':
				escaped = true
			case r == '`', r == '$' && i+1 < len(lit.Value) && !strings.ContainsRune("|)", rune(lit.Value[i+1])):
				return false // at an end it stands for itself, for example as the end of a line in a pattern
			default:
				b.quoted(string(r))
			}
		}
		if escaped {
			return false
		}
	}
	return true
}
