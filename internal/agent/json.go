package agent

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON returns v as JSON for a person or a model: it does not escape <, > and &. [json.Marshal]
// escapes them. A JSON reader undoes that, but not if the JSON is quoted in a text that is put into
// JSON once more.
func JSON(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// ReadableJSON removes escapes that a JSON value does not need. Text that is not JSON is returned
// unchanged.
func ReadableJSON(raw []byte) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return string(raw)
	}
	text, err := JSON(v)
	if err != nil {
		return string(raw)
	}
	return text
}
