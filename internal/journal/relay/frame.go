package relay

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// kind says what a frame is.
type kind byte

const (
	isRequest kind = 'q' // JSON: [request]
	isRecord  kind = 'r' // the seq in 8 bytes, and the data of a record
	isAsk     kind = 'a' // nothing: the client is to decide
	isData    kind = 'd' // data; a snapshot begins with its seq in 8 bytes
	isNothing kind = 'n' // the client decided to write nothing
	isValue   kind = 'v' // JSON: the result of the call
	isError   kind = 'e' // JSON: [failure]
	isUntil   kind = 'u' // JSON: the time until which a lease is held, in nanoseconds since 1970
)

const (
	headLen   = 5
	maxLength = 96 << 20 // of the content: more than the longest record or value takes as JSON
)

// writeFrame writes a frame, whose content is in parts.
func writeFrame(w io.Writer, k kind, parts ...[]byte) error {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	if length > maxLength {
		return fmt.Errorf("a frame of %d bytes is too long", length)
	}
	frame := make([]byte, 0, headLen+length)
	frame = binary.BigEndian.AppendUint32(frame, uint32(length))
	frame = append(frame, byte(k))
	for _, part := range parts {
		frame = append(frame, part...)
	}
	_, err := w.Write(frame)
	return err
}

// writeJSON writes a frame with the value.
func writeJSON(w io.Writer, k kind, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return writeFrame(w, k, content)
}

// readFrame reads a frame.
func readFrame(r *bufio.Reader) (k kind, content []byte, err error) {
	var head [headLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[:4])
	if length > maxLength {
		return 0, nil, fmt.Errorf("a frame of %d bytes is too long", length)
	}
	content = make([]byte, length)
	if _, err := io.ReadFull(r, content); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return kind(head[4]), content, nil
}

// seqLen is the length of a seq at the beginning of a content.
const seqLen = 8

func withSeq(seq int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(seq)) }

func cutSeq(content []byte) (seq int64, rest []byte, err error) {
	if len(content) < seqLen {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return int64(binary.BigEndian.Uint64(content)), content[seqLen:], nil
}

// call names what a request is for.
type call string

const (
	callOpen         call = "open"
	callAppend       call = "append"
	callRead         call = "read"
	callWait         call = "wait"
	callSnapshot     call = "snapshot"
	callDue          call = "due"
	callSaveSnapshot call = "save"
	callKeyframes    call = "keyframes"
	callKeyframe     call = "keyframe"
	callSaveKeyframe call = "saveKeyframe"

	callAcquire call = "acquire"
	callHeld    call = "held"
	callHolder  call = "holder"
	callAllHeld call = "allHeld"

	callGet     call = "get"
	callHas     call = "has"
	callAll     call = "all"
	callPut     call = "put"
	callPutOnce call = "putOnce"
	callReplace call = "replace"
	callDelete  call = "delete"
	callAwait   call = "await"
)

// request is the first frame of a connection.
type request struct {
	Call   call    `json:"call"`
	Seq    int64   `json:"seq,omitempty"`    // the record after which to read, or of a keyframe
	Size   int     `json:"size,omitempty"`   // of the next snapshot, in bytes
	Name   string  `json:"name,omitempty"`   // of a lease, a key, a folder or a prefix
	Data   []byte  `json:"data,omitempty"`   // of a value or a keyframe
	Values []value `json:"values,omitempty"` // to replace
}

// value is a [store.Value].
type value struct {
	Key  string `json:"key"`
	Data []byte `json:"data"`
	Err  string `json:"err,omitempty"`
}

// opened is the answer to the first call of a client.
type opened struct {
	ID string `json:"id"` // of the journal
}

// held is the answer to a call about a lease.
type held struct {
	Is      bool     `json:"is"`
	Fence   int64    `json:"fence,omitempty"`
	Until   int64    `json:"until,omitempty"` // nanoseconds since 1970; 0 for no end
	Machine string   `json:"machine,omitempty"`
	Pid     int      `json:"pid,omitempty"`
	Names   []string `json:"names,omitempty"`
}
