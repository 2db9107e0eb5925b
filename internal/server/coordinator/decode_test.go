package coordinator

import (
	"encoding/json"
	"testing"
)

// FuzzDecode: a frame that is accepted is one that the description allows, and any other one gets
// an error that can be sent.
func FuzzDecode(f *testing.F) {
	for _, r := range requests() {
		data, err := json.Marshal(map[string]any{"type": r.Type, "id": 1, "key": "k",
			"payload": SamplePayload(r.Type, "x")})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, odd := range []string{"", "{}", "[]", `{"type":"ping","id":{}}`, `{"TYPE":"ping"}`,
		`{"type":"ping","payload":null}`, `{"type":"subscribe","payload":{"teamId":"x","after":1e3}}`,
		`{"type":"team_status","payload":{"TeamId":"x"}}`,
		`{"type":"create_team","payload":{"leadSessionId":"s","name":"n","teammateMode":"","metadata":{"a":[{}]}}}`,
		`{"type":"team_update_task","payload":{"teamId":"x","taskId":"1","status":"pending","title":null}}`} {
		f.Add([]byte(odd))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, row, payload, err := decode(data)
		if err != nil {
			is := failureOf(err)
			answer := answerFrame{Type: "error", ID: frame.ID, Payload: is}.encode()
			if is.Code != codeUsage {
				t.Errorf("%q: %+v", data, is)
			}
			if err := ValidFrame(answer, ""); err != nil {
				t.Errorf("%q is answered by %s: %v", data, answer, err)
			}
			return
		}
		if payload == nil || row.Type != frame.Type {
			t.Fatalf("%q is %s with %v", data, row.Type, payload)
		}
		var value map[string]any
		if err := json.Unmarshal(data, &value); err != nil {
			t.Fatal(err)
		}
		withoutNull(value)
		if inner, is := value["payload"].(map[string]any); is {
			withoutNull(inner)
		}
		if err := validMessage("request."+row.Type, value); err != nil {
			t.Errorf("%q is accepted, and not described: %v", data, err)
		}
	})
}

// withoutNull removes what is null, which stands for what is missing.
func withoutNull(v map[string]any) {
	for name, one := range v {
		if one == nil {
			delete(v, name)
		}
	}
}
