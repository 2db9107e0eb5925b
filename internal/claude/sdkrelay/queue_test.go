package sdkrelay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestQueue compares the queue with a list. Messages arrive in order, starting at the first
// unacknowledged one after a reconnection. The memory is bounded, and the file is empty when all
// messages are acknowledged.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const memory, disk = 100, 1000
		q := newQueue(memory, disk)
		defer q.discard()
		expired, cancel := context.WithCancel(context.Background())
		cancel() // so that a call that would wait returns an error
		var all []message
		at, acked := int64(0), int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				n := rapid.IntRange(0, 150).Draw(t, "length")
				m := message{data: []byte(fmt.Sprintf("%d%s", len(all), strings.Repeat("x", n))),
					binary: rapid.Bool().Draw(t, "binary")}
				if err := q.put(expired, m); err == nil {
					all = append(all, m)
				} else if q.file.end+int64(len(m.data)+spillHead) <= disk {
					t.Fatalf("there is room: %v", err)
				}
			},
			"next": func(t *rapid.T) {
				m, more, err := q.next(expired, at)
				if err != nil {
					if at < int64(len(all)) && q.bytes <= memory && at == acked {
						t.Fatalf("message %d of %d does not come: %v", at, len(all), err)
					}
					return
				}
				if string(m.data) != string(all[at].data) || m.binary != all[at].binary {
					t.Fatalf("message %d is %.20q", at, m.data)
				}
				at++
				if more && at >= int64(len(all)) {
					t.Fatal("there is none behind it")
				}
			},
			"ack": func(t *rapid.T) {
				if at > acked {
					acked = rapid.Int64Range(acked, at).Draw(t, "until")
				}
				if err := q.ack(acked); err != nil {
					t.Fatal(err)
				}
			},
			"again": func(t *rapid.T) {
				var err error
				if at, _, err = q.rewind(1 << 30); err != nil || at != acked {
					t.Fatalf("it begins again at %d, and %d were acknowledged: %v", at, acked, err)
				}
			},
			"": func(t *rapid.T) {
				if len(q.held) > 1 && q.bytes > memory {
					t.Fatalf("%d bytes in memory", q.bytes)
				}
				if q.idle() != (acked == int64(len(all))) || q.idle() && q.file.end != 0 {
					t.Fatalf("idle: %t, with %d of %d acknowledged, %d bytes on disk", q.idle(), acked,
						len(all), q.file.end)
				}
			},
		})
		q.close()
		if err := q.ack(at); err != nil { // acknowledged messages make room for those in the file
			t.Fatal(err)
		}
		for ; at < int64(len(all)); at++ {
			m, _, err := q.next(expired, at)
			if err != nil || string(m.data) != string(all[at].data) {
				t.Fatalf("message %d is %.20q, %v", at, m.data, err)
			}
			if err := q.ack(at + 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := q.next(expired, at); !errors.Is(err, io.EOF) {
			t.Fatalf("behind the last: %v", err)
		}
	})
}

// TestDiskIsFull checks that a full disk only means that there is no room, and that its content
// stays readable.
func TestDiskIsFull(t *testing.T) {
	q := newQueue(1, 1000)
	defer q.discard()
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	for n := range 3 {
		if err := q.put(expired, message{data: fmt.Append(nil, n)}); err != nil {
			t.Fatal(err)
		}
	}
	file := q.file.file
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	q.file.file = full
	if err := q.put(expired, message{data: []byte("no room")}); !errors.Is(err, context.Canceled) {
		t.Errorf("on a full disk: %v", err)
	}
	q.file.file = file
	full.Close()
	for n := range 3 {
		m, _, err := q.next(expired, int64(n))
		if err != nil || string(m.data) != fmt.Sprint(n) {
			t.Errorf("%d is %q, %v", n, m.data, err)
		}
		if err := q.ack(int64(n) + 1); err != nil {
			t.Error(err)
		}
	}
}
