package hook

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"cadre/internal/sys/lazyregexp"
	"cadre/internal/sys/regularfile"
)

// Named lists the files and programs that a command line names, as far as this is known before it
// runs.
type Named struct {
	Files   []string `json:"files"`   // regular files of the project, relative to it
	Folders []string `json:"folders"` // folders of the project; their content is not covered
	// pipes and similar files in the project, and dangling links, each with its kind; their content
	// cannot be known
	Special  []string `json:"special"`
	Programs []string `json:"programs"` // programs outside the project; the files that they read by themselves are not covered
	Unknown  []string `json:"unknown"`  // words whose value is known only when the command runs
}

// namedBy returns the files, folders and programs that a command in dir names, too much rather than
// too little. Each word, and each part of a word that could be a path, is looked up in the project.
// It is also looked up in each folder of the project that the command names. The meaning of the
// word for its program does not matter.
func namedBy(dir, command string) Named {
	r := &naming{dir: dir, words: map[string]bool{}, values: map[string][]string{}, programs: map[string]bool{},
		unknown: map[string]bool{}}
	r.shell(command, 0)
	files, folders, special := r.resolve()
	named := Named{Files: files, Folders: folders, Special: special, Programs: slices.Sorted(maps.Keys(r.programs)),
		Unknown: slices.Sorted(maps.Keys(r.unknown))}
	for _, list := range []*[]string{&named.Files, &named.Folders, &named.Special, &named.Programs, &named.Unknown} {
		*list = append([]string{}, *list...) // empty is [] in JSON, not null
	}
	return named
}

// naming collects the names in a command.
type naming struct {
	dir      string
	words    map[string]bool     // every text that may name a file
	values   map[string][]string // the values that the command assigns to variables
	programs map[string]bool
	unknown  map[string]bool
}

// These are the limits of the search. No ordinary hook comes near them.
const (
	maxNesting = 8    // commands nested in words of commands
	maxTexts   = 64   // values of one word
	maxMatches = 4096 // matches of one pattern
)

// shell collects the names in a text that a shell may read.
func (r *naming) shell(text string, depth int) {
	if depth > maxNesting {
		r.unknown[text] = true
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		if depth == 0 {
			r.unknown[text] = true // the shell may know better
		}
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool { // first the values, which may be used before they are given, in a loop
		if a, ok := n.(*syntax.Assign); ok && a.Name != nil && a.Value != nil {
			texts, _ := r.texts(a.Value)
			r.values[a.Name.Value] = append(r.values[a.Name.Value], texts...)
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				r.program(n.Args[0])
			}
		case *syntax.Word:
			r.word(n, text, depth)
		}
		return true
	})
}

// program records a called program that is not a file of the project. Builtins of the shell do not
// count.
func (r *naming) program(w *syntax.Word) {
	name := w.Lit()
	if _, isFile := r.inside(r.dir, name); name == "" || isFile || slices.Contains(builtins, name) {
		return
	}
	r.programs[name] = true
}

var builtins = []string{"[", ":", "break", "cd", "continue", "echo", "exit", "export", "false", "local", "printf",
	"pwd", "read",
	"return", "set", "shift", "test", "trap", "true", "ulimit", "umask", "unset", "wait"}

func (r *naming) word(w *syntax.Word, whole string, depth int) {
	texts, known := r.texts(w)
	if !known {
		var b strings.Builder
		syntax.NewPrinter().Print(&b, w)
		r.unknown[b.String()] = true
	}
	for _, text := range texts {
		r.words[text] = true
		if text != whole && strings.ContainsAny(text, " \t\n;&|<>()`$") {
			r.shell(text, depth+1) // as sh -c, eval, env -S, or a here-document would
		}
	}
}

// texts returns the values that a word can have. known is false if a part has no known value and
// was left out.
func (r *naming) texts(w *syntax.Word) (texts []string, known bool) {
	split := *w // the walk does not know what braces are split into
	syntax.SplitBraces(&split)
	return r.parts(split.Parts, false)
}

func (r *naming) parts(parts []syntax.WordPart, quoted bool) (texts []string, known bool) {
	texts, known = []string{""}, true
	then := func(next []string) {
		var all []string
		for _, a := range texts {
			for _, b := range next {
				if len(all) < maxTexts {
					all = append(all, a+b)
				} else {
					known = false
				}
			}
		}
		texts = all
	}
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			then([]string{unescape(part.Value, quoted)})
		case *syntax.SglQuoted:
			if part.Dollar && strings.Contains(part.Value, `\`) {
				known = false
			}
			then([]string{part.Value})
		case *syntax.DblQuoted:
			inner, ok := r.parts(part.Parts, true)
			known = known && ok
			then(inner)
		case *syntax.BraceExp:
			if part.Sequence {
				then([]string{"*"})
				continue
			}
			var any []string
			for _, e := range part.Elems {
				inner, ok := r.parts(e.Parts, quoted)
				known = known && ok
				any = append(any, inner...)
			}
			then(any)
		case *syntax.ParamExp:
			values, ok := r.value(part)
			known = known && ok
			then(values)
		default: // what a command prints, a sum, a pattern of patterns
			known = false
			then([]string{"*"})
		}
	}
	return texts, known
}

// value returns the values that a variable may have: the project's folder, or what the command
// itself assigns to it.
func (r *naming) value(p *syntax.ParamExp) (values []string, known bool) {
	plain := p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil && !p.Length && !p.Excl && !p.Width
	switch name := p.Param.Value; {
	case name == "CLAUDE_PROJECT_DIR" || name == "CADRE_PROJECT_DIR" || name == "PWD":
		return []string{r.dir}, plain
	case len(r.values[name]) > 0:
		return r.values[name][:min(len(r.values[name]), maxTexts)], plain
	}
	return []string{"*"}, false
}

func unescape(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("\\\"$`\n", text[i+1]) >= 0) {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

var pathRuns = lazyregexp.New(`[^\s"'\x60\\;&|<>(){}$=:,@!?*\[\]]+`)

// candidates returns the parts of a text that could be a path: the whole text, and what follows an
// option's letter or one of =:,@. A program that is passed as a text also has paths, so each run of
// characters that are usual in paths counts too.
func candidates(text string) []string {
	all := []string{text}
	if len(text) > 2 && text[0] == '-' {
		all = append(all, text[2:])
	}
	for i := range len(text) {
		if strings.IndexByte("=:,@", text[i]) >= 0 {
			rest := text[i+1:]
			all = append(all, rest)
			if end := strings.IndexAny(rest, ":,"); end >= 0 {
				all = append(all, rest[:end])
			}
		}
	}
	for rest := text; ; { // an unknown folder may be the one where the command runs
		_, after, more := strings.Cut(rest, "*/")
		if !more {
			break
		}
		all, rest = append(all, after), after
	}
	return append(all, pathRuns().FindAllString(text, -1)...)
}

// resolve looks the words up in the project.
func (r *naming) resolve() (files, folders, special []string) {
	named := map[string]bool{}
	for word := range r.words {
		for _, c := range candidates(word) {
			named[strings.TrimRight(c, "/")] = true
		}
	}
	bases, seen := []string{r.dir}, map[string]bool{r.dir: true}
	found, strange := map[string]bool{}, map[string]bool{}
	for i := 0; i < len(bases); i++ { // folders that are named from folders come in on the way
		for name := range named {
			for _, path := range r.matches(bases[i], name) {
				rel, inside := r.below(bases[i], path)
				if !inside {
					continue
				}
				info, err := os.Stat(path)
				switch {
				case err != nil:
					if link, err := os.Lstat(path); err == nil && link.Mode()&fs.ModeSymlink != 0 {
						strange[rel+" (a link that leads to nothing)"] = true
					}
				case info.Mode().IsRegular():
					found[rel] = true
				case info.IsDir() && !seen[path] && len(bases) < maxTexts:
					seen[path] = true
					bases = append(bases, path)
					folders = append(folders, rel)
				case !info.IsDir():
					strange[rel+" ("+regularfile.Kind(info.Mode())+")"] = true
				}
			}
		}
	}
	slices.Sort(folders)
	return slices.Sorted(maps.Keys(found)), folders, slices.Sorted(maps.Keys(strange))
}

// matches returns the paths in a folder that a name stands for.
func (r *naming) matches(base, name string) []string {
	if name == "" || name == "." || name == ".." || strings.Trim(name, "*") == "" {
		return nil
	}
	folder := base
	if rest, ok := strings.CutPrefix(name, r.dir+"/"); ok {
		folder, name = r.dir, rest
	}
	path := filepath.Clean(name)
	if !filepath.IsAbs(name) {
		path = filepath.Join(folder, name)
	}
	if !strings.ContainsAny(name, "*?[") {
		return []string{path}
	}
	pattern := filepath.Clean(name)
	if !filepath.IsAbs(name) {
		pattern = filepath.Join(literally(folder), name)
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return []string{path}
	}
	return append(paths[:min(len(paths), maxMatches)], path)
}

// literally returns the pattern that matches path alone, even if it has characters of patterns in
// it.
func literally(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// inside returns the path of an existing file of the project, relative to the project.
func (r *naming) inside(base, path string) (string, bool) {
	rel, ok := r.below(base, path)
	if !ok {
		return "", false
	}
	_, err := os.Stat(filepath.Join(r.dir, rel))
	return rel, err == nil
}

// below returns a path in the project, relative to the project.
func (r *naming) below(base, path string) (string, bool) {
	if path == "" {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	rel, err := filepath.Rel(r.dir, path)
	return rel, err == nil && filepath.IsLocal(rel) && rel != "."
}
