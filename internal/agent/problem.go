package agent

import (
	"regexp"
	"strconv"
	"strings"

	"cadre/internal/sys/lazyregexp"
)

// KindOf tells what helps from the HTTP status of a failure, 0 where the protocol gives none, and
// else from the words for it. The words may be anybody's: a number in them counts where it says
// that it is a status, and a word where it is said of the failure and not of what the agent works
// on.
func KindOf(status int, words string) ProblemKind {
	if kind := byStatus[status]; kind != "" {
		return kind
	}
	if status >= 500 {
		return ProblemModel
	}
	if status == 0 {
		for _, found := range numbered().FindAllStringSubmatch(words, -1) {
			n, err := strconv.Atoi(found[1])
			if kind := byStatus[n]; err == nil && kind != "" {
				return kind
			}
		}
	}
	said := spaces().ReplaceAllString(strings.ToLower(words), " ")
	for _, k := range byWords {
		if k.words().MatchString(said) {
			return k.kind
		}
	}
	return ProblemModel
}

// byStatus is what a status tells by itself. That a request is bad does not tell why: it may be too
// long, or without a key.
var byStatus = map[int]ProblemKind{401: ProblemLogin, 402: ProblemLogin, 403: ProblemLogin, 429: ProblemLimit,
	503: ProblemLimit, 529: ProblemLimit}

var (
	// numbered is a status in words: at their beginning, or after a word for it.
	numbered = lazyregexp.New(
		`(?i)(?:^\W*|(?:\b|_)(?:http(?:/\d(?:\.\d)?)?|error|code|status(?:[ _]?code)?)\W{1,4})([1-5]\d\d)\b`)
	spaces  = lazyregexp.New(`[\s_-]+`)
	byWords = []struct {
		kind  ProblemKind
		words func() *regexp.Regexp
	}{
		{ProblemContext,
			lazyregexp.New(
				`\bcontext (window|length|limit)\b|\b(prompt|input)( is)? too long\b|\btoken limit\b|\bmaximum number of tokens\b`)},
		{ProblemLogin,
			lazyregexp.New(
				`\bunauthorized\b|\bunauthenticated\b|\bnot authenticated\b|\bauthentication (required|failed|error|needed)\b|\b(failed|fail|cannot|could not|unable) to authenticate\b|` +
					`\bauth(entication)? method\b|\b(invalid|incorrect|missing|no|expired|unknown|specify|set|provide)( \w+){0,3} api key\b|\bapi key\b.{0,20}\b(not|invalid|missing|expired|required|unknown|must)\b|` +
					`\bplease (log ?in|authenticate)\b|\bnot logged in\b|\b(must|need to|have to|to) log in\b|\blog in (first|again)\b|/login\b|\b(auth|codex) login\b|\blogin (is )?(required|expired)\b|\bcredit balance\b|` +
					`\bmissing environment variable\b`)},
		{ProblemLimit,
			lazyregexp.New(
				`\brate limit(ed|s|ing)?\b|\btoo many requests\b|\bquota\b|\bresource exhausted\b|\boverloaded\b|\b(usage|session|weekly) limit\b`)},
	}
)

// Tail is the end of a text, which says most.
func Tail(s string) string {
	const most = 2000
	if len(s) > most {
		return "… " + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return s
}
