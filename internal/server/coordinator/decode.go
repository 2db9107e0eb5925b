package coordinator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"cadre/internal/team"
)

// frame is a request as it came.
type frame struct {
	Type    string          `json:"type"`              // type of the request
	ID      json.RawMessage `json:"id,omitempty"`      // a text or a number, for the reply
	Key     string          `json:"key,omitempty"`     // makes the request safe to send again
	Payload json.RawMessage `json:"payload,omitempty"` // what it is about
}

// maxID bounds the id of a request, in bytes.
const maxID = 256

// usageError says that a frame is not a request.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// decode reads a frame, and its payload into a new value of the request's type. The frame has what
// could be read, also if there is an error.
func decode(data []byte) (f frame, row request, payload any, err error) {
	value, err := decodeObject("the frame", data, reflect.TypeFor[frame]())
	if value != nil {
		f = *value.(*frame)
	}
	if id := bytes.TrimSpace(f.ID); string(id) == "null" {
		f.ID = nil
	} else if len(id) > 0 && (len(id) > maxID || !strings.ContainsRune(`"-0123456789`, rune(id[0]))) {
		f.ID = nil
		err = cmp.Or(err, errors.New("the id must be a text or a number of at most 256 bytes"))
	}
	if err != nil {
		return f, row, nil, usageError{err}
	}
	if len(f.Key) > team.MaxID {
		return f, row, nil, usage("the key has %d bytes, of at most %d", len(f.Key), team.MaxID)
	}
	if row = requestOf(f.Type); row.Type == "" {
		return f, row, nil, usage("a request of the type %q does not exist; GET /v1/asyncapi.json describes them",
			clip(f.Type))
	}
	if len(f.Payload) == 0 || string(f.Payload) == "null" {
		f.Payload = json.RawMessage("{}")
	}
	if payload, err = decodeObject("the payload", f.Payload, row.Payload); err != nil {
		return f, row, nil, usage("%s: %w", row.Type, err)
	}
	return f, row, payload, nil
}

func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 80)], "") }

// decodeObject reads an object into a new value of the type, and returns a pointer to it, also if
// something is missing. what names the object in errors.
func decodeObject(what string, data json.RawMessage, kind reflect.Type) (any, error) {
	var fields map[string]json.RawMessage
	if err := strictly(data, &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // the decoder would also take other cases
		if _, known := fieldOf(kind, name); !known {
			return nil, fmt.Errorf("%s has a field %q, which is not known", what, clip(name))
		}
	}
	value := reflect.New(kind)
	if err := strictly(data, value.Interface()); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	for i := range kind.NumField() {
		field := kind.Field(i)
		name, optional := nameOf(field)
		raw, there := fields[name]
		switch there = there && string(raw) != "null"; {
		case !there && !optional:
			return value.Interface(), fmt.Errorf("%s has no %s", what, name)
		case there:
			if err := among(field, value.Elem().Field(i)); err != nil {
				return value.Interface(), err
			}
		}
	}
	return value.Interface(), nil
}

// fieldOf returns the field of that name in JSON.
func fieldOf(kind reflect.Type, name string) (reflect.StructField, bool) {
	for i := range kind.NumField() {
		if is, _ := nameOf(kind.Field(i)); is == name {
			return kind.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

// nameOf returns the name of the field in JSON, and whether it may be missing.
func nameOf(f reflect.StructField) (name string, optional bool) {
	name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, rest == "omitempty"
}

// among refuses a text that the tag enum of its field does not list.
func among(field reflect.StructField, value reflect.Value) error {
	list, restricted := field.Tag.Lookup("enum")
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if !restricted || slices.Contains(strings.Fields(list), value.String()) {
		return nil
	}
	name, _ := nameOf(field)
	return fmt.Errorf("%s: %q is not one of: %s", name, clip(value.String()), strings.Join(strings.Fields(list), ", "))
}

// strictly decodes one JSON value that has no unknown fields.
func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is && wrong.Field != "" {
			return fmt.Errorf("%s cannot be a JSON %s", wrong.Field, wrong.Value)
		} else if is {
			return fmt.Errorf("a JSON object is needed, not a JSON %s", wrong.Value)
		}
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}
