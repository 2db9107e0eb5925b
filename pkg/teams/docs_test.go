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

// names are the exported names of the library: NAME, and TYPE.NAME for fields and methods, those of
// embedded types too.
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

// sketch are the types, functions and methods of the first description.
var sketch = strings.Fields(`Team TeamConfig MemberConfig TeamMember MemberState SessionHandle
	SessionHandle.SendMessage SessionHandle.RequestShutdown SessionHandle.IsAlive SharedTaskList TeamTask TaskStatus
	Mailbox Message TeamManager DisplayMode DelegateModeTools NewTeamManager TeamManager.CreateTeam
	TeamManager.SpawnTeammate TeamManager.ShutdownTeammate TeamManager.SendMessage TeamManager.Broadcast
	TeamManager.Cleanup TeamManager.GetTeam NewSharedTaskList SharedTaskList.Create SharedTaskList.Claim
	SharedTaskList.Complete SharedTaskList.List SharedTaskList.GetUnblocked NewMailbox Mailbox.Send Mailbox.Broadcast
	Mailbox.Receive MemberActive MemberIdle MemberStopped TaskPending TaskInProgress TaskCompleted DisplayAuto
	DisplayInProcess DisplayTmux`)

var quoted = regexp.MustCompile("`([^`]+)`")

// TestMigrating: the page for who comes from the first description has every name of that, and
// names what there is.
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
			t.Errorf("nothing stands for %s", cells[1])
		}
		for _, cell := range cells[2:] {
			for _, name := range quoted.FindAllStringSubmatch(cell, -1) {
				if !ours[name[1]] && name[1] != "$TMUX" {
					t.Errorf("there is no %s; the line: %s", name[1], strings.TrimSpace(line))
				}
			}
		}
	}
	for _, name := range sketch {
		if !theirs[name] {
			t.Errorf("the page says nothing of %s", name)
		}
	}
	if len(theirs) < 60 {
		t.Errorf("only %d names were found on the page", len(theirs))
	}
}

var qualified = regexp.MustCompile(`\bteams\.([A-Z]\w*)`)

// TestReadme: what the README shows of the library is there.
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
			t.Errorf("there is no teams.%s", name[1])
		}
	}
}

// TestEverythingIsDocumented: each exported type, function, method and constant has a comment of
// its own, or is in a group whose constants have one.
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

// TestNoBooleanParameters: a call says what it does; a true says nothing.
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
