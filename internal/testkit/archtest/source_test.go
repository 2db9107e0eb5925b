package archtest

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// pkg is the input of the rules: one package with its files for all platforms.
type pkg struct {
	path      string            // relative to the module: "internal/team"
	comment   string            // the package comment
	imports   map[string]string // imports, each with a file that has it
	tests     map[string]string // the same for test files
	lines     map[string]int    // lines of each non-test file
	testLines map[string]int    // lines of each test file
	time      map[string]string // uses of package time, each with its place
	output    map[use]bool      // uses of functions that write past the sanitizer
	parts     map[string]string // uses of parts that the engine assembles, each with its place
	names     map[string]string // uses of names of this module ("internal/team.Refuse"), each with its place

	declared map[string]bool     // names; methods and fields follow the name of their type
	embedded map[string][]string // types embedded in types
	links    []link              // links in doc comments
	misnamed []string            // doc comments that begin with another name
	escaped  []string            // comments that begin a line with the characters \t in place of a tab

	long  []string     // places of functions with more than maxFunction lines
	units map[use]bool // names that say in which unit a length of time is

	wide         []string // places of lines with more than maxColumn columns
	wideComments []string // places of lines of prose in comments with more than maxCommentColumn columns
}

// use is a name that a file uses.
type use struct{ what, file string }

func (p *pkg) name() string { return strings.TrimPrefix(p.path, "internal/") }

// root returns the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// read returns the packages of the module, without those of nested modules.
func read(t *testing.T) []*pkg {
	t.Helper()
	var found []*pkg
	dir := root(t)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if path != dir {
			if strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") || e.Name() == "testdata" {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return fs.SkipDir
			}
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if p := readPackage(t, path, filepath.ToSlash(name)); p != nil {
			found = append(found, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// readPackage reads the package in a folder. It returns nil if the folder has no Go file.
func readPackage(t *testing.T, dir, name string) *pkg {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &pkg{path: name, imports: map[string]string{}, tests: map[string]string{}, lines: map[string]int{},
		testLines: map[string]int{},
		time:      map[string]string{}, output: map[use]bool{}, parts: map[string]string{}, names: map[string]string{},
		declared: map[string]bool{}, embedded: map[string][]string{}, units: map[use]bool{}}
	seen := false
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && built(t, dir, e.Name()) {
			p.add(t, filepath.Join(dir, e.Name()))
			seen = true
		}
	}
	if !seen {
		return nil
	}
	return p
}

// built reports whether any of the platforms builds the file.
func built(t *testing.T, dir, file string) bool {
	t.Helper()
	return slices.ContainsFunc(platforms, func(platform string) bool {
		c := build.Default
		c.GOOS, c.GOARCH, c.CgoEnabled = platform, "arm64", false
		match, err := c.MatchFile(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		return match
	})
}

func (p *pkg) add(t *testing.T, path string) {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Base(path)
	into := p.imports
	if strings.HasSuffix(base, "_test.go") {
		into = p.tests
	}
	for _, i := range f.Imports {
		into[strings.Trim(i.Path.Value, `"`)] = base
	}
	p.findWidths(t, path, base)
	if strings.HasSuffix(base, "_test.go") {
		p.testLines[base] = files.File(f.FileStart).LineCount()
		return
	}
	p.lines[base] = files.File(f.FileStart).LineCount()
	if f.Doc != nil {
		p.comment += f.Doc.Text()
	}
	p.findTime(files, f)
	p.findOutput(base, f)
	p.findParts(base, f)
	p.findNames(base, f)
	p.findDocs(base, f)
	p.findLong(files, f)
	p.findUnits(base, f)
	for _, group := range f.Comments {
		for _, line := range group.List {
			if strings.HasPrefix(line.Text, `// \t`) {
				p.escaped = append(p.escaped, fmt.Sprintf("%s:%d", base, files.Position(line.Pos()).Line))
			}
		}
	}
}

// findWidths records the lines of a file that are wider than the limits.
func (p *pkg) findWidths(t *testing.T, path, base string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		code := strings.TrimLeft(strings.TrimSuffix(line, "\n"), "\t")
		columns := 4*(strings.IndexFunc(line, func(r rune) bool { return r != '\t' })) + utf8.RuneCountInString(code)
		place := fmt.Sprintf("%s/%s:%d", p.path, base, number)
		if columns > maxColumn {
			p.wide = append(p.wide, place)
		}
		if prose, is := strings.CutPrefix(code, "// "); is && !strings.HasPrefix(prose, " ") &&
			columns > maxCommentColumn {
			p.wideComments = append(p.wideComments, place)
		}
	}
}

// findNames records what the file uses of other packages of this module.
func (p *pkg) findNames(file string, f *ast.File) {
	ours := map[string]string{}
	for _, i := range f.Imports {
		path, is := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/")
		if !is {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		ours[name] = path
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && ours[x.Name] != "" {
				p.names[ours[x.Name]+"."+s.Sel.Name] = file
			}
		}
		return true
	})
}

// findParts records the uses of parts that the engine assembles.
func (p *pkg) findParts(file string, f *ast.File) {
	named := packagesOf(f)
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				part := named[x.Name] + "." + s.Sel.Name
				if slices.ContainsFunc(assembled, func(a assembly) bool { return a.use == part }) {
					p.parts[part] = file
				}
			}
		}
		return true
	})
}

// packagesOf returns the packages that the file imports, by their local names.
func packagesOf(f *ast.File) map[string]string {
	packages := map[string]string{}
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			packages[i.Name.Name] = name
		} else {
			packages[name] = name
		}
	}
	return packages
}

// findTime records the uses of package time, under any import name.
func (p *pkg) findTime(files *token.FileSet, f *ast.File) {
	local := ""
	for _, i := range f.Imports {
		if i.Path.Value == `"time"` {
			local = "time"
			if i.Name != nil {
				local = i.Name.Name
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && local != "" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == local {
				at := files.Position(s.Pos())
				p.time["time."+s.Sel.Name] = filepath.Base(at.Filename)
			}
		}
		return true
	})
}

// pastSanitizer lists, for each package, the names that write to a stream of the process or pass it
// on.
var pastSanitizer = map[string][]string{
	"os":      {"Stdout", "Stderr", "NewFile"},
	"fmt":     {"Print", "Printf", "Println", "Fprint", "Fprintf", "Fprintln"},
	"io":      {"WriteString", "Copy", "CopyN", "CopyBuffer"},
	"syscall": {"Write", "Stdout", "Stderr"},
}

// formatting lists functions whose first argument is a format. It must not contain foreign text.
var formatting = []string{"Printf", "printf", "said"}

// findOutput records what may write past the sanitizer: the names above, string literals with
// control sequences, and formats that are not constants.
func (p *pkg) findOutput(file string, f *ast.File) {
	packages := packagesOf(f)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(pastSanitizer[packages[x.Name]], n.Sel.Name) {
				p.output[use{packages[x.Name] + "." + n.Sel.Name, file}] = true
			}
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.Ident:
				if name = f.Name; name == "print" || name == "println" || name == "protocol" {
					p.output[use{name, file}] = true
				}
			case *ast.SelectorExpr:
				if name = f.Sel.Name; name == "Sequence" {
					p.output[use{"a new control sequence", file}] = true
				}
			}
			if slices.Contains(formatting, name) && len(n.Args) > 0 && !constant(n.Args[0]) {
				p.output[use{name + " with a format that is no constant", file}] = true
			}
		}
		return true
	})
}

// constant reports whether the format is a literal. A wrapper may pass on its own format parameter.
func constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.BinaryExpr:
		return constant(e.X) && constant(e.Y)
	case *ast.Ident:
		return e.Name == "format"
	}
	return false
}

// required returns the modules of go.mod, direct and indirect.
func required(t *testing.T) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var modules []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "require "))
		if len(words) >= 2 && strings.HasPrefix(words[1], "v") && strings.Contains(words[0], ".") {
			modules = append(modules, words[0])
		}
	}
	return modules
}
