package readonly

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cadre/internal/sys/lazyregexp"
)

// gitCommand lists the options of a git command that only read.
type gitCommand struct {
	flags  string // letters of options without a value
	bundle bool   // short options may stand together
	values string // letters of options with a value, in the same word or the next
	joined string // letters of options whose value, if there is one, is in the same word
	// long options: = at the end marks those with a value, in the same word or the next; [=] those
	// with an optional value in the same word
	long  []string
	diffs bool     // it takes the options for showing differences
	tree  bool     // it compares with files of the worktree, or writes the index
	lists []string // of these options one is required if there are operands
	reads bool     // it shows the content of files
	shows []string // options that show the content of files; of the options for differences all but gitNames
}

// gitCommands are the commands that only read. Abbreviated options are not accepted. Neither are
// options that write (--output), run a program (--ext-diff, --textconv, --show-signature), or read
// a file from elsewhere (--no-index, --contents, -O, -S of blame).
var gitCommands = sync.OnceValue(func() map[string]gitCommand {
	return map[string]gitCommand{
		"status": {flags: "sbvz", bundle: true, joined: "u", tree: true, shows: []string{"-v", "--verbose"},
			long: []string{"--short", "--branch", "--show-stash", "--porcelain[=]", "--long", "--verbose",
				"--untracked-files[=]", "--ignored[=]", "--column[=]", "--no-column",
				"--ahead-behind", "--no-ahead-behind", "--renames", "--no-renames", "--find-renames[=]", "--null"}},
		"log":  {diffs: true, values: "L", long: gitHistory, shows: []string{"-L", "--cc", "--dd"}},
		"show": {diffs: true, long: gitHistory, reads: true},
		"diff": {diffs: true, tree: true, reads: true, long: []string{"--cached", "--staged", "--merge-base"}},
		"branch": {flags: "arvq", bundle: true, lists: []string{"--list", "--contains", "--no-contains", "--merged",
			"--no-merged", "--points-at"},
			long: []string{"--all", "--remotes", "--list", "--verbose", "--show-current", "--contains[=]",
				"--no-contains[=]", "--merged[=]", "--no-merged[=]", "--points-at=", "--sort=",
				"--format=", "--color[=]", "--no-color", "--column[=]", "--no-column", "--abbrev[=]", "--no-abbrev",
				"--ignore-case"}},
		"rev-parse": {flags: "q",
			long: []string{"--show-toplevel", "--show-prefix", "--show-cdup", "--git-dir", "--absolute-git-dir",
				"--git-common-dir", "--is-inside-work-tree", "--is-inside-git-dir",
				"--is-bare-repository", "--is-shallow-repository", "--show-object-format[=]", "--abbrev-ref[=]",
				"--symbolic", "--symbolic-full-name", "--short[=]", "--verify", "--quiet",
				"--revs-only", "--no-revs", "--flags", "--no-flags", "--all", "--branches[=]", "--tags[=]",
				"--remotes[=]", "--default="}},
		"ls-files": {flags: "cdmoiskutvz", bundle: true, values: "x", tree: true,
			long: []string{"--cached", "--deleted", "--modified", "--others", "--ignored", "--stage", "--directory",
				"--no-empty-directory", "--unmerged", "--killed", "--deduplicate",
				"--exclude=", "--exclude-standard", "--error-unmatch", "--full-name", "--abbrev[=]", "--eol"}},
		"blame": {flags: "wbflnpstecM", joined: "C", values: "L", tree: true, reads: true,
			long: []string{"--porcelain", "--line-porcelain", "--show-email", "--show-name", "--show-number",
				"--show-stats", "--root", "--date=", "--since=", "--abbrev=", "--color-lines",
				"--color-by-age", "--minimal", "--first-parent", "--reverse", "--no-progress"}},
	}
})

// gitHistory are long options of log and show.
var gitHistory = []string{"--oneline", "--max-count=", "--skip=", "--since=", "--after=", "--until=", "--before=",
	"--author=", "--committer=", "--grep=", "--invert-grep",
	"--all-match", "--regexp-ignore-case", "--basic-regexp", "--extended-regexp", "--fixed-strings", "--perl-regexp",
	"--merges", "--no-merges", "--min-parents=", "--max-parents=",
	"--first-parent", "--not", "--all", "--branches[=]", "--tags[=]", "--remotes[=]", "--glob=", "--exclude=",
	"--reflog", "--walk-reflogs", "--merge", "--boundary",
	"--simplify-by-decoration", "--full-history", "--dense", "--sparse", "--simplify-merges", "--ancestry-path",
	"--date-order", "--author-date-order", "--topo-order", "--reverse",
	"--no-walk", "--format=", "--pretty[=]", "--abbrev-commit", "--no-abbrev-commit", "--expand-tabs[=]", "--no-notes",
	"--relative-date", "--date=", "--parents", "--children",
	"--left-right", "--left-only", "--right-only", "--cherry-pick", "--cherry-mark", "--cherry", "--graph",
	"--no-graph", "--decorate[=]", "--no-decorate", "--decorate-refs=",
	"--decorate-refs-exclude=", "--source", "--follow", "--full-diff", "--log-size", "--use-mailmap", "--no-mailmap",
	"--cc", "--no-diff-merges",
	"--count", "--show-pulls", "--dd"}

// gitDiffs are the options for showing differences. Their letters stand alone. The second group may
// have a value in the same word.
const (
	gitDiffFlags  = "pusRabwWzimcgEFPt0123456789"
	gitDiffJoined = "UMCBDlSGnX"
)

var gitDiffs = []string{"--patch", "--no-patch", "--unified=", "--raw", "--patch-with-raw", "--indent-heuristic",
	"--no-indent-heuristic", "--minimal", "--patience", "--histogram",
	"--diff-algorithm=", "--anchored=", "--stat[=]", "--compact-summary", "--numstat", "--shortstat", "--dirstat[=]",
	"--cumulative", "--summary", "--patch-with-stat", "--name-only",
	"--name-status", "--color[=]", "--no-color", "--color-moved[=]", "--no-color-moved", "--word-diff[=]",
	"--word-diff-regex=", "--color-words[=]", "--no-renames", "--check", "--full-index",
	"--binary", "--abbrev[=]", "--break-rewrites[=]", "--find-renames[=]", "--find-copies[=]", "--find-copies-harder",
	"--irreversible-delete", "--diff-filter=", "--pickaxe-all",
	"--pickaxe-regex", "--relative[=]", "--no-relative", "--text", "--ignore-cr-at-eol", "--ignore-space-at-eol",
	"--ignore-space-change", "--ignore-all-space", "--ignore-blank-lines",
	"--inter-hunk-context=", "--function-context", "--exit-code", "--quiet", "--no-ext-diff", "--no-textconv",
	"--ignore-submodules[=]", "--src-prefix=", "--dst-prefix=",
	"--no-prefix", "--default-prefix", "--line-prefix=", "--ita-invisible-in-index"}

// gitNames are those of these options that show no content of files.
var gitNames = []string{"--no-patch", "--raw", "--stat", "--compact-summary", "--numstat", "--shortstat", "--dirstat",
	"--cumulative", "--summary", "--name-only", "--name-status", "--color", "--no-color", "--no-renames", "--abbrev",
	"--full-index", "--find-renames", "--find-copies", "--find-copies-harder", "--diff-filter", "--relative",
	"--no-relative",
	"--ignore-submodules", "--no-ext-diff", "--no-textconv", "-s", "-z", "-t", "-M", "-C", "-B", "-l", "-X",
	"-n", "-i", "-g", "-E", "-F", "-P"} // the last ones select commits

// git checks the words of a git command.
func git(l *looker, args []arg) bool {
	words := args
	defer func(dirs []string) { l.dirs = dirs }(l.dirs)
	paged := true
	for len(words) > 0 && strings.HasPrefix(words[0].text, "-") {
		switch words[0].text {
		case "--no-pager", "-P":
			paged = false
		case "--no-optional-locks", "--literal-pathspecs":
		case "-C":
			if len(words) < 2 || words[1].globbed || !l.into(words[1].text) {
				return false
			}
			words = words[1:]
		default: // -c, --git-dir, --work-tree, --exec-path, --config-env …
			return false
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	if l.env["GIT_PAGER"] != "" { // it overrides the configuration
		paged = false
	}
	name := words[0].text
	c, known := gitCommands()[name]
	if !known || !gitSurroundings(l.env) {
		return false
	}
	operands, options, ok := c.sort(words[1:])
	if !ok || name == "branch" && len(operands) > 0 &&
		!slices.ContainsFunc(options, func(o string) bool { return slices.Contains(c.lists, o) }) {
		return false
	}
	for _, dir := range l.dirs {
		r, ok := l.repository(dir)
		if !ok || !r.harmless(name, paged) || c.tree && !r.treeHarmless() {
			return false
		}
		l.found.Files = append(l.found.Files, r.top)
		for _, o := range operands {
			if hasDotDot(o) || !l.path(o) { // a revision counts as a path that does not exist
				return false
			}
		}
	}
	l.found.Reads = c.reads || slices.ContainsFunc(options, c.shown)
	l.found.Walks, l.found.Lists = true, true
	return true
}

// shown reports whether an option may make the command show the content of files.
func (c *gitCommand) shown(option string) bool {
	if slices.Contains(c.shows, option) {
		return true
	}
	own := slices.ContainsFunc(c.long, func(o string) bool { return strings.TrimRight(o, "[=]") == option })
	return c.diffs && !own && !slices.Contains(gitNames, option)
}

// into changes where git looks for its repository.
func (l *looker) into(word string) bool {
	if word == "" || word == "/dev/null" || !l.path(word) {
		return false
	}
	var dirs []string
	for _, dir := range l.dirs {
		if !filepath.IsAbs(word) {
			dir += "/" + word
		} else {
			dir = word
		}
		real, ok := resolve(dir)
		if !ok {
			return false
		}
		dirs = append(dirs, real)
	}
	l.dirs = dirs
	return true
}

// sort separates options, which it returns without their values, from operands. ok is false if an
// option is not known.
func (c *gitCommand) sort(words []arg) (operands, options []string, ok bool) {
	for i := 0; i < len(words); {
		word, rest := words[i], words[i+1:]
		w := word.text
		i++
		switch {
		case w == "--":
			if c.lists != nil {
				return nil, nil, false
			}
			return append(operands, texts(rest)...), options, true
		case len(w) < 2 || w[0] != '-':
			operands = append(operands, w)
			continue
		case word.globbed:
			return nil, nil, false
		case c.diffs && w[1] != '-' && strings.Trim(w[1:], "0123456789") == "":
			continue
		}
		look := c.shortOptions
		if strings.HasPrefix(w, "--") {
			look = c.longOption
		}
		names, taken, ok := look(w, rest)
		if !ok {
			return nil, nil, false
		}
		options = append(options, names...)
		i += taken
	}
	return operands, options, true
}

// longOption returns the full name of an option, and how many of the following words are its value.
// ok is false for an option that is not known to be harmless.
func (c *gitCommand) longOption(w string, behind []arg) (names []string, taken int, ok bool) {
	long := c.long
	if c.diffs {
		long = append(slices.Clip(long), gitDiffs...)
	}
	name, text, has := strings.Cut(w, "=")
	switch {
	case asksSignature(text):
		return nil, 0, false
	case has && (slices.Contains(long, name+"=") || slices.Contains(long, name+"[=]")):
	case !has && (slices.Contains(long, name) || slices.Contains(long, name+"[=]")):
	case !has && slices.Contains(long, name+"=") && len(behind) > 0:
		if taken++; behind[0].globbed || asksSignature(behind[0].text) {
			return nil, 0, false
		}
	default:
		return nil, 0, false
	}
	return []string{name}, taken, true
}

// shortOptions does the same as longOption for a word of one-letter options.
func (c *gitCommand) shortOptions(w string, behind []arg) (names []string, taken int, ok bool) {
	flags, joined := c.flags, c.joined
	if c.diffs {
		flags, joined = flags+gitDiffFlags, joined+gitDiffJoined
	}
	letter := w[1:2]
	switch {
	case strings.Contains(joined, letter): // it may have no value, so the next word is either an operand or its value
		if w == "-S" || w == "-G" || w == "-n" {
			taken++
		}
	case strings.Contains(c.values, letter):
		if len(w) == 2 {
			taken++
		}
	case len(w) == 2 && strings.Contains(flags, letter):
	case c.bundle && strings.Trim(w[1:], flags) == "":
		for _, letter := range w[2:] {
			names = append(names, "-"+string(letter))
		}
	default:
		return nil, 0, false
	}
	if taken > 0 && (len(behind) == 0 || behind[0].globbed) {
		return nil, 0, false
	}
	return append(names, w[:2]), taken, true
}

// signature matches a placeholder for the output of a signature program: %G?, %+GG,
// %(signature:key).
var signature = lazyregexp.New(`%[-+ ]*G|(?i:signature)`)

// asksSignature reports whether a format or a sort key makes git check signatures. git runs a
// program for that.
func asksSignature(text string) bool { return signature().MatchString(text) }

// gitSurroundings reports whether no variable makes git use another repository or configuration,
// run a program, or write to a file. git starts a pager only at a terminal; the agents set one that
// only prints.
func gitSurroundings(env map[string]string) bool {
	harmless := []string{"GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_CEILING_DIRECTORIES", "GIT_ADVICE",
		"GIT_MERGE_AUTOEDIT", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_ASKPASS",
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_SSH",
		"GIT_SSH_COMMAND"}
	for name, value := range env {
		switch {
		case !strings.HasPrefix(name, "GIT_"), slices.Contains(harmless, name):
		case name == "GIT_PAGER" && harmlessPager(value):
		case name == "GIT_CONFIG_NOSYSTEM":
		case (name == "GIT_CONFIG_GLOBAL" || name == "GIT_CONFIG_SYSTEM") &&
			filepath.IsAbs(value): // the place of the configuration
		default:
			return false
		}
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME"} {
		if env[name] != "" && !filepath.IsAbs(env[name]) {
			return false
		}
	}
	return harmlessPager(env["PAGER"])
}

// harmlessPager reports whether a pager only shows text.
func harmlessPager(command string) bool {
	words := strings.Fields(command)
	return len(words) == 0 || slices.Contains([]string{"cat", "less", "more", "true", "false"}, words[0]) &&
		!strings.ContainsAny(command, "|&;<>()$`\\\"'\n") && !strings.Contains(command, "-o") &&
		!strings.Contains(command, "-O") && !strings.Contains(command, "--log") && !strings.Contains(command, "-k")
}
