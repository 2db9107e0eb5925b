package api

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// tagged answers with the present state. The tag is made from content: the answer without the times
// of looking, which differ in each answer.
func (c *call) tagged(seq int64, answer, content any) (any, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return c.unless(fmt.Sprintf(`"%d-%x"`, seq, sum[:8]), answer)
}

// unless answers with 304 if the client has what the tag is for, and else with the answer.
func (c *call) unless(tag string, answer any) (any, error) {
	c.w.Header().Set("ETag", tag)
	if !Has(c.Request, tag) {
		return answer, nil
	}
	c.w.WriteHeader(http.StatusNotModified)
	return nil, answered
}

// Has reports whether the client has what the tag is for, as its If-None-Match says (RFC 9110,
// 13.1.2). Strong and weak tags are alike. What follows a mistake in the list does not count.
func Has(r *http.Request, tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	rest := strings.Join(r.Header.Values("If-None-Match"), ",")
	if strings.Trim(rest, " \t") == "*" {
		return true
	}
	for {
		rest = strings.TrimPrefix(strings.TrimLeft(rest, " \t,"), "W/")
		opaque, ok := strings.CutPrefix(rest, `"`)
		if !ok {
			return false
		}
		is, more, ok := strings.Cut(opaque, `"`)
		if !ok {
			return false
		}
		if `"`+is+`"` == tag {
			return true
		}
		if rest = strings.TrimLeft(more, " \t"); rest != "" && rest[0] != ',' {
			return false
		}
	}
}
