package pgwire_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cadre/internal/journal/pgjournal/pgwire"
)

// TestValues writes values that the official client reads, and reads values that it wrote.
func TestValues(t *testing.T) {
	type row struct {
		number  int64
		text    string
		data    []byte
		numbers []int64
		texts   []string
		parts   [][]byte
		small   int
		yes     bool
		none    []byte // is read from NULL
	}
	rows := []row{
		{number: math.MinInt64, text: "", data: []byte{}, numbers: []int64{}, texts: []string{}, parts: [][]byte{}},
		{number: math.MaxInt64, text: "ü'\\\"\n", data: []byte{0, 255, '\\', 'x'}, numbers: []int64{-1, 0, math.MaxInt64},
			texts: []string{"", "NULL", "{,}", `"\`}, small: math.MinInt32, yes: true,
			parts: [][]byte{{}, nil, {0}, bytes.Repeat([]byte("x"), 70000)}},
		{text: strings.Repeat("é", 40000), small: math.MaxInt32},
	}
	const (
		read = "SELECT number, text, data, numbers, texts, parts, small, yes FROM one WHERE id = $1"
		back = "SELECT number, text, data, parts, small, yes, numbers, NULL::bytea FROM one WHERE id = $1"
	)
	inBothModes(t, func(t *testing.T, c *pgwire.Config) {
		official(t, c, `CREATE TABLE one (id bigint, number bigint, text text, data bytea, numbers bigint[], texts text[],
			parts bytea[], small integer, yes boolean)`)
		conn, other := connect(t, c), officialConn(t, c)
		for i, in := range rows {
			_, err := conn.Exec(t.Context(), "INSERT INTO one VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9 > 0)", i,
				in.number, in.text, in.data, in.numbers, in.texts, in.parts, in.small,
				map[bool]int{true: 1, false: 0}[in.yes])
			if err != nil {
				t.Fatal(err)
			}
			var out row
			err = other.QueryRow(t.Context(), read, i).Scan(&out.number, &out.text, &out.data, &out.numbers, &out.texts,
				&out.parts, &out.small, &out.yes)
			if err != nil || !reflect.DeepEqual(out, in) {
				t.Errorf("row %d was read as %.200v, %v, want %.200v", i, out, err, in)
			}
			_, err = other.Exec(t.Context(), "UPDATE one SET number = $2, text = $3, data = $4, parts = $5, small = $6, "+
				"yes = $7 WHERE id = $1", i, in.number, in.text, in.data, in.parts, in.small, in.yes)
			if err != nil {
				t.Fatal(err)
			}
			out = row{numbers: in.numbers, texts: in.texts, none: []byte("x")}
			err = conn.Query(t.Context(), back, i).Scan(&out.number, &out.text, &out.data, &out.parts, &out.small, &out.yes,
				nil, &out.none)
			if err != nil || !reflect.DeepEqual(out, in) {
				t.Errorf("row %d came back as %.200v, %v, want %.200v", i, out, err, in)
			}
		}
	})
}

// TestKeptValues checks that a value is a copy, which later rows do not change.
func TestKeptValues(t *testing.T) {
	conn := connect(t, config(t, ""))
	const many = "SELECT decode(lpad(n::text, 8, '0'), 'hex') FROM generate_series(1, 1000) n"
	all, err := pgwire.Collect(conn.Query(t.Context(), many),
		func(r pgwire.Row) (data []byte, err error) {
			err = r.Scan(&data)
			return data, err
		})
	if err != nil || len(all) != 1000 || !bytes.Equal(all[0], []byte{0, 0, 0, 1}) ||
		!bytes.Equal(all[999], []byte{0, 0, 0x10, 0}) {
		t.Errorf("%d rows, %v", len(all), err)
	}
}

// TestMisfits scans values into what does not fit, and sends what cannot be sent. The connection
// can be used afterwards.
func TestMisfits(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *pgwire.Config) {
		conn := connect(t, c)
		var number int64
		var small int
		var yes bool
		var text string
		var data []byte
		var parts [][]byte
		for _, test := range []struct {
			sql  string
			into []any
		}{
			{"SELECT NULL::bigint", []any{&number}},
			{"SELECT NULL::integer", []any{&small}},
			{"SELECT NULL::boolean", []any{&yes}},
			{"SELECT NULL::text", []any{&text}},
			{"SELECT 'abcdefgh'", []any{&number}},
			{"SELECT 1.5::float8", []any{&number}},
			{"SELECT 1::smallint", []any{&small}},
			{"SELECT 1", []any{&text}},
			{"SELECT 'x'", []any{&data}},
			{"SELECT '\\x00'::bytea", []any{&text}},
			{"SELECT '\\x00'::bytea", []any{&yes}},
			{"SELECT '\\x00'::bytea", []any{&parts}},
			{"SELECT ARRAY['x']", []any{&parts}},
			{"SELECT ARRAY[ARRAY['\\x00'::bytea]]", []any{&parts}},
			{"SELECT 1, 2", []any{&small}},
			{"SELECT 1", []any{&small, &small}},
			{"SELECT 1.5::float4", []any{new(float32)}},
		} {
			if err := conn.Query(t.Context(), test.sql).Scan(test.into...); err == nil {
				t.Errorf("%s into %T: no error", test.sql, test.into)
			}
		}
		if _, err := conn.Exec(t.Context(), "SELECT $1", 1.5); err == nil || !strings.Contains(err.Error(), "float64") {
			t.Errorf("an argument that cannot be sent: %v", err)
		}
		if err := conn.Query(t.Context(), "SELECT 1::bigint").Scan(&number); err != nil || number != 1 {
			t.Errorf("then: %d, %v", number, err)
		}
	})
}

// TestArrays decodes arrays that are cut, or whose lengths are wrong.
func TestArrays(t *testing.T) {
	t.Parallel()
	head := func(words ...uint32) (value []byte) {
		for _, w := range words {
			value = binary.BigEndian.AppendUint32(value, w)
		}
		return value
	}
	good := slices.Concat(head(1, 0, 17, 2, 1), head(3), []byte("abc"), head(1<<32-1))
	var got [][]byte
	if err := pgwire.Decode(1001, good, &got); err != nil || len(got) != 2 || string(got[0]) != "abc" || got[1] != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for cut := range good {
		if err := pgwire.Decode(1001, good[:cut], &got); err == nil {
			t.Errorf("cut at %d it is %q", cut, got)
		}
	}
	for name, bad := range map[string][]byte{
		"two dimensions":    head(2, 0, 17, 1, 1, 1, 1, 1, 0),
		"many elements":     head(1, 0, 17, 1<<31, 1),
		"a long element":    head(1, 0, 17, 1, 1, 1<<31-1),
		"a negative length": head(1, 0, 17, 2, 1, 1<<31),
	} {
		if err := pgwire.Decode(1001, bad, &got); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}
