package coordinator

import (
	"reflect"
	"time"

	"cadre/internal/server/auth"
)

// TakeSlowReader sets how long a client may take to read a frame, before any is connected.
func TakeSlowReader(d time.Duration) { slowReader = d }

// RolesOfRequests returns the role that each request needs.
func RolesOfRequests() map[string]auth.Role {
	roles := map[string]auth.Role{}
	for _, r := range requests() {
		roles[r.Type] = r.Role
	}
	return roles
}

// SamplePayload returns a payload of the request about that team, which is of the right form.
func SamplePayload(kind, id string) map[string]any {
	payload := map[string]any{}
	for _, r := range requests() {
		if r.Type != kind {
			continue
		}
		for f := range r.Payload.Fields() {
			if name, optional := nameOf(f); !optional && f.Type.Kind() == reflect.String {
				payload[name] = id
			}
		}
	}
	return payload
}
