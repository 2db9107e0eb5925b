package web

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"cadre/internal/sys/lazyregexp"
)

// The page's modules keep to a few forms of import and export, so that they can be joined without a
// build step. A test joins them.
var (
	imports  = lazyregexp.New(`(?m)^import \{([^}]*)\} from "(\./[\w./-]+)";\n`)
	exports  = lazyregexp.New(`(?m)^export ((?:async )?function|class|const) (\w+)`)
	passed   = lazyregexp.New(`(?m)^export \{([^}]*)\};\n`)
	minified = lazyregexp.New(`export\{([^}]*)\};\s*$`)
)

// bundle returns the module and all modules that it imports as one module, which imports nothing.
func bundle(main string) (string, error) {
	b := bundler{names: map[string]string{}}
	text, err := b.body(main)
	return b.out.String() + text, err
}

type bundler struct {
	out    strings.Builder
	joined int
	names  map[string]string // of the variables that hold what a module exports; "" while it is being joined
}

// module adds the module, after those that it imports, and returns the variable that holds its
// exports.
func (b *bundler) module(name string) (string, error) {
	if is, known := b.names[name]; known {
		if is == "" {
			return "", fmt.Errorf("%s imports itself", name)
		}
		return is, nil
	}
	b.names[name] = ""
	text, err := b.body(name)
	if err != nil {
		return "", err
	}
	var given []string
	for _, one := range exports().FindAllStringSubmatch(text, -1) {
		given = append(given, one[2])
	}
	text = exports().ReplaceAllString(text, "$1 $2")
	for _, list := range []*regexp.Regexp{passed(), minified()} {
		for _, one := range list.FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(one[1], ",") {
				inside, outside, renamed := strings.Cut(strings.TrimSpace(name), " as ")
				if renamed {
					inside = outside + ": " + inside
				}
				given = append(given, inside)
			}
		}
		text = list.ReplaceAllString(text, "")
	}
	b.joined++
	is := fmt.Sprintf("$%d", b.joined)
	b.names[name] = is
	fmt.Fprintf(&b.out, "const %s = (() => {\n%s\nreturn { %s };\n})();\n", is, text, strings.Join(given, ", "))
	return is, nil
}

// body returns the text of a module, with its imports as variables.
func (b *bundler) body(name string) (string, error) {
	data, err := fs.ReadFile(page, path.Join("page", name))
	if err != nil {
		return "", err
	}
	text := imports().ReplaceAllStringFunc(string(data), func(line string) string {
		part := imports().FindStringSubmatch(line)
		from, failed := b.module(path.Join(path.Dir(name), part[2]))
		if failed != nil {
			err = failed
		}
		return fmt.Sprintf("const {%s} = %s;\n", strings.ReplaceAll(part[1], " as ", ": "), from)
	})
	return text, err
}
