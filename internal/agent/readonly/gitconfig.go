package readonly

import (
	"slices"
	"strings"
	"sync"
)

// setting is one setting of a git configuration. Section and key are in lower case.
type setting struct{ section, sub, key, value string }

// parseConfig reads a git configuration. It refuses text that it cannot read with certainty, even
// if git can.
func parseConfig(text string) (all []setting, ok bool) {
	if strings.ContainsAny(text, "\x00\v\f") {
		return nil, false
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	section, sub := "", ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(lines[i], " \t\r")
		for strings.HasPrefix(line, "[") { // a setting may follow on the same line
			var rest string
			if section, sub, rest, ok = parseSection(line); !ok {
				return nil, false
			}
			line = strings.TrimLeft(rest, " \t\r")
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		for oddBackslashes(line) { // the line continues, unless it ends in a comment
			if strings.ContainsAny(line, "#;") || i+1 == len(lines) {
				return nil, false
			}
			i++
			line = line[:len(line)-1] + lines[i]
		}
		key, value, has := strings.Cut(line, "=")
		key = strings.TrimRight(key, " \t\r")
		if key == "" || strings.Trim(strings.ToLower(key), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" ||
			section == "" {
			return nil, false
		}
		if !has {
			value = "true"
		} else if value, ok = parseValue(value); !ok {
			return nil, false
		}
		all = append(all, setting{section, sub, strings.ToLower(key), value})
	}
	return all, true
}

// parseSection reads [section] or [section "sub"].
func parseSection(line string) (section, sub, rest string, ok bool) {
	end := strings.IndexAny(line, "] \t\"")
	if end < 0 {
		return "", "", "", false
	}
	section = strings.ToLower(line[1:end])
	if section == "" || strings.Trim(section, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", "", "", false
	}
	if line[end] == ']' {
		return section, "", line[end+1:], true
	}
	line = strings.TrimLeft(line[end:], " \t")
	if !strings.HasPrefix(line, `"`) {
		return "", "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			if i++; i == len(line) {
				return "", "", "", false
			}
			b.WriteByte(line[i])
		case '"':
			if !strings.HasPrefix(line[i+1:], "]") {
				return "", "", "", false
			}
			return section, b.String(), line[i+2:], true
		default:
			b.WriteByte(line[i])
		}
	}
	return "", "", "", false
}

// parseValue reads the text after the =.
func parseValue(text string) (string, bool) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			if i++; i == len(text) || !strings.ContainsRune(`\"ntb`, rune(text[i])) {
				return "", false
			}
			b.WriteByte(map[byte]byte{'n': '\n', 't': '\t', 'b': '\b', '\\': '\\', '"': '"'}[text[i]])
		case c == '"':
			quoted = !quoted
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String()), true
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String()), !quoted
}

func (s setting) off() bool {
	return slices.Contains([]string{"", "false", "no", "off", "0"}, strings.ToLower(s.value))
}

// runs reports whether a setting of the user's makes a reading command run a program, write, or
// contact another machine.
func (s setting) runs(command string, paged bool) bool {
	switch s.section {
	case "core":
		return s.key == "fsmonitor" && !s.off() || s.key == "worktree" || s.key == "pager" && paged &&
			!harmlessPager(s.value) ||
			s.key == "gitproxy" || s.key == "bare" && !s.off()
	case "pager":
		return s.key == command && paged && !s.isBool() && !harmlessPager(s.value)
	case "diff":
		return s.key == "external" || s.key == "textconv" || s.key == "command" || s.key == "submodule" &&
			s.value != "short"
	case "log":
		return s.key == "showsignature" && !s.off() || s.key == "diffmerges"
	case "format", "pretty":
		return asksSignature(s.value)
	case "branch", "tag":
		return s.key == "sort" && asksSignature(s.value)
	case "status":
		return s.key == "submodulesummary" && !s.off()
	case "remote":
		return s.key == "promisor" || s.key == "partialclonefilter"
	case "extensions":
		return s.key == "partialclone"
	case "trace2":
		return true
	}
	return false
}

func (s setting) isBool() bool {
	return s.off() || slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(s.value))
}

// local reports whether a setting of the repository's is known to run no program for a reading
// command. It may come with the project, so an unknown setting is refused.
func (s setting) local(command string, paged bool) bool {
	if s.runs(command, paged) {
		return false
	}
	switch s.section {
	case "user", "author", "committer", "pull", "push", "rebase", "rerere", "init", "commit", "tag", "color", "advice",
		"gui", "lfs", "credential", "http", "url", "branch", "gc", "pack",
		"maintenance", "fetch", "receive", "transfer", "format", "pretty", "pager", "column":
		return true
	}
	known, ok := harmlessSettings()[s.section]
	return ok && slices.Contains(known, s.key) && (s.sub == "" || s.section == "remote" || s.section == "submodule")
}

// harmlessSettings are harmless settings in sections that have other settings too.
var harmlessSettings = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"core": {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode",
			"symlinks", "autocrlf", "eol", "safecrlf", "quotepath", "abbrev",
			"compression", "loosecompression", "bigfilethreshold", "editor", "commentchar", "whitespace", "protecthfs",
			"protectntfs", "preloadindex", "untrackedcache", "sparsecheckout",
			"sparsecheckoutcone", "multipackindex", "commitgraph", "longpaths", "trustctime", "checkstat", "fsync",
			"fsyncmethod", "hookspath", "sshcommand", "fsmonitor", "pager",
			"sharedrepository"},
		"remote": {"url", "pushurl", "fetch", "push", "mirror", "tagopt", "prune", "prunetags", "skipdefaultupdate",
			"skipfetchall", "gh-resolved", "followremotehead", "pushdefault"},
		"submodule":  {"url", "active", "branch", "ignore"},
		"extensions": {"objectformat", "worktreeconfig", "refstorage", "relativeworktrees"},
		"diff": {"renames", "renamelimit", "algorithm", "mnemonicprefix", "noprefix", "colormoved", "colormovedws",
			"context", "interhunkcontext", "indentheuristic", "relative",
			"ignoresubmodules", "statgraphwidth"},
		"log":    {"date", "decorate", "follow", "abbrevcommit", "showroot", "mailmap", "showsignature"},
		"status": {"short", "branch", "showuntrackedfiles", "relativepaths", "renames", "aheadbehind", "showstash"},
		"merge":  {"conflictstyle", "ff", "log", "renames", "renamelimit", "stat"},
	}
})
