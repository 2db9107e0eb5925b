package archtest

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"path"
	"slices"
	"strings"
)

// link is a link in a doc comment: [Name], [Type.Name] or [package.Name].
type link struct {
	in   string // the last element of another package's path; "" for the same package
	name string
	file string
}

// findDocs records what the file declares and what its doc comments link to. It also records the
// doc comments that begin with a name other than the declared one.
func (p *pkg) findDocs(file string, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.document(file, d.Doc, receiver(d), d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				p.findSpec(file, d, s)
			}
		}
	}
	if f.Doc != nil {
		p.findLinks(file, f.Doc)
	}
}

func (p *pkg) findSpec(file string, d *ast.GenDecl, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		text := s.Doc
		if text == nil && !d.Lparen.IsValid() {
			text = d.Doc
		}
		p.document(file, text, "", s.Name)
		for _, field := range fieldsOf(s.Type) {
			for _, name := range field.Names {
				p.declared[s.Name.Name+"."+name.Name] = true
			}
			if len(field.Names) == 0 {
				p.embedded[s.Name.Name] = append(p.embedded[s.Name.Name], typeName(field.Type))
			}
			for _, text := range []*ast.CommentGroup{field.Doc, field.Comment} {
				if text != nil {
					p.findLinks(file, text)
				}
			}
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			p.declared[name.Name] = true
		}
		for _, text := range []*ast.CommentGroup{d.Doc, s.Doc, s.Comment} {
			if text != nil {
				p.findLinks(file, text)
			}
		}
	}
}

// document records a declaration and its doc comment.
func (p *pkg) document(file string, text *ast.CommentGroup, of string, name *ast.Ident) {
	full := name.Name
	if of != "" {
		full = of + "." + full
	}
	p.declared[full] = true
	if text == nil {
		return
	}
	p.findLinks(file, text)
	words := strings.Fields(text.Text())
	for len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	if len(words) > 0 && name.IsExported() && strings.Trim(words[0], ",.:;'s") != strings.Trim(name.Name, "s") {
		p.misnamed = append(p.misnamed, fmt.Sprintf("%s: the comment of %s begins with %q", file, full, words[0]))
	}
}

func (p *pkg) findLinks(file string, text *ast.CommentGroup) {
	parse := comment.Parser{
		LookupPackage: func(name string) (string, bool) { return name, !ast.IsExported(name) },
		LookupSym:     func(string, string) bool { return true },
	}
	note := func(all []comment.Text) {
		for _, t := range all {
			if l, is := t.(*comment.DocLink); is {
				p.links = append(p.links, link{l.ImportPath, strings.TrimPrefix(l.Recv+"."+l.Name, "."), file})
			}
		}
	}
	for _, block := range parse.Parse(text.Text()).Content {
		switch b := block.(type) {
		case *comment.Paragraph:
			note(b.Text)
		case *comment.List:
			for _, item := range b.Items {
				for _, inner := range item.Content {
					note(inner.(*comment.Paragraph).Text) // the parser creates no other type
				}
			}
		}
	}
}

// receiver returns the type name of the method's receiver, or "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	return typeName(d.Recv.List[0].Type)
}

// typeName returns the name of a type or of the type a pointer points to. A type of another package
// keeps its package name.
func typeName(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return typeName(t.X) + "." + t.Sel.Name
	}
	return ""
}

func fieldsOf(t ast.Expr) []*ast.Field {
	switch t := t.(type) {
	case *ast.StructType:
		return t.Fields.List
	case *ast.InterfaceType:
		return t.Methods.List
	}
	return nil
}

// checkDocs checks that the names in doc comments exist. A rename can leave a link that leads
// nowhere.
func checkDocs(packages []*pkg) (breaches []string) {
	ours := map[string][]*pkg{} // by the last element of their paths
	for _, p := range packages {
		ours[path.Base(p.path)] = append(ours[path.Base(p.path)], p)
	}
	// has reports whether one of the packages declares the name. The name may come from an embedded
	// type.
	var has func(in []*pkg, name string) bool
	has = func(in []*pkg, name string) bool {
		return slices.ContainsFunc(in, func(p *pkg) bool {
			of, member, _ := strings.Cut(name, ".")
			return p.declared[name] || slices.ContainsFunc(p.embedded[of], func(t string) bool {
				if in, inner, other := strings.Cut(t, "."); other {
					return has(ours[in], inner+"."+member)
				}
				return has([]*pkg{p}, t+"."+member)
			})
		})
	}
	for _, p := range packages {
		for _, wrong := range p.misnamed {
			breaches = append(breaches, fmt.Sprintf("%s/%s: a doc comment begins with the name that it documents",
				p.path, wrong))
		}
		for _, place := range p.escaped {
			breaches = append(breaches, fmt.Sprintf("%s/%s: a comment has \\t where a tab indents", p.path, place))
		}
		for _, l := range p.links {
			in := ours[l.in]
			if l.in == "" {
				in = []*pkg{p}
			}
			if len(in) > 0 && l.name != "" && !has(in, l.name) {
				breaches = append(breaches, fmt.Sprintf("%s/%s: a doc comment links to [%s], which does not exist",
					p.path, l.file,
					strings.TrimPrefix(l.in+"."+l.name, ".")))
			}
		}
	}
	return breaches
}
