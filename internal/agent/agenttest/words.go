package agenttest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Words describes an update or a decoded line in one line: the name of its type, and the fields
// that are set.
func Words(said any) string {
	v := reflect.ValueOf(said)
	return strings.TrimSpace(v.Type().Name() + " " + fields(v))
}

func fields(v reflect.Value) string {
	var all []string
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() && f.Kind() != reflect.Func {
			all = append(all, v.Type().Field(i).Name+"="+word(f))
		}
	}
	return strings.Join(all, " ")
}

// word formats a value as a person would write it. Fields need not be exported.
func word(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Interface, v.Kind() == reflect.Pointer:
		return word(v.Elem())
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		return string(v.Bytes())
	case v.Kind() == reflect.Struct:
		return "{" + fields(v) + "}"
	case v.Kind() == reflect.String:
		return fmt.Sprintf("%q", v.String())
	case v.Kind() == reflect.Slice:
		var all []string
		for i := range v.Len() {
			all = append(all, word(v.Index(i)))
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return fmt.Sprint(v)
}
