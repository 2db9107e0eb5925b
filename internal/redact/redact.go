package redact

import (
	"slices"
	"strings"
	"unicode/utf8"

	"cadre/internal/sys/lazyregexp"
)

// Mark stands where a likely secret was.
const Mark = "[redacted]"

// secretWord is a word for a secret, and nameEnd what may follow it in the name of one:
// secret_access_key, tokenValue.
const (
	secretWord = `(?:token|secret|passw(?:or)?d|passphrase|(?:api|access|private|account|signing|encryption|master|client|service)[ _-]?key|_key|_pwd|_auth|credentials?)`
	nameEnd    = `(?:[A-Za-z_]+|-[A-Za-z]+\b)*[0-9]?`
	spokenIs   = `(?:["'\x60\]]|\s)*(?:is|was|:=|=>|[:=])?(?:["'\x60]|\s)*`
)

var (
	// Secrets that are known by their own shape.
	tokenShapes = lazyregexp.New(
		`\bsk-[A-Za-z0-9_-]{16,}|\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|` +
			`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bxox[a-z]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{16,}|\bGOCSPX-[A-Za-z0-9_-]{20,}|\bnpm_[A-Za-z0-9]{30,}|` +
			`\bpypi-[A-Za-z0-9_-]{30,}|\bhf_[A-Za-z0-9]{20,}|\bSG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|\bdo[opr]_v1_[a-f0-9]{20,}|\bdckr_pat_[A-Za-z0-9_-]{20,}|\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{20,}|\bwhsec_[A-Za-z0-9+/=]{16,}|` +
			`\bhooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{16,}|\bdiscord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{16,}|` +
			`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?`)
	privateKeys = lazyregexp.New(
		`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`)
	urlPasswords = lazyregexp.New(`(://[^\s/:@"']*:)([^\s/@"']+)(@)`)
	// Secrets that are known by what stands before them.
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

// sign says which patterns may find something in a text.
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

// signs are what every text has that a pattern can find something in, in lower case. Most texts have
// none of these.
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

// Suspicious reports whether [Text] would look closer.
func Suspicious(text string) bool {
	for range catalog().named(strings.ToLower(text)) {
		return true
	}
	return false
}

// Certain reports whether a file that is not text holds what cannot be mistaken: a private key.
func Certain(data string) bool {
	return strings.Contains(data, "PRIVATE KEY") && privateKeys().MatchString(data)
}

// Text returns the text with [Mark] in the place of what is likely a secret.
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
	for _, r := range services { // last: they take more around a secret than is one
		text = r.redact(text)
	}
	return text
}

type expression interface {
	FindStringSubmatchIndex(s string) []int
}

// replace puts the mark in the place of the second group of each match that is a secret. Behind a
// match that is none it looks on from its second byte: what was taken for a value may be the name
// of one.
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

// Reference reports whether the value names a secret and is none: $TOKEN, ${TOKEN}, <token>,
// %TOKEN%, {{ token }}, ***, true.
func Reference(v string) bool {
	return v == "" || slices.Contains([]string{"true", "false", "null", "none", "nil"}, strings.ToLower(v)) ||
		strings.ContainsRune("$<%{", rune(v[0])) || strings.Trim(v, "*.x") == "" || strings.HasPrefix(v, Mark)
}

// random reports whether the value is rather made by a machine, or for one, than a word or a path
// of a text: long enough, with letters and with digits or signs or both cases between them.
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
	// a path, and not the base 64 of bytes
	if folders := strings.Count(v, "/"); folders > 2 && !(len(v) >= 32 && upper > folders && digit > 1) {
		return false
	}
	mixed := digit+sign > 0 && lower+upper > 0 || lower > 0 && upper > 1 && len(v) >= 16 || digit >= 16
	return mixed && len(seen) >= min(len(v)*2/5, 10)
}
