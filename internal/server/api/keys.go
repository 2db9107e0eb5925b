package api

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"unicode/utf8"
)

// mostKeys bounds how many keys are remembered; the oldest are forgotten.
const mostKeys = 10_000

// Keys remembers what the last requests with an Idempotency-Key asked for, so that a key of another
// request is refused although the record of that one looks alike. It forgets with the server; after
// that only the record tells. The zero value remembers nothing yet. Any goroutine may call its
// methods.
type Keys struct {
	mu    sync.Mutex
	sums  map[string][sha256.Size]byte
	order []string // the keys, the oldest first
}

// ErrKeyUsed refuses a request whose key belongs to another one.
var ErrKeyUsed error = usageError{errors.New("the Idempotency-Key was used for another request; use a new one for " +
	"each request")}

// Check refuses the key if it belongs to a request that asked for something else. The returned
// function remembers the key; call it when the request was carried out.
func (k *Keys) Check(key string, asks ...any) (done func(), err error) {
	if key == "" {
		return func() {}, nil
	}
	if !utf8.ValidString(key) {
		return nil, usageError{errors.New("the Idempotency-Key is not UTF-8")}
	}
	data, err := json.Marshal(asks)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	k.mu.Lock()
	defer k.mu.Unlock()
	if had, ok := k.sums[key]; ok && had != sum {
		return nil, ErrKeyUsed
	}
	return func() { k.remember(key, sum) }, nil
}

func (k *Keys) remember(key string, sum [sha256.Size]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.sums[key]; ok {
		return
	}
	if k.sums == nil {
		k.sums = map[string][sha256.Size]byte{}
	}
	if len(k.order) >= mostKeys {
		delete(k.sums, k.order[0])
		k.order = k.order[1:]
	}
	k.sums[key] = sum
	k.order = append(k.order, key)
}
