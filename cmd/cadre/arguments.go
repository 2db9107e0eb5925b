package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cadre/internal/team"
)

// exactly accepts n arguments.
func exactly(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return counts(c, args, n, n) }
}

// atMost accepts up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return counts(c, args, 0, n) }
}

// atLeast accepts n arguments or more.
func atLeast(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return counts(c, args, n, len(args)) }
}

// counts checks the number of arguments.
func counts(c *cobra.Command, args []string, least, most int) error {
	if len(args) >= least && len(args) <= most {
		return nil
	}
	return miscounted(c, args, least, most)
}

// below returns the name of the command without cadre, because errors begin with cadre's own.
func below(c *cobra.Command) string { return strings.TrimPrefix(c.CommandPath(), "cadre ") }

// miscounted returns the error for too few or too many arguments. It names what is missing, or the
// first argument that is too many.
func miscounted(c *cobra.Command, args []string, least, most int) error {
	call := syntax(c, "[TEAM]")
	if len(args) < least {
		needs := strings.Join(required(c), " and ")
		if len(args) > 0 {
			needs += fmt.Sprintf(", and %q is not enough", strings.Join(args, " "))
		}
		return withWays(usage{fmt.Errorf("%s needs %s: %s", below(c), needs, call)}, helpOf(c))
	}
	surplus := args[most]
	if most == 0 {
		return withWays(usage{fmt.Errorf("%s takes no arguments, and %q is one", below(c), surplus)}, helpOf(c))
	}
	quote := ""
	if places, _ := placeholders(c); len(places) > 0 && slices.Contains(texts, places[len(places)-1]) {
		quote = ". Put a text of several words in quotes"
	}
	return withWays(usage{fmt.Errorf("%q is one argument too many: %s%s", surplus, call, quote)}, helpOf(c))
}

// texts are the arguments in which a person writes words.
var texts = []string{"TEXT", "SUBJECT", "PLAN"}

// required returns the arguments that the command needs, such as REQUEST, or TASK and NAME.
func required(c *cobra.Command) []string {
	use, _, _ := strings.Cut(c.Use, " | ")
	words := strings.Fields(use)[1:]
	var needs []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case strings.HasPrefix(w, "-"), strings.HasPrefix(w, "[-"):
			i++ // its value
		case strings.HasPrefix(w, "["):
		case strings.HasSuffix(w, "..."):
			needs = append(needs, "at least one "+strings.TrimSuffix(w, "..."))
		default:
			needs = append(needs, w)
		}
	}
	return needs
}

// flagMistake returns the error for a flag that cannot be read. It says what the flag takes, where
// the library would show the error of a Go function. If the word before the flag is not
// a command, flagMistake returns the error for that word instead.
func flagMistake(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); len(words) > 0 && c.HasSubCommands() && c.Use == c.Name() {
		return subcommand(c, words)
	}
	if invalid, is := errors.AsType[*pflag.InvalidValueError](err); is {
		f := invalid.GetFlag()
		if of := takes[f.Value.Type()]; of == "" {
			err = fmt.Errorf("--%s %q: %w", f.Name, invalid.GetValue(), errors.Unwrap(invalid))
		} else {
			err = fmt.Errorf("--%s takes %s, not %q", f.Name, of, invalid.GetValue())
		}
	}
	if needs, is := errors.AsType[*pflag.ValueRequiredError](err); is {
		f := needs.GetFlag()
		err = fmt.Errorf("--%s needs %s", f.Name, cmp.Or(takes[f.Value.Type()], "a value: --"+f.Name+" VALUE"))
	}
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
		err = unknownFlag(c, unknown)
	}
	return withWays(usage{err}, helpOf(c))
}

// takes says what a flag of that type takes, where it is not any text.
var takes = map[string]string{"int": wholeNumber, "int64": wholeNumber, "float64": "a number, such as 2.5",
	"amount":   "an amount of US dollars, such as 5, 0.5, $5 or 5 USD",
	"duration": "a duration, such as 30s, 10m or 2h", "bool": "true or false"}

// unknownFlag returns the error for a flag that the command does not have, with the flag that was
// likely meant: also one that was typed with a single dash.
func unknownFlag(c *cobra.Command, err *pflag.NotExistError) error {
	name, typed := err.GetSpecifiedName(), "--"+err.GetSpecifiedName()
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		name, typed = letters, "-"+name
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if near := team.Nearest(name, known); near != "" && len(name) > 2 {
		return fmt.Errorf("unknown flag: %s, did you mean --%s?", typed, near)
	}
	return fmt.Errorf("unknown flag: %s", typed)
}

const wholeNumber = "a whole number, such as 20"

// choice is the run of a command that only has commands below it. It prints its help. With --json
// it refuses, because help is for people.
func (a *app) choice(c *cobra.Command, _ []string) error {
	if !a.json {
		return c.Help()
	}
	var names []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	return withWays(usage{fmt.Errorf("%s needs a command: %s", c.CommandPath(), strings.Join(names, ", "))}, helpOf(c))
}

// subcommand refuses a word that is not a command; a command does not come here.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint, see := "", helpOf(c)
	if !c.HasParent() {
		see.line = "cadre help --all"
	}
	c.SuggestionsMinimumDistance = min(2, len(args[0])/2)
	whole := func(word string) string { return strings.Join(append(called(c)[1:], word), " ") }
	near := c.SuggestionsFor(args[0])
	var same []string // commands that other programs give this name
	for _, below := range c.Commands() {
		if slices.Contains(below.SuggestFor, args[0]) {
			same = append(same, below.Name())
		}
	}
	if len(same) > 0 {
		near = same
	}
	if len(near) == 0 { // two letters that are swapped are two changes to cobra
		var names []string
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				names = append(names, below.Name())
			}
		}
		if one := team.Nearest(args[0], names); one != "" {
			near = []string{one}
		}
	}
	if len(near) > 0 {
		for i := range near {
			near[i] = whole(near[i])
		}
		hint = ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return withWays(usage{fmt.Errorf("%q is not a command%s", whole(args[0]), hint)}, see)
}

// workDir returns the absolute path of a directory that exists.
func workDir(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("the directory %s does not exist. Create it, or name another one with --dir", path)
	case err == nil && !info.IsDir():
		err = fmt.Errorf("%s is not a directory. Name one with --dir", path)
	}
	if err != nil {
		return "", usage{err}
	}
	return path, nil
}
