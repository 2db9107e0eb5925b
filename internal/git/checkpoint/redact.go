package checkpoint

import (
	"bytes"
	"encoding/json"
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
	spoken     = lazyregexp.New(`(?i)(` + secretWord + nameEnd + spokenIs + `)([^\s"'\x60,;)}\]]{6,})()`)
	secretKeys = lazyregexp.New(
		`(?i)(?:^|[_.-])(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|key|pwd|auth|credentials?)$|[a-z](?:Token|Secret|Password|Key)$`)
)

// What every text has that a pattern can find something in, in lower case. Most texts have none of
// these.
var (
	shapeSigns = []string{"sk-", "k_live_", "k_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-",
		"akia", "asia", "xox", "aiza", "npm_", "eyj", "xapp-", "ya29.", "gocspx-", "pypi-", "hf_", "sg.", "_v1_",
		"dckr_pat_", "shpat_", "shpca_", "shppa_", "shpss_", "whsec_", "hooks.slack.com", "api/webhooks"}
	wordSigns   = []string{"token", "secret", "passw", "passphrase", "key", "_pwd", "_auth", "credential"}
	headerSigns = []string{"authorization"}
	cookieSigns = []string{"cookie"}
	userSigns   = []string{"curl"}
	bearerSigns = []string{"bearer", "basic"}
	keySigns    = []string{"-----begin"}
	urlSigns    = []string{"://"}
)

func hasAny(low string, signs []string) bool {
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(low, sign) })
}

// suspicious reports whether [Redact] would look closer.
func suspicious(text string) bool {
	low := strings.ToLower(text)
	for _, signs := range [][]string{shapeSigns, wordSigns, headerSigns, cookieSigns, userSigns, bearerSigns,
		keySigns, urlSigns} {
		if hasAny(low, signs) {
			return true
		}
	}
	return false
}

// Redact returns the text with [Mark] in the place of what is likely a secret.
func Redact(text string) string {
	low := strings.ToLower(text)
	if hasAny(low, keySigns) {
		text = privateKeys().ReplaceAllLiteralString(text, Mark)
	}
	if hasAny(low, shapeSigns) {
		text = tokenShapes().ReplaceAllLiteralString(text, Mark)
	}
	if hasAny(low, urlSigns) {
		text = replace(text, urlPasswords(), func(v string) bool { return !reference(v) })
	}
	if hasAny(low, headerSigns) {
		text = replace(text, headers(), func(v string) bool { return !reference(v) && random(v, 4) })
	}
	if hasAny(low, cookieSigns) {
		text = replace(text, cookies(), func(v string) bool { return !strings.Contains(v, Mark) })
	}
	if hasAny(low, userSigns) {
		text = replace(text, users(), func(v string) bool { return !reference(v) })
	}
	if hasAny(low, bearerSigns) {
		text = replace(text, bearers(), func(v string) bool { return random(v, 8) })
	}
	if hasAny(low, wordSigns) {
		if strings.Contains(text, "=") {
			text = replace(text, assignments(), func(v string) bool { return !reference(strings.Trim(v, `"'`)) })
		}
		text = replace(text, passwords(), func(v string) bool { return !reference(v) })
		text = replace(text, spoken(), func(v string) bool { return !reference(v) && random(v, 7) })
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

// reference reports whether the value names a secret and is none: $TOKEN, ${TOKEN}, <token>,
// %TOKEN%, {{ token }}, ***, true.
func reference(v string) bool {
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

// names are the keys of values that other values name, in what cadre itself writes. They are names
// and numbers, and a changed one would name nobody.
var names = []string{"id", "name", "owner", "member", "task", "from", "to", "recipients", "blockedBy", "blocks",
	"session", "lead", "actor", "by", "ref", "request", "host",
	"createdBy", "completedBy", "kind", "status", "type", "unblocked", "team_id", "team_name", "history",
	"lead_session_id", "task_claimed", "assigned_to", "dependencies", "pending", "completed", "digest"}

// foreign are the keys of values whose keys are not ours.
var foreign = []string{"metadata"}

// redactJSON redacts every text in a JSON value, or in lines of them. What is not a text stays byte
// for byte as it is.
func redactJSON(in []byte) []byte {
	r := redactor{in: in}
	r.run()
	if r.out == nil {
		return in
	}
	return append(r.out, in[r.copied:]...)
}

type redactor struct {
	in     []byte
	out    []byte
	copied int // of in

	foreign int      // depth of the outermost object whose keys are not ours; 0 for none
	keys    []string // the key of the value that each open object or array is
	key     string   // of the next value
	before  string   // the text before, in the same array
}

func (r *redactor) run() {
	for i := 0; i < len(r.in); i++ {
		switch r.in[i] {
		case '"':
			end := r.end(i)
			r.text(i, end)
			i = end - 1
		case '{', '[':
			r.keys = append(r.keys, r.key)
			if r.foreign == 0 && slices.Contains(foreign, r.key) {
				r.foreign = len(r.keys)
			}
			if r.in[i] == '{' {
				r.key = ""
			}
			r.before = ""
		case '}', ']':
			if r.foreign == len(r.keys) {
				r.foreign = 0
			}
			if n := len(r.keys) - 1; n >= 0 { // in an array, the key of the array is that of all that is in it
				r.key, r.keys = r.keys[n], r.keys[:n]
			}
			r.before = ""
		}
	}
}

// end is the position after the text that begins at i.
func (r *redactor) end(i int) int {
	for j := i + 1; j < len(r.in); j++ {
		switch r.in[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return len(r.in)
}

func (r *redactor) text(from, to int) {
	raw := r.in[from:to]
	if rest := bytes.TrimLeft(r.in[to:min(len(r.in), to+8)], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
		r.key = string(bytes.Trim(raw, `"`))
		if r.foreign > 0 { // the value of such a key could be anything, the key too
			r.replace(from, to, Redact)
		}
		return
	}
	key, before := r.key, r.before
	r.before = string(raw)
	switch {
	case r.foreign == 0 && slices.Contains(names, key):
	case r.foreign == 0 && key == "env": // nobody can tell by its looks what is in one
		r.replace(from, to, func(v string) string {
			if name, value, ok := strings.Cut(v, "="); ok && value != "" {
				return name + "=" + Mark
			}
			return v
		})
	case r.foreign > 0 && secretKeys().MatchString(key), flagOfSecret(before):
		r.replace(from, to, func(v string) string {
			if reference(v) {
				return v
			}
			return Mark
		})
	case suspicious(string(raw)) || bytes.Contains(raw, []byte(`\u`)):
		r.replace(from, to, Redact)
	}
}

// flagOfSecret reports whether the argument is a flag whose value comes with the next one.
func flagOfSecret(arg string) bool {
	name := strings.Trim(arg, `"`)
	return strings.HasPrefix(name, "-") && !strings.Contains(name, "=") && secretKeys().MatchString(name)
}

func (r *redactor) replace(from, to int, redact func(string) string) {
	var value string
	if json.Unmarshal(r.in[from:to], &value) != nil {
		return
	}
	redacted := redact(value)
	if redacted == value {
		return
	}
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	if e.Encode(redacted) != nil {
		return
	}
	r.out = append(append(r.out, r.in[r.copied:from]...), bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
	r.copied = to
}
