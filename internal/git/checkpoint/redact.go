package checkpoint

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"cadre/internal/render/redact"
	"cadre/internal/sys/lazyregexp"
)

// Mark replaces a likely secret.
const Mark = redact.Mark

// secretKeys matches the keys of secrets, in objects whose keys cadre does not define.
var secretKeys = lazyregexp.New(
	`(?i)(?:^|[_.-])(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|key|pwd|auth|credentials?)$|[a-z](?:Token|Secret|Password|Key)$`)

// names are the keys of values that refer to other values, in what cadre itself writes. Such values
// are names and numbers. Redacting one would break the reference.
var names = []string{"id", "name", "owner", "member", "task", "from", "to", "recipients", "blockedBy", "blocks",
	"session", "lead", "actor", "by", "ref", "request", "host",
	"createdBy", "completedBy", "failedBy", "setBy", "updatedBy", "otherBy", "kind", "status", "type", "unblocked",
	"team_id", "team_name", "parent_team_id", "history",
	"lead_session_id", "task_claimed", "assigned_to", "dependencies", "pending", "completed", "digest"}

// foreign are the keys of objects whose keys cadre does not define.
var foreign = []string{"metadata"}

// RedactJSON replaces likely secrets in every text of a JSON value of a team, or of lines of them.
// Everything else stays the same, byte for byte.
func RedactJSON(in []byte) []byte {
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
	copied int // bytes of in that are copied

	foreign int      // depth of the outermost object with foreign keys; 0 for none
	keys    []string // the key of each open object or array
	key     string   // of the next value
	before  string   // the text before it in the same array
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
			if n := len(r.keys) - 1; n >= 0 { // the key of an array applies to all of its elements
				r.key, r.keys = r.keys[n], r.keys[:n]
			}
			r.before = ""
		}
	}
}

// end returns the position after the text that begins at i.
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
		if r.foreign > 0 { // the value of such a key could be anything, and so could the key
			r.replace(from, to, redact.Text)
		}
		return
	}
	key, before := r.key, r.before
	r.before = string(raw)
	switch {
	case r.foreign == 0 && slices.Contains(names, key):
	case r.foreign == 0 && key == "env": // a variable's value does not show whether it is a secret
		r.replace(from, to, func(v string) string {
			if name, value, ok := strings.Cut(v, "="); ok && value != "" {
				return name + "=" + redact.Mark
			}
			return v
		})
	case r.foreign > 0 && secretKeys().MatchString(key), flagOfSecret(before):
		r.replace(from, to, func(v string) string {
			if redact.Reference(v) {
				return v
			}
			return redact.Mark
		})
	case redact.Suspicious(string(raw)) || bytes.Contains(raw, []byte(`\u`)):
		r.replace(from, to, redact.Text)
	}
}

// flagOfSecret reports whether the argument is a flag and the next argument is its secret value.
func flagOfSecret(arg string) bool {
	name := strings.Trim(arg, `"`)
	return strings.HasPrefix(name, "-") && !strings.Contains(name, "=") && secretKeys().MatchString(name)
}

func (r *redactor) replace(from, to int, change func(string) string) {
	var value string
	if json.Unmarshal(r.in[from:to], &value) != nil {
		return
	}
	redacted := change(value)
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
