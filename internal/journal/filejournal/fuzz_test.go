package filejournal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cadre/internal/journal/filejournal"
)

// FuzzLine checks that the parser accepts only the writer's output, and that encoding a parsed line
// gives the same line.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"seq":1,"crc":"00000000","data":1}`))
	f.Add(bytes.TrimSpace(filejournal.AppendRecord(nil, 12, []byte(`{"a":1}`))))
	f.Add(bytes.TrimSpace(filejournal.AppendLine(nil, "seal", 3)))
	f.Add([]byte(`{"":`))
	for n := range int64(64) { // their checksums have each letter somewhere
		record := bytes.TrimSpace(filejournal.AppendRecord(nil, n, []byte(`1`)))
		for i := range record {
			if 'a' <= record[i] && record[i] <= 'f' {
				f.Add(slices.Concat(record[:i], bytes.ToUpper(record[i:i+1]), record[i+1:]))
			}
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		key, n, rest, bad := filejournal.ParseParts(line)
		if bad != "" {
			return
		}
		if again := filejournal.AppendLine(nil, key, n, rest); !bytes.Equal(again, append(line, '\n')) {
			t.Errorf("%q passed, and is written %q", line, again)
		}
	})
}

// FuzzSegment opens a journal whose segment ends with arbitrary bytes. The records before them are
// read, and nothing panics.
func FuzzSegment(f *testing.F) {
	f.Add([]byte("{"), true)
	f.Add(filejournal.AppendRecord(nil, 3, []byte(`3`)), false)
	f.Add(filejournal.AppendLine(nil, "seal", 2), true)
	f.Add([]byte("\n\n\n"), true)
	f.Add(filejournal.AppendLine(nil, "seal", 0), true)
	f.Fuzz(func(t *testing.T, tail []byte, marked bool) {
		want := numbered(2)
		dir := create(t, filejournal.Options{}, want...)
		path := segmentPath(dir, 1)
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(tail)
		file.Close()
		if !marked {
			os.Remove(filepath.Join(dir, "journal", "durable"))
		}
		got, err := readAll(dir, filejournal.Options{})
		if len(got) < 2 || !slices.Equal(got[:2], want) || (err != nil && marked) {
			t.Errorf("read %q, %v", got, err)
		}
		if _, err := filejournal.Check(dir); err != nil {
			t.Errorf("check: %v", err)
		}
		seq, err := appendTo(dir, `"new"`, filejournal.Options{})
		if err == nil {
			if got, err := readAll(dir, filejournal.Options{}); err != nil || int64(len(got)) != seq ||
				got[seq-1] != `"new"` {
				t.Errorf("appended %d: read %q, %v", seq, got, err)
			}
		} else if marked {
			t.Errorf("append: %v", err)
		}
	})
}
