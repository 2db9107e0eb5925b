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

// gitleaks are the rules of gitleaks v8.30.1, unchanged (gitleaks.LICENSE):
// SHA-256 e163e53b9e7e8a8511e77271e2b323ed057759542a6d988258afe3a1fa329caf.
//
//go:embed gitleaks.toml
var gitleaks string

// rule is a secret of one service.
type rule struct {
	id       string
	shape    func() *regexp.Regexp
	group    int     // of the secret in the shape; 0 for the first that matched
	entropy  float64 // in bits a byte: what has less is an example
	keywords []string
	harmless []func() *regexp.Regexp // secrets that are none
	file     bool                    // it is for files of certain names alone
}

// rules are found by their keywords: nearly every text has none of them, and that is told in one
// pass over its bytes.
type rules struct {
	all    []*rule
	starts [1 << 16]uint16 // place in words by the first two bytes; 0 for none
	words  [][]keyword
}

// keyword is what a text has that a rule, or a pattern of ours, can find something in.
type keyword struct {
	text string
	rule *rule // nil for a pattern of ours
	of   sign
}

// catalog reads the rules when a text is looked at for the first time, which costs about a
// millisecond. Each expression is compiled when one of its keywords is seen.
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

// start is the place of a keyword, or of a text, in starts.
func start(text string) int { return int(text[0])<<8 | int(text[1]) }

// named yields each keyword that the text, in lower case, has, as often as it has it.
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

// redact puts the mark in the place of the rule's secrets.
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

// entropy is how much a byte of the text says, in bits.
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

// parse reads the rules. It knows as much of TOML as their generator writes: a table or a key a
// line, and lists of strings. Left out are rules for files of certain names, because a text has
// none, and the generic one, for which this package has its own.
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

// unquoted is the string that stands in quotes; "" for anything else.
func unquoted(value string) string {
	for _, quote := range []string{"'''", `"`} {
		if inner, ok := strings.CutPrefix(value, quote); ok && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return ""
}
