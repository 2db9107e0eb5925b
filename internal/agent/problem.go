package agent

import (
	"regexp"
	"strconv"
	"strings"

	"cadre/internal/sys/lazyregexp"
)

// KindOf classifies a failure by its HTTP status (0 if the protocol has none), or else by its
// words. The words may come from anywhere. So a number counts only if the words call it a status,
// and a word counts only if it describes the failure rather than the agent's work.
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

// byStatus lists the kinds that a status shows by itself. A bad request does not say why it is bad:
// it may be too long, or lack a key.
var byStatus = map[int]ProblemKind{401: ProblemLogin, 402: ProblemLogin, 403: ProblemLogin, 429: ProblemLimit,
	503: ProblemLimit, 529: ProblemLimit}

var (
	// numbered matches a status in words: at their beginning, or after a word for it.
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

// Tail returns the end of a text, which is its most useful part.
func Tail(s string) string {
	const most = 2000
	if len(s) > most {
		return "… " + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return s
}
