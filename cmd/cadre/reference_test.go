package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cadre/internal/testkit/golden"
)

// TestReference checks that docs/reference and man match the help texts of the commands.
func TestReference(t *testing.T) {
	pages := referencePages()
	if len(pages) < 60 {
		t.Fatalf("made only %d pages", len(pages))
	}
	var there []string
	for _, pattern := range []string{"docs/reference/*", "man/*"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, found...)
	}
	for _, file := range there {
		name, err := filepath.Rel(top, file)
		if err != nil {
			t.Fatal(err)
		}
		if _, is := pages[filepath.ToSlash(name)]; is {
			continue
		}
		if !golden.Updating() {
			t.Errorf("%s belongs to no command; to remove it: go test ./cmd/cadre -run Reference -update", name)
		} else if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		golden.File(t, filepath.Join(top, name), pages[name])
	}
}

// TestReferenceText checks that both formats keep the help text, and escape what would be markup in
// them.
func TestReferenceText(t *testing.T) {
	const help = "Do <this> to a *file*:\nby name.\n\n  cadre x | y\n\n.hidden -- C:\\x"
	for _, c := range []struct{ what, is, want string }{
		{"markdown", markdown(help),
			"Do \\<this> to a \\*file\\*: by name.\n\n```text\ncadre x | y\n```\n\n.hidden -- C:\\\\x\n"},
		{"roff", roff(help),
			"Do <this> to a *file*: by name.\n.PP\n.EX\n  cadre x | y\n.EE\n.PP\n\\&.hidden \\-\\- C:\\ex\n"},
	} {
		if c.is != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.what, c.is, c.want)
		}
	}
}

// referencePages returns the pages by their paths in the project.
func referencePages() map[string]string {
	root := newApp().root(nil)
	pages := map[string]string{"docs/reference/README.md": referenceIndex(root), "man/cadre.1": manIndex(root)}
	for _, c := range shown(root) {
		pages["docs/reference/"+c.Name()+".md"] = referencePage(c)
		pages["man/cadre-"+c.Name()+".1"] = manPage(c)
	}
	return pages
}

// shown returns the commands below c that help shows.
func shown(c *cobra.Command) (found []*cobra.Command) {
	for _, below := range c.Commands() {
		if !below.Hidden && below.Name() != "help" {
			found = append(found, below)
		}
	}
	return found
}

// acts reports whether the command does something itself. A group of commands only shows its help.
func acts(c *cobra.Command) bool {
	return c.Runnable() && (!c.HasSubCommands() || strings.Contains(c.Use, " "))
}

// TestReferenceUsage checks that the page of a command with subcommands has its own usage, and that
// the page of a group has none.
func TestReferenceUsage(t *testing.T) {
	pages := referencePages()
	for name, want := range map[string]string{"plan": "cadre plan [TEAM] REQUEST [flags]",
		"permit": "cadre permit [TEAM] REQUEST [flags]", "hooks": "cadre hooks [TEAM] [flags]"} {
		for _, page := range []string{"docs/reference/" + name + ".md", "man/cadre-" + name + ".1"} {
			if !strings.Contains(pages[page], "\n"+want+"\n") {
				t.Errorf("%s lacks %q", page, want)
			}
		}
	}
	if strings.Contains(pages["docs/reference/task.md"], "\ncadre task\n") {
		t.Error("the page of task has a usage of its own")
	}
}

// options returns the flags of the command itself.
func options(c *cobra.Command) (found []*pflag.Flag) {
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			found = append(found, f)
		}
	})
	return found
}

// spelled returns the flag as it is typed, its value, and its meaning.
func spelled(f *pflag.Flag) (name, value, meaning string) {
	value, meaning = pflag.UnquoteUsage(f)
	value = cmp.Or(map[string]string{"string": "text", "stringArray": "text", "int": "number",
		"float": "number"}[value], value)
	name = "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
		meaning += " (default " + f.DefValue + ")"
	}
	return name, value, meaning
}

func referenceIndex(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- made from the commands: go test ./cmd/cadre -run Reference -update -->\n\n" +
		"`cadre COMMAND --help` prints the same. The pages are in `man/` as man pages too: `man -l man/cadre-run.1`.\n")
	for _, group := range append(root.Groups(), &cobra.Group{Title: "Others:"}) {
		rows := ""
		for _, c := range shown(root) {
			if c.GroupID == group.ID {
				rows += fmt.Sprintf("| [%s](%s.md) | %s |\n", c.Name(), c.Name(), cell(c.Short))
			}
		}
		if rows != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| command | what it does |\n| --- | --- |\n%s",
				strings.TrimSuffix(group.Title, ":"), rows)
		}
	}
	b.WriteString("\n## For every command\n\n")
	flagTable(&b, slices.Collect(func(yield func(*pflag.Flag) bool) {
		root.PersistentFlags().VisitAll(func(f *pflag.Flag) { yield(f) })
	}))
	return b.String()
}

func referencePage(c *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# " + c.CommandPath() +
		"\n\n<!-- made from the command: go test ./cmd/cadre -run Reference -update -->\n\n")
	referenceSection(&b, c)
	for _, below := range shown(c) {
		b.WriteString("\n## " + below.CommandPath() + "\n\n")
		referenceSection(&b, below)
	}
	return b.String()
}

func referenceSection(b *strings.Builder, c *cobra.Command) {
	b.WriteString(markdown(cmp.Or(c.Long, c.Short+".")))
	if c.Example != "" {
		b.WriteString("\n" + markdown(c.Example))
	}
	if acts(c) {
		b.WriteString("\n```text\n" + c.UseLine() + "\n```\n")
	}
	if flags := options(c); len(flags) > 0 {
		b.WriteString("\n")
		flagTable(b, flags)
	}
}

func flagTable(b *strings.Builder, flags []*pflag.Flag) {
	b.WriteString("| flag | value | meaning |\n| --- | --- | --- |\n")
	for _, f := range flags {
		name, value, meaning := spelled(f)
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, cell(value), cell(meaning))
	}
}

// block is a paragraph of a help text, or preformatted lines.
type block struct {
	verbatim bool
	lines    []string
}

// blocks splits a help text. Indented lines are examples.
func blocks(text string) (found []block) {
	started := false // the last block may still grow
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n ")
		verbatim := strings.HasPrefix(line, "  ")
		switch {
		case line == "":
			started = false
			continue
		case !started || found[len(found)-1].verbatim != verbatim:
			found = append(found, block{verbatim: verbatim})
			started = true
		}
		last := &found[len(found)-1]
		last.lines = append(last.lines, line)
	}
	return found
}

var markup = strings.NewReplacer(`\`, `\\`, "<", `\<`, "*", `\*`, "`", "\\`")

// cell formats a text for a table.
func cell(text string) string {
	return strings.ReplaceAll(markup.Replace(text), "|", `\|`)
}

// markdown formats a help text as Markdown.
func markdown(text string) string {
	var parts []string
	for _, b := range blocks(text) {
		if !b.verbatim {
			parts = append(parts, wrapped(markup.Replace(strings.Join(b.lines, " ")), 120))
			continue
		}
		example := "```text\n"
		for _, line := range b.lines {
			example += strings.TrimPrefix(line, "  ") + "\n"
		}
		parts = append(parts, example+"```\n")
	}
	return strings.Join(parts, "\n")
}

// wrapped breaks the text into lines of at most that many bytes, if its words are short enough.
func wrapped(text string, most int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > most:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String() + "\n"
}

func manIndex(root *cobra.Command) string {
	var b strings.Builder
	manHead(&b, "cadre", root.Short)
	b.WriteString(".SH SYNOPSIS\n.B cadre\nCOMMAND [flags]\n.SH DESCRIPTION\n" + roff(root.Long) + ".SH COMMANDS\n")
	for _, c := range shown(root) {
		fmt.Fprintf(&b, ".TP\n.BR cadre\\-%s (1)\n%s", roffWord(c.Name()), roff(c.Short))
	}
	return b.String()
}

func manPage(c *cobra.Command) string {
	var b strings.Builder
	manHead(&b, "cadre-"+c.Name(), c.Short)
	b.WriteString(".SH SYNOPSIS\n")
	for _, one := range append([]*cobra.Command{c}, shown(c)...) {
		if acts(one) {
			b.WriteString(".PP\n" + roff(one.UseLine()))
		}
	}
	b.WriteString(".SH DESCRIPTION\n" + roff(cmp.Or(c.Long, c.Short+".")))
	manOptions(&b, ".SH OPTIONS\n", c)
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + roff(c.Example))
	}
	for _, below := range shown(c) {
		b.WriteString(".SH " + strings.ToUpper(roffWord(below.CommandPath())) + "\n" +
			roff(cmp.Or(below.Long, below.Short+".")))
		manOptions(&b, "", below)
		if below.Example != "" {
			b.WriteString(".PP\n" + roff(below.Example))
		}
	}
	b.WriteString(".SH SEE ALSO\n.BR cadre (1)\n")
	return b.String()
}

func manHead(b *strings.Builder, name, short string) {
	fmt.Fprintf(b,
		".\\\" made from the commands: go test ./cmd/cadre -run Reference -update\n.TH %s 1 \"\" cadre cadre\n"+
			".SH NAME\n%s \\- %s", strings.ToUpper(roffWord(name)), roffWord(name), roff(short))
}

func manOptions(b *strings.Builder, title string, c *cobra.Command) {
	flags := options(c)
	if len(flags) == 0 {
		return
	}
	b.WriteString(title)
	for _, f := range flags {
		name, value, meaning := spelled(f)
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR %s\n%s", roffWord(name), roffWord(value), roff(meaning))
	}
}

// roffWord escapes a text within a line of a man page.
func roffWord(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
}

// roff formats a help text as lines of a man page.
func roff(text string) string {
	line := func(text string) string {
		text = roffWord(text)
		if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
			text = `\&` + text
		}
		return text + "\n"
	}
	var parts []string
	for _, b := range blocks(text) {
		if !b.verbatim {
			parts = append(parts, line(strings.Join(b.lines, " ")))
			continue
		}
		example := ".EX\n"
		for _, one := range b.lines {
			example += line(one)
		}
		parts = append(parts, example+".EE\n")
	}
	return strings.Join(parts, ".PP\n")
}
