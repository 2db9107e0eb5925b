package client

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"cadre/internal/server/api"
)

// fill sets every exported field to a value that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"a":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), one)
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(3 * time.Second))
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("no value for a " + v.Kind().String())
	}
}

// unset returns the name of a field that is zero; "" for none.
func unset(v reflect.Value) string {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if v.Field(i).IsZero() {
			return f.Name
		}
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]() {
			if name := unset(v.Field(i)); name != "" {
				return f.Name + "." + name
			}
		}
	}
	return ""
}

// TestBodiesHaveEveryField checks that a program can say all that a route takes, and that the
// server knows all that the client sends.
func TestBodiesHaveEveryField(t *testing.T) {
	for _, c := range []struct{ ours, theirs any }{{&TeamSpec{}, &api.TeamSpec{}}, {&MemberSpec{}, &api.MemberSpec{}},
		{&ShutdownSpec{}, &api.ShutdownSpec{}}, {&ShutdownAnswer{}, &api.ShutdownAnswer{}},
		{&TaskSpec{}, &api.TaskSpec{}}, {&TaskChange{}, &api.TaskChange{}}, {&MessageSpec{}, &api.MessageSpec{}},
		{&BroadcastSpec{}, &api.BroadcastSpec{}}, {&PermissionAnswer{}, &api.PermissionAnswer{}},
		{&PlanAnswer{}, &api.PlanAnswer{}}, {&ruleSpec{}, &api.RuleSpec{}},
		{&outcome{}, &api.Outcome{}}, {&BudgetChange{}, &api.BudgetChange{}},
		{&ConsolidationSpec{}, &api.ConsolidationSpec{}},
		{&Delegation{}, &api.On{}}} {
		fill(reflect.ValueOf(c.ours).Elem())
		data, err := json.Marshal(c.ours)
		ok(t, err)
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(c.theirs); err != nil {
			t.Errorf("the server reads no %T: %v", c.ours, err)
		}
		if name := unset(reflect.ValueOf(c.theirs).Elem()); name != "" {
			t.Errorf("a %T lacks what the server reads as %s: %s", c.ours, name, data)
		}
	}
}

// TestAnswersHaveEveryField checks that a program gets all that a route answers with, for the
// answers that package teams has no type for.
func TestAnswersHaveEveryField(t *testing.T) {
	for _, c := range []struct{ ours, theirs any }{{&Health{}, &api.Health{}}, {&Caller{}, &api.Caller{}},
		{&Summary{}, &api.Since{}}, {&Diff{}, &api.Diff{}}, {&Answered{}, &api.Answered{}},
		{&rule{}, &api.PermissionRule{}}} {
		fill(reflect.ValueOf(c.theirs).Elem())
		data, err := json.Marshal(c.theirs)
		ok(t, err)
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(c.ours); err != nil {
			t.Errorf("a %T lacks a field of %s: %v", c.ours, data, err)
		}
		if name := unset(reflect.ValueOf(c.ours).Elem()); name != "" {
			t.Errorf("the field %s of a %T is in no answer", name, c.ours)
		}
	}
}
