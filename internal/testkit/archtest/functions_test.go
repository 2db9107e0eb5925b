package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
)

// findLong records the functions with more than maxFunction lines.
func (p *pkg) findLong(files *token.FileSet, f *ast.File) {
	for _, d := range f.Decls {
		fn, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		begins, ends := files.Position(fn.Pos()), files.Position(fn.End())
		if n := ends.Line - begins.Line + 1; n > maxFunction {
			p.long = append(p.long, fmt.Sprintf("%s/%s:%d (%s, %d lines)", p.path, filepath.Base(begins.Filename),
				begins.Line, fn.Name.Name, n))
		}
	}
}

// unitOfTime matches names that say in which unit a length of time is.
var unitOfTime = regexp.MustCompile(`^(ms|millis|milliseconds|seconds|secs|micros|nanos|minutes|hours)$|` +
	`(Millis|Milliseconds|Seconds|Secs|Micros|Microseconds|Nanos|Nanoseconds|Minutes|Hours|MS|Ms)([A-Z]|$)|` +
	`^(millis|seconds|secs|micros|nanos|minutes|hours|ms)[A-Z]`)

// findUnits records the fields, types, parameters, constants and variables of packages whose names
// say in which unit a length of time is. Functions may say it: they convert, as time.Duration's
// methods do.
func (p *pkg) findUnits(file string, f *ast.File) {
	add := func(names ...*ast.Ident) {
		for _, name := range names {
			if unitOfTime.MatchString(name.Name) {
				p.units[use{name.Name, file}] = true
			}
		}
	}
	for _, d := range f.Decls {
		if d, is := d.(*ast.GenDecl); is {
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					add(s.Names...)
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if n, is := n.(*ast.Field); is {
			if _, method := n.Type.(*ast.FuncType); !method {
				add(n.Names...)
			}
		}
		return true
	})
}

// checkFunctions checks how many functions are longer than the limit.
func checkFunctions(packages []*pkg) (breaches []string) {
	var long []string
	for _, p := range packages {
		long = append(long, p.long...)
	}
	if len(long) > maxLongFunctions {
		breaches = append(breaches, fmt.Sprintf("%d functions have more than %d lines, and %d may: a reader holds one "+
			"screen in mind. Give the steps of a new one names of their own. They are %v", len(long), maxFunction,
			maxLongFunctions, long))
	}
	if len(packages) > 1 && len(long) < maxLongFunctions {
		breaches = append(breaches, fmt.Sprintf("%d functions have more than %d lines: lower maxLongFunctions, so "+
			"that no new one comes in", len(long), maxFunction))
	}
	return breaches
}

// checkUnits checks that the unit of a length of time is in its type, not in its name.
func checkUnits(packages []*pkg) (breaches []string) {
	var found []unit
	for _, p := range packages {
		for u := range p.units {
			is := unit{pkg: p.path, name: u.what}
			found = append(found, is)
			if !slices.ContainsFunc(mayNameUnit, is.same) {
				breaches = append(breaches, fmt.Sprintf("%s declares %s (%s): a number and its unit come apart, and "+
					"time.Duration keeps them together. JSON shows a team.Duration in milliseconds", p.path, u.what,
					u.file))
			}
		}
	}
	for _, u := range mayNameUnit {
		if len(packages) > 1 && !slices.ContainsFunc(found, u.same) {
			breaches = append(breaches, fmt.Sprintf("the plan permits %s to declare %s, which does not exist", u.pkg,
				u.name))
		}
	}
	return breaches
}
