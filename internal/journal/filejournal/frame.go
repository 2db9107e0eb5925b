package filejournal

import (
	"bytes"
	"strconv"
	"strings"

	"cadre/internal/sys/crc32c"
)

// Maximum length of a record's data, and of a line, in bytes.
const (
	maxData = 64 << 20
	maxLine = maxData + 256
)

// The first key of a line says what it is.
const (
	keyHeader   = "cadre-journal"
	keyRecord   = "seq"
	keySeal     = "seal"
	keySnapshot = "cadre-state"
)

// version is the version of the format. A file with a greater one is refused.
const version = 1

const (
	crcOpen  = `,"crc":"`
	crcField = crcOpen + `00000000"` // the part of a line that its checksum does not cover
	dataOpen = `,"data":`
)

// appendLine appends {"key":n,"crc":"…"rest} and a newline to dst. rest is empty or begins with a
// comma.
func appendLine(dst []byte, key string, n int64, rest ...[]byte) []byte {
	start := len(dst)
	dst = append(dst, '{', '"')
	dst = append(dst, key...)
	dst = append(dst, '"', ':')
	dst = strconv.AppendInt(dst, n, 10)
	field := len(dst)
	dst = append(dst, crcField...)
	for _, r := range rest {
		dst = append(dst, r...)
	}
	dst = append(dst, '}')
	sum := crc32c.Update(crc32c.Checksum(dst[start:field]), dst[field+len(crcField):])
	const digits = "0123456789abcdef"
	for i := range 8 {
		dst[field+len(crcOpen)+i] = digits[sum>>(28-4*i)&15]
	}
	return append(dst, '\n')
}

var dataField = []byte(dataOpen)

func appendRecord(dst []byte, seq int64, data []byte) []byte {
	return appendLine(dst, keyRecord, seq, dataField, data)
}

// frame is a line that passed its checksum.
type frame struct {
	key  []byte
	n    int64
	sum  uint32
	rest []byte // between the checksum field and the closing brace
}

// Defects of a line.
const (
	badStart  = "it does not begin like a journal line"
	badNumber = "it has no number"
	badShape  = "it has no checksum or no end"
	badDigits = "its checksum is malformed"
	badSum    = "its checksum does not match"
)

// parseLine parses a line without its newline. bad describes its defect, or is "" for a valid line.
// It accepts exactly the output of appendLine and looks at fixed positions only, because each of 32
// processes parses every record.
func parseLine(line []byte) (f frame, bad string) {
	o, bad := parseOpening(line)
	switch {
	case bad != "":
		return f, bad
	case line[len(line)-1] != '}':
		return f, badShape
	case crc32c.Update(crc32c.Checksum(line[:o.field]), line[o.body:]) != o.sum:
		return f, badSum
	}
	return frame{key: o.key, n: o.n, sum: o.sum, rest: line[o.body : len(line)-1]}, ""
}

// opening is the beginning of a line up to and including its checksum field. The checksum is not
// verified yet.
type opening struct {
	key   []byte
	n     int64
	field int // offset of the checksum field
	body  int // offset of the rest of the line
	sum   uint32
}

// parseOpening parses the opening of a line. line must contain more than the opening.
func parseOpening(line []byte) (o opening, bad string) {
	if len(line) < 2 || line[0] != '{' || line[1] != '"' {
		return o, badStart
	}
	end := len(keyRecord) // nearly all lines are records
	if len(line) < 2+end+1 || string(line[2:2+end+1]) != keyRecord+`"` {
		if end = bytes.IndexByte(line[2:min(len(line), 24)], '"'); end < 0 {
			return o, badStart
		}
	}
	o.key = line[2 : 2+end]
	at := 2 + end + 1
	if at >= len(line) || line[at] != ':' {
		return o, badNumber
	}
	at++
	start := at
	for at < len(line) && '0' <= line[at] && line[at] <= '9' && at-start < 18 {
		o.n = o.n*10 + int64(line[at]-'0')
		at++
	}
	if at == start || (line[start] == '0' && at > start+1) {
		return o, badNumber
	}
	o.field, o.body = at, at+len(crcField)
	if len(line) <= o.body || string(line[at:at+len(crcOpen)]) != crcOpen || line[o.body-1] != '"' {
		return o, badShape
	}
	for _, c := range line[at+len(crcOpen) : o.body-1] {
		d := hexDigit[c]
		if d == 0 {
			return o, badDigits
		}
		o.sum = o.sum<<4 | uint32(d-1)
	}
	return o, ""
}

// hexDigit has the values of the digits of a checksum, plus 1. No processor can predict which
// digits a checksum has, so comparing them would take as long as the rest of the opening.
var hexDigit = [256]byte{'0': 1, '1': 2, '2': 3, '3': 4, '4': 5, '5': 6, '6': 7, '7': 8, '8': 9, '9': 10,
	'a': 11, 'b': 12, 'c': 13, 'd': 14, 'e': 15, 'f': 16}

// data returns the data of a record's frame.
func (f frame) data() ([]byte, bool) {
	return bytes.CutPrefix(f.rest, dataField)
}

// appendInt appends ,"name":n, a number field.
func appendInt(dst []byte, name string, n int64) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return strconv.AppendInt(dst, n, 10)
}

// cutInt parses the output of appendInt.
func cutInt(rest, name string) (n int64, after string, ok bool) {
	rest, ok = strings.CutPrefix(rest, `,"`+name+`":`)
	if !ok {
		return 0, "", false
	}
	end := strings.IndexByte(rest, ',')
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.ParseInt(rest[:end], 10, 64)
	return n, rest[end:], err == nil
}
