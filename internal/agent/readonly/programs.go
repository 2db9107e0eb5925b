package readonly

import (
	"slices"
	"strings"
)

// program is what may be given to a program that only reads.
type program struct {
	flags  string   // letters of options without a value, which may stand together
	values string   // letters of options with a value, in the same word or the next
	long   []string // long options, in full; with = at the end those that have a value
	digits bool     // a number is an option: head -5
	text   bool     // its operands are text, and no paths
	first  string   // what its first operand is, unless an option of given was there: "pattern" or "script"
	given  string   // options that take the place of that, by letter or name
	reads  bool     // it shows what is in files
	walks  bool     // it may go below the folders that it is given
	here   bool     // without operands it looks at the folder where it runs
	most   int      // operands at most; 0 for any number
	env    []string // variables that would change what it does
	script func(text string) bool
	apart  bool                              // an option with a value stands alone, and so does its value
	lists  bool                              // it shows which files there are
	own    func(l *looker, words []arg) bool // looks at its words itself
}

// programs are those that only read. Letters mean the same in GNU's and in BSD's, or do no harm
// where they do not: an operand that the one takes for an option's value is looked at as a path all
// the same.
//
// What is missing has its reason: an option that writes (sort -o, sed -i, tree -o, file -C), runs a
// program (rg --pre, rg -z, sort --compress-program, file -z), follows links (grep -R, rg -L, find
// -L, tree -l), restores times (file -p), reads further names from a file (wc --files0-from, file
// -f), or does not end (tail -f).
var programs = map[string]program{
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
			"--no-group", "--numeric-uid-gid", "--quote-name", "--quoting-style=", "--recursive", "--reverse", "--size",
			"--sort=", "--time=", "--time-style=", "--width=", "--zero"}},
	"cat": {flags: "AbeEnstTuv", reads: true,
		long: []string{"--show-all", "--number-nonblank", "--show-ends", "--number", "--squeeze-blank", "--show-tabs",
			"--show-nonprinting"}},
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
	// Its second operand is a file that it writes.
	"uniq": {flags: "cdDuiz", values: "fsw", most: 1, reads: true,
		long: []string{"--count", "--repeated", "--unique", "--ignore-case", "--skip-fields=", "--skip-chars=",
			"--check-chars=", "--zero-terminated"}},
	"stat": {flags: "fLtnqrsxF", values: "c", long: []string{"--format=", "--printf=", "--terse", "--dereference",
		"--file-system"}},
	"file": {flags: "bhikLNnrI0", values: "F", reads: true, env: []string{"MAGIC"},
		long: []string{"--brief", "--mime", "--mime-type", "--mime-encoding", "--no-dereference", "--dereference",
			"--no-pad", "--keep-going", "--extension", "--separator="}},
	// In -Lo it takes the next word for the value of L, and the one after it for the file that it
	// writes.
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
			"--context=", "--context-separator=", "--count", "--count-matches", "--crlf", "--encoding=", "--engine=",
			"--field-context-separator=", "--field-match-separator=", "--files",
			"--files-with-matches", "--files-without-match", "--fixed-strings", "--glob=", "--glob-case-insensitive",
			"--heading", "--hidden", "--iglob=", "--ignore-case",
			"--include-zero", "--invert-match", "--json", "--line-buffered", "--line-number", "--line-regexp",
			"--max-columns=", "--max-columns-preview", "--max-count=", "--max-depth=",
			"--max-filesize=", "--mmap", "--multiline", "--multiline-dotall", "--no-config", "--no-filename",
			"--no-follow", "--no-heading", "--no-ignore", "--no-ignore-dot",
			"--no-ignore-exclude", "--no-ignore-files", "--no-ignore-global", "--no-ignore-messages",
			"--no-ignore-parent", "--no-ignore-vcs", "--no-line-number", "--no-messages",
			"--no-mmap", "--no-unicode", "--null", "--null-data", "--one-file-system", "--only-matching", "--passthru",
			"--path-separator=", "--pcre2", "--pretty", "--quiet",
			"--regexp=", "--replace=", "--smart-case", "--sort=", "--sortr=", "--stats", "--text", "--threads=",
			"--trim", "--type=", "--type-list", "--type-not=",
			"--unrestricted", "--vimgrep", "--with-filename", "--word-regexp"}},
	"sed": {flags: "nErsuz", values: "e", first: "script", given: "e --expression", script: sedReads, reads: true,
		long: []string{"--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data",
			"--sandbox", "--expression="}},
	"find": {own: find},
	"git":  {own: git},
}

// grep is grep by each of its names.
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

// options looks at the words of a program by its row of the table.
//
// GNU's programs take options behind operands, too, unless POSIXLY_CORRECT is set. BSD's never do.
// So what stands there must be harmless as an option, and as a path. Where an operand could also be
// a script, or a file that is written, no option may stand there.
func (l *looker) options(p *program, words []arg) bool {
	l.found.Reads = l.found.Reads || p.reads
	l.found.Walks = l.found.Walks || p.walks
	l.found.Lists = l.found.Lists || p.lists
	var operands []arg
	given, ended, recursive := false, false, p.walks && p.here
	is := func(name string) bool { return slices.Contains(strings.Fields(p.given), name) }
	value := func(name string, a arg) bool {
		if a.globbed {
			return false
		}
		if is(name) {
			given = true
			if p.script != nil && !p.script(a.text) {
				return false
			}
			return len(operands) == 0 || p.text || l.path(a.text)
		}
		return p.text || l.path(a.text)
	}
	for i := 0; i < len(words); i++ {
		w := words[i].text
		if ended || len(w) < 2 || w[0] != '-' {
			if operands = append(operands, words[i]); strings.HasPrefix(w, "+") && !p.text && len(operands) == 1 &&
				p.first == "" {
				return false // sort +1, tail +5: what follows could be read in another way
			}
			continue
		}
		if len(operands) > 0 && !p.text && (p.script != nil || p.most > 0 || !l.path(w)) {
			return false
		}
		switch {
		case w == "--":
			ended = true
		case strings.HasPrefix(w, "--"):
			name, text, has := strings.Cut(w, "=")
			switch {
			case has && slices.Contains(p.long, name+"="):
				if !value(name, arg{text, words[i].globbed && is(name)}) {
					return false
				}
			case !has && slices.Contains(p.long, name):
				given = given || is(name)
				recursive = recursive || name == "--recursive"
			case !has && slices.Contains(p.long, name+"=") && i+1 < len(words) && !p.apart:
				if i++; !value(name, words[i]) || !is(name) && looksLikeOption(words[i].text) {
					return false
				}
			default:
				return false
			}
		case p.digits && strings.Trim(w[1:], "0123456789") == "":
		default:
			letters := w[1:]
			for j := 0; j < len(letters); j++ {
				c := letters[j : j+1]
				if strings.Contains(p.flags, c) {
					recursive = recursive || c == "r" && p.first == "pattern" && !p.here || c == "R" && p.lists
					continue
				}
				if !strings.Contains(p.values, c) || p.apart && len(letters) > 1 {
					return false
				}
				a := arg{letters[j+1:], words[i].globbed && is(c)}
				if a.text == "" {
					if i++; i == len(words) {
						return false
					}
					if a = words[i]; !is(c) && looksLikeOption(a.text) {
						return false // where the option has no value, it is one
					}
				}
				if !value(c, a) {
					return false
				}
				break
			}
		}
	}
	if p.first != "" && !given {
		if len(operands) == 0 || operands[0].globbed || p.script != nil && !p.script(operands[0].text) {
			return false
		}
		operands = operands[1:]
	}
	l.found.Walks = l.found.Walks || recursive
	if p.most > 0 && len(operands) > p.most {
		return false
	}
	if p.text {
		return true
	}
	// A shell can be told that a glob without matches is no word.
	if (p.here || recursive) && !slices.ContainsFunc(operands, func(a arg) bool { return !a.globbed }) {
		operands = append(operands, arg{text: "."})
	}
	for _, a := range operands {
		if a.text != "-" && !l.path(a.text) || recursive && p.first == "pattern" && !p.here && !l.holds(a.text) {
			return false
		}
	}
	return true
}

// looksLikeOption reports whether a word begins as an option does, and is no number.
func looksLikeOption(word string) bool {
	return len(word) > 1 && word[0] == '-' && strings.Trim(word[1:], "0123456789") != ""
}

// find looks at the words of find: folders, then what is asked of each file.
func find(l *looker, args []arg) bool {
	words := texts(args)
	l.found.Walks, l.found.Lists = true, true
	i := 0
	for i < len(words) && words[i] == "-P" {
		i++
	}
	folders := 0 // that are there in any case: a shell can be told that a glob without matches is no word
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

// What may be asked of each file. Actions that run, write or delete are not among them: -exec,
// -execdir, -ok, -okdir, -delete, -fls, -fprint, -fprint0, -fprintf.
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
