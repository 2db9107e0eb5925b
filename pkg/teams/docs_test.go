package teams_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// names returns the exported names of the library: NAME, and TYPE.NAME for fields and methods,
// including those of embedded types.
func names(t *testing.T) map[string]bool {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), source,
		func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	all, embeds := map[string]bool{}, map[string][]string{}
	base := func(e ast.Expr) string {
		if star, is := e.(*ast.StarExpr); is {
			e = star.X
		}
		if id, is := e.(*ast.Ident); is {
			return id.Name
		}
		return ""
	}
	for _, file := range packages["teams"].Files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = base(d.Recv.List[0].Type) + "." + name
				}
				all[name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, id := range spec.Names {
							all[id.Name] = true
						}
					case *ast.TypeSpec:
						all[spec.Name.Name] = true
						var fields *ast.FieldList
						switch of := spec.Type.(type) {
						case *ast.StructType:
							fields = of.Fields
						case *ast.InterfaceType:
							fields = of.Methods
						}
						if fields == nil {
							continue
						}
						for _, f := range fields.List {
							for _, id := range f.Names {
								all[spec.Name.Name+"."+id.Name] = true
							}
							if len(f.Names) == 0 {
								embeds[spec.Name.Name] = append(embeds[spec.Name.Name], base(f.Type))
							}
						}
					}
				}
			}
		}
	}
	for outer, inner := range embeds {
		for name := range all {
			if of, member, is := strings.Cut(name, "."); is && slices.Contains(inner, of) {
				all[outer+"."+member] = true
			}
		}
	}
	return all
}

// sketch lists the types, functions and methods of the first description.
var sketch = strings.Fields(`Team TeamConfig MemberConfig TeamMember MemberState SessionHandle
	SessionHandle.SendMessage SessionHandle.RequestShutdown SessionHandle.IsAlive SharedTaskList TeamTask TaskStatus
	Mailbox Message TeamManager DisplayMode DelegateModeTools NewTeamManager TeamManager.CreateTeam
	TeamManager.SpawnTeammate TeamManager.ShutdownTeammate TeamManager.SendMessage TeamManager.Broadcast
	TeamManager.Cleanup TeamManager.GetTeam NewSharedTaskList SharedTaskList.Create SharedTaskList.Claim
	SharedTaskList.Complete SharedTaskList.List SharedTaskList.GetUnblocked NewMailbox Mailbox.Send Mailbox.Broadcast
	Mailbox.Receive MemberActive MemberIdle MemberStopped TaskPending TaskInProgress TaskCompleted DisplayAuto
	DisplayInProcess DisplayTmux`)

var quoted = regexp.MustCompile("`([^`]+)`")

// TestMigrating checks the page for readers of the first description. It has every name from there,
// and the names that it gives exist.
func TestMigrating(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(source, "..", "..", "docs", "migrating.md"))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := names(t), map[string]bool{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 || strings.Contains(line, "---") {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			theirs[name[1]] = true
		}
		stand := quoted.FindAllStringSubmatch(cells[2], -1)
		if len(stand) == 0 && strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			t.Errorf("the page gives no replacement for %s", cells[1])
		}
		for _, cell := range cells[2:] {
			for _, name := range quoted.FindAllStringSubmatch(cell, -1) {
				if !ours[name[1]] && name[1] != "$TMUX" {
					t.Errorf("%s does not exist; the line: %s", name[1], strings.TrimSpace(line))
				}
			}
		}
	}
	for _, name := range sketch {
		if !theirs[name] {
			t.Errorf("the page lacks %s", name)
		}
	}
	if len(theirs) < 60 {
		t.Errorf("found only %d names on the page", len(theirs))
	}
}

var qualified = regexp.MustCompile(`\bteams\.([A-Z]\w*)`)

// TestReadme checks that the names of the library in the README exist.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(source, "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	ours := names(t)
	found := qualified.FindAllStringSubmatch(string(page), -1)
	if len(found) < 5 {
		t.Fatalf("the README has %d names of the library", len(found))
	}
	for _, name := range found {
		if !ours[name[1]] {
			t.Errorf("teams.%s does not exist", name[1])
		}
	}
}

// TestEverythingIsDocumented checks that each exported type, function, method and constant has a
// comment. A group of constants may share one.
func TestEverythingIsDocumented(t *testing.T) {
	packages, err := parser.ParseDir(token.NewFileSet(), source,
		func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for path, file := range packages["teams"].Files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || ast.IsExported(receiver(d))) {
					t.Errorf("%s: %s has no comment", path, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					of, is := spec.(*ast.TypeSpec)
					if !is || !of.Name.IsExported() {
						continue
					}
					if d.Doc == nil && of.Doc == nil {
						t.Errorf("%s: type %s has no comment", path, of.Name.Name)
					}
				}
			}
		}
	}
}

// TestNoBooleanParameters checks that no function has a boolean parameter: at the call, true
// explains nothing.
func TestNoBooleanParameters(t *testing.T) {
	packages, err := parser.ParseDir(token.NewFileSet(), source,
		func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	for path, file := range packages["teams"].Files {
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || !f.Name.IsExported() || f.Recv != nil && !ast.IsExported(receiver(f)) {
				continue
			}
			for _, param := range f.Type.Params.List {
				if of, is := param.Type.(*ast.Ident); is && of.Name == "bool" {
					t.Errorf("%s: %s has a boolean parameter", path, f.Name.Name)
				}
			}
		}
	}
}

func receiver(d *ast.FuncDecl) string {
	of := d.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	return of.(*ast.Ident).Name
}
