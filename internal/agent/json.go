package agent

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON returns v in JSON as a person or a model is to read it: <, > and & stay as they are. What
// [json.Marshal] makes of them is undone by whoever reads JSON, but not where that stands in a
// text, which is put into JSON once more on its way.
func JSON(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// ReadableJSON is a JSON value without escapes that it does not need; what is no JSON stays as it
// is.
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
