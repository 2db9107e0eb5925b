package teamfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// object is a JSON object that keeps the order of its keys, and keys that are unknown here.
type object struct {
	keys   []string
	values map[string]json.RawMessage
}

var errNoObject = errors.New("it is not a JSON object")

func (o *object) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return errNoObject
	}
	*o = object{values: map[string]json.RawMessage{}}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		o.put(key.(string), value)
	}
	_, err := d.Token()
	return err
}

func (o *object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, key := range o.keys {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := marshal(key)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), o.values[key]...)
	}
	return append(b, '}'), nil
}

func (o *object) put(key string, value json.RawMessage) {
	if _, there := o.values[key]; !there {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

func (o *object) drop(key string) {
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

func (o *object) set(key string, value any) error {
	data, err := marshal(value)
	if err == nil {
		o.put(key, data)
	}
	return err
}

// objectOf converts a value to an object.
func objectOf(v any) (*object, error) {
	data, err := marshal(v)
	if err != nil {
		return nil, err
	}
	o := &object{}
	return o, json.Unmarshal(data, o)
}

// decode decodes the fields of a struct from the object.
func (o *object) decode(into any) error {
	if o == nil { // null
		return errNoObject
	}
	data, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// change applies the difference between two values of the same struct to the object.
func (o *object) change(before, after any) error {
	old, err := objectOf(before)
	if err != nil {
		return err
	}
	fresh, err := objectOf(after)
	if err != nil {
		return err
	}
	for _, key := range old.keys {
		if _, there := fresh.values[key]; !there {
			o.drop(key)
		}
	}
	for _, key := range fresh.keys {
		if !bytes.Equal(old.values[key], fresh.values[key]) {
			o.put(key, fresh.values[key])
		}
	}
	return nil
}

// marshal is like json.Marshal, but does not escape <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
