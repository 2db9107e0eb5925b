package redact

import (
	_ "embed"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cadre/internal/sys/lazyregexp"
)

// gitleaks holds the rules of gitleaks v8.30.1, unchanged (gitleaks.LICENSE): SHA-256
// e163e53b9e7e8a8511e77271e2b323ed057759542a6d988258afe3a1fa329caf.
//
//go:embed gitleaks.toml
var gitleaks string

// rule describes a secret of one service.
type rule struct {
	id       string
	shape    func() *regexp.Regexp
	group    int     // the group that holds the secret; 0 for the first that matched
	entropy  float64 // in bits per byte; a value with less is an example
	keywords []string
	harmless []func() *regexp.Regexp // values that are not secrets
	file     bool                    // the rule is only for files with certain names
}

// rules are indexed by their keywords. Nearly every text has no keyword, and one pass over its
// bytes shows that.
type rules struct {
	all    []*rule
	starts [1 << 16]uint16 // index into words by the first two bytes; 0 for none
	words  [][]keyword
}

// keyword is a string that a text must contain before a rule, or a pattern of this package, can
// match.
type keyword struct {
	text string
	rule *rule // nil for a pattern of this package
	of   sign
}

// catalog parses the rules at the first use, which takes about a millisecond. Each expression is
// compiled when one of its keywords is first seen.
var catalog = sync.OnceValue(func() *rules {
	c := &rules{all: parse(gitleaks), words: make([][]keyword, 1)}
	for _, r := range c.all {
		for _, word := range r.keywords {
			c.add(keyword{text: word, rule: r})
		}
	}
	for _, s := range signs {
		for _, word := range s.words {
			c.add(keyword{text: word, of: s.of})
		}
	}
	return c
})

func (c *rules) add(k keyword) {
	place := &c.starts[start(k.text)]
	if *place == 0 {
		*place = uint16(len(c.words))
		c.words = append(c.words, nil)
	}
	c.words[*place] = append(c.words[*place], k)
}

// start returns the index in starts of a keyword, or of the beginning of a text.
func start(text string) int { return int(text[0])<<8 | int(text[1]) }

// named yields each occurrence of a keyword in the text, which is in lower case.
func (c *rules) named(low string) iter.Seq[*keyword] {
	return func(yield func(*keyword) bool) {
		for i := 0; i+1 < len(low); i++ {
			words := c.words[c.starts[start(low[i:])]]
			for w := range words {
				if strings.HasPrefix(low[i:], words[w].text) && !yield(&words[w]) {
					return
				}
			}
		}
	}
}

// redact replaces the rule's secrets with [Mark].
func (r *rule) redact(text string) string {
	var out strings.Builder
	copied := 0
	for _, at := range r.shape().FindAllStringSubmatchIndex(text, -1) {
		from, to := at[0], at[1]
		for group := 1; group < len(at)/2; group++ {
			if at[2*group] >= 0 && at[2*group] < at[2*group+1] && (r.group == 0 || r.group == group) {
				from, to = at[2*group], at[2*group+1]
				break
			}
		}
		if !r.secret(text[from:to]) {
			continue
		}
		out.WriteString(text[copied:from])
		out.WriteString(Mark)
		copied = to
	}
	if copied == 0 {
		return text
	}
	out.WriteString(text[copied:])
	return out.String()
}

func (r *rule) secret(v string) bool {
	return !Reference(v) && !strings.Contains(v, Mark) && entropy(v) > r.entropy &&
		!slices.ContainsFunc(r.harmless, func(e func() *regexp.Regexp) bool { return e().MatchString(v) })
}

// entropy returns the Shannon entropy of the text, in bits per byte.
func entropy(text string) (bits float64) {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// parse reads the rules. It understands only the TOML that gitleaks' generator writes: one table or
// key per line, and lists of strings. It leaves out the rules for files with certain names, because
// a text has no file name, and the generic rule, which this package replaces.
func parse(file string) (all []*rule) {
	var one *rule
	var table, list string
	add := func(value string) {
		switch {
		case one == nil || value == "":
		case table == "[[rules]]" && list == "keywords":
			one.keywords = append(one.keywords, strings.ToLower(value))
		case table == "[[rules.allowlists]]" && list == "regexes":
			one.harmless = append(one.harmless, lazyregexp.New(value))
		}
	}
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		key, value, is := strings.Cut(line, " = ")
		switch {
		case strings.HasPrefix(line, "[["):
			if table = line; line == "[[rules]]" {
				one = &rule{}
				all = append(all, one)
			}
		case list != "":
			if add(unquoted(strings.TrimSuffix(line, ","))); strings.HasPrefix(line, "]") {
				list = ""
			}
		case is && value == "[":
			list = key
		case is && one != nil && strings.HasPrefix(value, "["):
			list = key
			for word := range strings.SplitSeq(strings.Trim(value, "[] "), ",") {
				add(unquoted(strings.TrimSpace(word)))
			}
			list = ""
		case is && one != nil && table == "[[rules]]":
			one.set(key, value)
		}
	}
	return slices.DeleteFunc(all, func(r *rule) bool { return r.file || r.id == "generic-api-key" })
}

func (r *rule) set(key, value string) {
	switch key {
	case "id":
		r.id = unquoted(value)
	case "regex":
		r.shape = lazyregexp.New(unquoted(value))
	case "entropy":
		r.entropy, _ = strconv.ParseFloat(value, 64)
	case "secretGroup":
		r.group, _ = strconv.Atoi(value)
	case "path":
		r.file = true
	}
}

// unquoted returns the string between quotes, or "" for anything else.
func unquoted(value string) string {
	for _, quote := range []string{"'''", `"`} {
		if inner, ok := strings.CutPrefix(value, quote); ok && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return ""
}
