package redact

import (
	"slices"
	"strings"
	"unicode/utf8"

	"cadre/internal/sys/lazyregexp"
)

// Mark replaces a likely secret.
const Mark = "[redacted]"

// secretWord matches a word for a secret. nameEnd matches the rest of an identifier after such a
// word: secret_access_key, tokenValue. spokenIs matches the text between the word and the value.
const (
	secretWord = `(?:token|secret|passw(?:or)?d|passphrase|(?:api|access|private|account|signing|encryption|master|client|service)[ _-]?key|_key|_pwd|_auth|credentials?)`
	nameEnd    = `(?:[A-Za-z_]+|-[A-Za-z]+\b)*[0-9]?`
	spokenIs   = `(?:["'\x60\]]|\s)*(?:is|was|:=|=>|[:=])?(?:["'\x60]|\s)*`
)

var (
	// These match secrets with a shape of their own.
	tokenShapes = lazyregexp.New(
		`\bsk-[A-Za-z0-9_-]{16,}|\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|` +
			`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bxox[a-z]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{16,}|\bGOCSPX-[A-Za-z0-9_-]{20,}|\bnpm_[A-Za-z0-9]{30,}|` +
			`\bpypi-[A-Za-z0-9_-]{30,}|\bhf_[A-Za-z0-9]{20,}|\bSG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|\bdo[opr]_v1_[a-f0-9]{20,}|\bdckr_pat_[A-Za-z0-9_-]{20,}|\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{20,}|\bwhsec_[A-Za-z0-9+/=]{16,}|` +
			`\bhooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{16,}|\bdiscord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{16,}|` +
			`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?`)
	privateKeys = lazyregexp.New(
		`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`)
	urlPasswords = lazyregexp.New(`(://[^\s/:@"']*:)([^\s/@"']+)(@)`)
	// These match secrets by the text before them.
	headers     = lazyregexp.New(`(?i)(\bauthorization"?\s*[:=]\s*"?(?:(?:bearer|basic|token)\s+)?)([^\s"',;]{4,})()`)
	cookies     = lazyregexp.New(`(?i)(\bcookie["']?\s*:\s*["']?)([^\s"'=;]+=[^"'\n]*)()`)
	bearers     = lazyregexp.New(`(?i)(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{8,})()`)
	users       = lazyregexp.New(`(\bcurl\b[^\n]*?\s(?:-u|--user)[\s=]*["']?[^\s:"']+:)([^\s"']+)()`)
	assignments = lazyregexp.New(`(?i)(\b[A-Za-z0-9_.-]*` + secretWord +
		`=)("[^"\n]*"|'[^'\n]*'|[^\s"'&;|,)}=][^\s"'&;|,)}]*)()`)
	passwords = lazyregexp.New(
		`(?i)((?:passw(?:or)?d|passphrase|_pwd)["']?[ \t]*[:=][ \t]*["']?)([^\s"',;]{4,})(["',;]|[ \t]*(?:$|\n))`)
	spoken = lazyregexp.New(`(?i)(` + secretWord + nameEnd + spokenIs + `)([^\s"'\x60,;)}\]]{6,})()`)
)

// sign is a set of patterns that may match a text.
type sign uint8

const (
	keySign sign = 1 << iota
	shapeSign
	urlSign
	headerSign
	cookieSign
	userSign
	bearerSign
	wordSign
)

// signs lists words in lower case for each pattern. A pattern can only match a text that has one of
// its words. Most texts have none.
var signs = [...]struct {
	of    sign
	words []string
}{
	{keySign, []string{"-----begin"}},
	{shapeSign, []string{"sk-", "k_live_", "k_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-",
		"akia", "asia", "xox", "aiza", "npm_", "eyj", "xapp-", "ya29.", "gocspx-", "pypi-", "hf_", "sg.", "_v1_",
		"dckr_pat_", "shpat_", "shpca_", "shppa_", "shpss_", "whsec_", "hooks.slack.com", "api/webhooks"}},
	{urlSign, []string{"://"}},
	{headerSign, []string{"authorization"}},
	{cookieSign, []string{"cookie"}},
	{userSign, []string{"curl"}},
	{bearerSign, []string{"bearer", "basic"}},
	{wordSign, []string{"token", "secret", "passw", "passphrase", "key", "_pwd", "_auth", "credential"}},
}

// Suspicious reports whether a text has a word for which [Text] would run a pattern.
func Suspicious(text string) bool {
	for range catalog().named(strings.ToLower(text)) {
		return true
	}
	return false
}

// Certain reports whether a binary file holds a private key. Other patterns match binary data by
// chance.
func Certain(data string) bool {
	return strings.Contains(data, "PRIVATE KEY") && privateKeys().MatchString(data)
}

// Text returns text with each likely secret replaced by [Mark].
func Text(text string) string {
	var has sign
	var services []*rule
	for k := range catalog().named(strings.ToLower(text)) {
		if has |= k.of; k.rule != nil && !slices.Contains(services, k.rule) {
			services = append(services, k.rule)
		}
	}
	if has&keySign != 0 {
		text = privateKeys().ReplaceAllLiteralString(text, Mark)
	}
	if has&shapeSign != 0 {
		text = tokenShapes().ReplaceAllLiteralString(text, Mark)
	}
	if has&urlSign != 0 {
		text = replace(text, urlPasswords(), func(v string) bool { return !Reference(v) })
	}
	if has&headerSign != 0 {
		text = replace(text, headers(), func(v string) bool { return !Reference(v) && random(v, 4) })
	}
	if has&cookieSign != 0 {
		text = replace(text, cookies(), func(v string) bool { return !strings.Contains(v, Mark) })
	}
	if has&userSign != 0 {
		text = replace(text, users(), func(v string) bool { return !Reference(v) })
	}
	if has&bearerSign != 0 {
		text = replace(text, bearers(), func(v string) bool { return random(v, 8) })
	}
	if has&wordSign != 0 {
		if strings.Contains(text, "=") {
			text = replace(text, assignments(), func(v string) bool { return !Reference(strings.Trim(v, `"'`)) })
		}
		text = replace(text, passwords(), func(v string) bool { return !Reference(v) })
		text = replace(text, spoken(), func(v string) bool { return !Reference(v) && random(v, 7) })
	}
	for _, r := range services { // last, because they replace more than the secret
		text = r.redact(text)
	}
	return text
}

type expression interface {
	FindStringSubmatchIndex(s string) []int
}

// replace puts the mark in place of the second group of each match that is a secret. After a match
// that is not a secret, the search continues at its second byte: the presumed value may be the name
// of a secret itself.
func replace(text string, e expression, secret func(value string) bool) string {
	var out strings.Builder
	copied, from := 0, 0
	for from < len(text) {
		at := e.FindStringSubmatchIndex(text[from:])
		if at == nil {
			break
		}
		start, end := from+at[4], from+at[5]
		if value := text[start:end]; value == Mark || !secret(value) {
			_, size := utf8.DecodeRuneInString(text[from+at[0]:])
			from += at[0] + size
			continue
		}
		out.WriteString(text[copied:start])
		out.WriteString(Mark)
		copied, from = end, end
	}
	if copied == 0 {
		return text
	}
	out.WriteString(text[copied:])
	return out.String()
}

// Reference reports whether the value only names a secret or stands for one: $TOKEN, ${TOKEN},
// <token>, %TOKEN%, {{ token }}, ***, true.
func Reference(v string) bool {
	return v == "" || slices.Contains([]string{"true", "false", "null", "none", "nil"}, strings.ToLower(v)) ||
		strings.ContainsRune("$<%{", rune(v[0])) || strings.Trim(v, "*.x") == "" || strings.HasPrefix(v, Mark)
}

// random reports whether the value looks generated rather than like a word or a path. It needs a
// minimum length, and letters mixed with digits, signs or both cases.
func random(v string, least int) bool {
	v = strings.TrimRight(v, ".:!?")
	if len(v) < least {
		return false
	}
	var lower, upper, digit, sign int
	seen := map[byte]bool{}
	for i := range len(v) {
		b := v[i]
		seen[b] = true
		switch {
		case b >= 'a' && b <= 'z':
			lower++
		case b >= 'A' && b <= 'Z' && i > 0:
			upper++
		case b >= '0' && b <= '9':
			digit++
		case strings.IndexByte("!@#$%^&*+=~?", b) >= 0:
			sign++
		}
	}
	// A path, unless it looks like base64.
	if folders := strings.Count(v, "/"); folders > 2 && !(len(v) >= 32 && upper > folders && digit > 1) {
		return false
	}
	mixed := digit+sign > 0 && lower+upper > 0 || lower > 0 && upper > 1 && len(v) >= 16 || digit >= 16
	return mixed && len(seen) >= min(len(v)*2/5, 10)
}
