package readonly

import (
	"slices"
	"strings"
	"sync"
)

// program lists the options of a program that only read.
type program struct {
	flags  string   // letters of options without a value, which may be bundled
	values string   // letters of options with a value, in the same word or the next
	long   []string // full long options; those with a value end with =
	digits bool     // a number is an option: head -5
	text   bool     // its operands are text, not paths
	first  string   // what its first operand is, unless an option in given replaces it: "pattern" or "script"
	given  string   // options that replace the first operand, by letter or name
	reads  bool     // it shows the content of files
	walks  bool     // it may search below the folders that it is given
	here   bool     // without operands it looks at its working directory
	most   int      // maximum number of operands; 0 for any number
	env    []string // variables that would change what it does
	script func(text string) bool
	apart  bool                              // an option with a value and its value are words of their own
	lists  bool                              // it lists files
	own    func(l *looker, words []arg) bool // checks its words itself
}

// programs are the programs that only read. A letter means the same in GNU's and BSD's version, or
// is harmless where it does not: a word that one of them takes for an option's value is checked as
// a path anyway.
//
// Missing options are missing for a reason. They write (sort -o, sed -i, tree -o, file -C), run a
// program (rg --pre, rg -z, sort --compress-program, file -z), follow links (grep -R, rg -L, find
// -L, tree -l), restore times (file -p), read further names from a file (wc --files0-from, file
// -f), or do not end (tail -f).
var programs = sync.OnceValue(func() map[string]program {
	return map[string]program{
		"pwd":      {flags: "LP", text: true},
		"echo":     {own: func(*looker, []arg) bool { return true }},
		"true":     {own: func(*looker, []arg) bool { return true }},
		"false":    {own: func(*looker, []arg) bool { return true }},
		"basename": {flags: "a", values: "s", text: true},
		"dirname":  {text: true},
		"tr": {flags: "cCdst", text: true, long: []string{"--complement", "--delete", "--squeeze-repeats",
			"--truncate-set1"}},
		"ls": {flags: "aAbBcCdfFgGhiklmnopqQrRsStuUvxXZ1T", values: "wI", here: true, lists: true,
			long: []string{"--all", "--almost-all", "--author", "--color", "--color=", "--classify", "--directory",
				"--file-type", "--format=", "--full-time",
				"--group-directories-first", "--human-readable", "--si", "--hide=", "--ignore=", "--ignore-backups",
				"--indicator-style=", "--inode", "--kibibytes", "--literal",
				"--no-group", "--numeric-uid-gid", "--quote-name", "--quoting-style=", "--recursive", "--reverse",
				"--size", "--sort=", "--time=", "--time-style=", "--width=", "--zero"}},
		"cat": {flags: "AbeEnstTuv", reads: true,
			long: []string{"--show-all", "--number-nonblank", "--show-ends", "--number", "--squeeze-blank",
				"--show-tabs", "--show-nonprinting"}},
		"nl": {flags: "p", values: "bdfhilnsvw", reads: true},
		"head": {flags: "qvz", values: "nc", digits: true, reads: true,
			long: []string{"--lines=", "--bytes=", "--quiet", "--silent", "--verbose", "--zero-terminated"}},
		"tail": {flags: "qvzr", values: "nc", digits: true, reads: true,
			long: []string{"--lines=", "--bytes=", "--quiet", "--silent", "--verbose", "--zero-terminated"}},
		"wc": {flags: "clmwL", reads: true, long: []string{"--bytes", "--chars", "--lines", "--words",
			"--max-line-length"}},
		"cut": {flags: "nsz", values: "bcdf", reads: true,
			long: []string{"--bytes=", "--characters=", "--delimiter=", "--fields=", "--only-delimited", "--complement",
				"--output-delimiter=", "--zero-terminated"}},
		"sort": {flags: "bcCdfghiMmnrRsuVz", values: "kt", reads: true,
			long: []string{"--ignore-leading-blanks", "--dictionary-order", "--ignore-case", "--general-numeric-sort",
				"--human-numeric-sort", "--ignore-nonprinting", "--month-sort",
				"--numeric-sort", "--reverse", "--version-sort", "--check", "--key=", "--field-separator=", "--merge",
				"--stable", "--unique", "--zero-terminated", "--sort="}},
		// Its second operand is an output file.
		"uniq": {flags: "cdDuiz", values: "fsw", most: 1, reads: true,
			long: []string{"--count", "--repeated", "--unique", "--ignore-case", "--skip-fields=", "--skip-chars=",
				"--check-chars=", "--zero-terminated"}},
		"stat": {flags: "fLtnqrsxF", values: "c", long: []string{"--format=", "--printf=", "--terse", "--dereference",
			"--file-system"}},
		"file": {flags: "bhikLNnrI0", values: "F", reads: true, env: []string{"MAGIC"},
			long: []string{"--brief", "--mime", "--mime-type", "--mime-encoding", "--no-dereference", "--dereference",
				"--no-pad", "--keep-going", "--extension", "--separator="}},
		// For -Lo it takes the next word as the value of L, and the one after it as the output
		// file.
		"tree": {flags: "aACdDfFghinNpqrsStuUvxJX", values: "LPI", apart: true, here: true, walks: true, lists: true,
			long: []string{"--dirsfirst", "--filesfirst", "--gitignore", "--noreport", "--prune", "--du", "--si",
				"--inodes", "--device", "--ignore-case", "--matchdirs", "--metafirst",
				"--charset=", "--filelimit=", "--timefmt=", "--sort="}},
		"grep":  grep,
		"egrep": grep,
		"fgrep": grep,
		"rg": {flags: "abcFHiIlnNopPqsSuUvwx0.", values: "ABCdeEgjmMrtT", first: "pattern",
			given: "e --regexp --files --type-list", reads: true, walks: true, here: true, lists: true,
			env: []string{"RIPGREP_CONFIG_PATH"},
			long: []string{"--after-context=", "--auto-hybrid-regex", "--before-context=", "--block-buffered",
				"--byte-offset", "--case-sensitive", "--color=", "--colors=", "--column",
				"--context=", "--context-separator=", "--count", "--count-matches", "--crlf", "--encoding=",
				"--engine=", "--field-context-separator=", "--field-match-separator=", "--files",
				"--files-with-matches", "--files-without-match", "--fixed-strings", "--glob=",
				"--glob-case-insensitive", "--heading", "--hidden", "--iglob=", "--ignore-case",
				"--include-zero", "--invert-match", "--json", "--line-buffered", "--line-number", "--line-regexp",
				"--max-columns=", "--max-columns-preview", "--max-count=", "--max-depth=",
				"--max-filesize=", "--mmap", "--multiline", "--multiline-dotall", "--no-config", "--no-filename",
				"--no-follow", "--no-heading", "--no-ignore", "--no-ignore-dot",
				"--no-ignore-exclude", "--no-ignore-files", "--no-ignore-global", "--no-ignore-messages",
				"--no-ignore-parent", "--no-ignore-vcs", "--no-line-number", "--no-messages",
				"--no-mmap", "--no-unicode", "--null", "--null-data", "--one-file-system", "--only-matching",
				"--passthru", "--path-separator=", "--pcre2", "--pretty", "--quiet",
				"--regexp=", "--replace=", "--smart-case", "--sort=", "--sortr=", "--stats", "--text", "--threads=",
				"--trim", "--type=", "--type-list", "--type-not=",
				"--unrestricted", "--vimgrep", "--with-filename", "--word-regexp"}},
		"sed": {flags: "nErsuz", values: "e", first: "script", given: "e --expression", script: sedReads, reads: true,
			long: []string{"--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data",
				"--sandbox", "--expression="}},
		"find": {own: find},
		"git":  {own: git},
	}
})

// grep is the row for all names of grep.
var grep = program{flags: "abcEFGhHiIlLnoPqrsTUvwxZzy", values: "ABCem", first: "pattern", given: "e --regexp",
	digits: true, reads: true, env: []string{"GREP_OPTIONS"},
	long: []string{"--after-context=", "--basic-regexp", "--before-context=", "--binary-files=", "--byte-offset",
		"--color", "--color=", "--colour", "--colour=", "--context=",
		"--count", "--exclude=", "--exclude-dir=", "--extended-regexp", "--files-with-matches", "--files-without-match",
		"--fixed-strings", "--ignore-case", "--include=",
		"--initial-tab", "--invert-match", "--line-buffered", "--line-number", "--line-regexp", "--max-count=",
		"--no-filename", "--no-messages", "--null", "--only-matching",
		"--perl-regexp", "--quiet", "--recursive", "--regexp=", "--silent", "--text", "--with-filename",
		"--word-regexp"}}

// options checks the words of a program against its row of the table.
//
// GNU's programs also take options after operands, unless POSIXLY_CORRECT is set. BSD's never do.
// So a word after an operand must be harmless both as an option and as a path. If an operand could
// be a script or an output file, no option may follow it.
func (l *looker) options(p *program, words []arg) bool {
	l.found.Reads = l.found.Reads || p.reads
	l.found.Walks = l.found.Walks || p.walks
	l.found.Lists = l.found.Lists || p.lists
	c := &call{l: l, p: p, words: words, recursive: p.walks && p.here}
	return c.split() && c.harmlessOperands()
}

// call is a program with its words. Some of them are checked already.
type call struct {
	l         *looker
	p         *program
	words     []arg
	next      int // the word to check next
	operands  []arg
	replaced  bool // an option replaced the first operand
	recursive bool // it searches below the folders that it is given
}

// split separates options from operands, and reports whether all options are known to be harmless.
func (c *call) split() bool {
	for ended := false; c.next < len(c.words); {
		word := c.words[c.next]
		c.next++
		if ended || len(word.text) < 2 || word.text[0] != '-' {
			if c.operands = append(c.operands, word); strings.HasPrefix(word.text, "+") && !c.p.text &&
				len(c.operands) == 1 && c.p.first == "" {
				return false // sort +1, tail +5: the following words have more than one reading
			}
			continue
		}
		if len(c.operands) > 0 && !c.p.text && (c.p.script != nil || c.p.most > 0 || !c.l.path(word.text)) {
			return false
		}
		harmless := true
		switch {
		case word.text == "--":
			ended = true
		case strings.HasPrefix(word.text, "--"):
			harmless = c.longOption(word)
		case c.p.digits && strings.Trim(word.text[1:], "0123456789") == "":
		default:
			harmless = c.letters(word)
		}
		if !harmless {
			return false
		}
	}
	return true
}

// replaces reports whether the option replaces the first operand.
func (c *call) replaces(name string) bool { return slices.Contains(strings.Fields(c.p.given), name) }

// value checks the value of an option.
func (c *call) value(name string, a arg) bool {
	if a.globbed {
		return false
	}
	if c.replaces(name) {
		c.replaced = true
		if c.p.script != nil && !c.p.script(a.text) {
			return false
		}
		return len(c.operands) == 0 || c.p.text || c.l.path(a.text)
	}
	return c.p.text || c.l.path(a.text)
}

func (c *call) longOption(word arg) bool {
	name, text, has := strings.Cut(word.text, "=")
	switch {
	case has && slices.Contains(c.p.long, name+"="):
		return c.value(name, arg{text, word.globbed && c.replaces(name)})
	case !has && slices.Contains(c.p.long, name):
		c.replaced = c.replaced || c.replaces(name)
		c.recursive = c.recursive || name == "--recursive"
		return true
	case !has && slices.Contains(c.p.long, name+"=") && c.next < len(c.words) && !c.p.apart:
		value := c.words[c.next]
		c.next++
		return c.value(name, value) && (c.replaces(name) || !looksLikeOption(value.text))
	}
	return false
}

// letters checks one-letter options in one word: -la, -n5.
func (c *call) letters(word arg) bool {
	letters := word.text[1:]
	for i := range len(letters) {
		name := letters[i : i+1]
		if strings.Contains(c.p.flags, name) {
			c.recursive = c.recursive || name == "r" && c.p.first == "pattern" && !c.p.here || name == "R" && c.p.lists
			continue
		}
		if !strings.Contains(c.p.values, name) || c.p.apart && len(letters) > 1 {
			return false
		}
		value := arg{letters[i+1:], word.globbed && c.replaces(name)}
		if value.text == "" {
			if c.next == len(c.words) {
				return false
			}
			value = c.words[c.next]
			c.next++
			if !c.replaces(name) && looksLikeOption(value.text) {
				return false // if the option takes no value, the next word is an operand
			}
		}
		return c.value(name, value)
	}
	return true
}

// harmlessOperands reports whether the words besides options are paths that the program may look
// at.
func (c *call) harmlessOperands() bool {
	operands := c.operands
	if c.p.first != "" && !c.replaced {
		if len(operands) == 0 || operands[0].globbed || c.p.script != nil && !c.p.script(operands[0].text) {
			return false
		}
		operands = operands[1:]
	}
	c.l.found.Walks = c.l.found.Walks || c.recursive
	if c.p.most > 0 && len(operands) > c.p.most {
		return false
	}
	if c.p.text {
		return true
	}
	// A shell can be set to drop a glob without matches.
	if (c.p.here || c.recursive) && !slices.ContainsFunc(operands, func(a arg) bool { return !a.globbed }) {
		operands = append(operands, arg{text: "."})
	}
	for _, a := range operands {
		if a.text != "-" && !c.l.path(a.text) ||
			c.recursive && c.p.first == "pattern" && !c.p.here && !c.l.holds(a.text) {
			return false
		}
	}
	return true
}

// looksLikeOption reports whether a word begins like an option and is not a number.
func looksLikeOption(word string) bool {
	return len(word) > 1 && word[0] == '-' && strings.Trim(word[1:], "0123456789") != ""
}

// find checks the words of find: folders, then conditions on files.
func find(l *looker, args []arg) bool {
	words := texts(args)
	l.found.Walks, l.found.Lists = true, true
	i := 0
	for i < len(words) && words[i] == "-P" {
		i++
	}
	folders := 0 // folders that surely remain: a shell can be set to drop a glob without matches
	for ; i < len(words) && !strings.HasPrefix(words[i], "-") && words[i] != "(" && words[i] != "!"; i++ {
		if !l.path(words[i]) {
			return false
		}
		if !args[i].globbed {
			folders++
		}
	}
	if folders == 0 && !l.path(".") {
		return false
	}
	if slices.ContainsFunc(args[i:], func(a arg) bool { return a.globbed }) {
		return false
	}
	for ; i < len(words); i++ {
		switch w := words[i]; {
		case slices.Contains(findAlone, w):
		case slices.Contains(findPath, w) && i+1 < len(words):
			if i++; !l.path(words[i]) {
				return false
			}
		case slices.Contains(findValue, w) && i+1 < len(words):
			i++
		default:
			return false
		}
	}
	return true
}

// Conditions on files. Actions that run, write or delete are not among them: -exec, -execdir, -ok,
// -okdir, -delete, -fls, -fprint, -fprint0, -fprintf.
var (
	findAlone = []string{"(", ")", "!", ",", "-not", "-a", "-and", "-o", "-or", "-true", "-false", "-empty", "-print",
		"-print0", "-prune", "-quit", "-depth", "-d", "-mount",
		"-xdev", "-ls", "-readable", "-writable", "-executable", "-nouser", "-nogroup", "-daystart", "-noleaf"}
	findValue = []string{"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex",
		"-regextype", "-type", "-xtype", "-maxdepth", "-mindepth", "-size",
		"-mtime", "-mmin", "-ctime", "-cmin", "-atime", "-amin", "-perm", "-user", "-group", "-uid", "-gid", "-links",
		"-inum", "-printf"}
	findPath = []string{"-newer", "-anewer", "-cnewer"}
)
