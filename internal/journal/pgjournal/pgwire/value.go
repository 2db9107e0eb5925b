package pgwire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The numbers of the types in PostgreSQL's catalog, which never change.
const (
	typeBool       = 16
	typeBytea      = 17
	typeInt8       = 20
	typeInt4       = 23
	typeText       = 25
	typeByteaArray = 1001
	typeTextArray  = 1009
	typeInt8Array  = 1016
)

// encode returns the type of an argument and its value in the binary format, which is nil for NULL.
func encode(arg any) (of uint32, value []byte, err error) {
	switch arg := arg.(type) {
	case int:
		return typeInt8, binary.BigEndian.AppendUint64(nil, uint64(arg)), nil
	case int64:
		return typeInt8, binary.BigEndian.AppendUint64(nil, uint64(arg)), nil
	case string:
		return typeText, []byte(arg), nil
	case []byte:
		return typeBytea, arg, nil
	case []int64:
		return typeInt8Array, encodeArray(typeInt8, arg, func(n int64) []byte {
			return binary.BigEndian.AppendUint64(nil, uint64(n))
		}), nil
	case []string:
		return typeTextArray, encodeArray(typeText, arg, func(s string) []byte { return []byte(s) }), nil
	case [][]byte:
		return typeByteaArray, encodeArray(typeBytea, arg, func(b []byte) []byte { return b }), nil
	}
	return 0, nil, fmt.Errorf("a %T cannot be sent", arg)
}

// encodeArray returns an array of one dimension: a head, and for each element its length and value.
// The head has the number of dimensions, whether there may be a NULL, the type of the elements, and
// the number and lower bound of the dimension. An empty array has no dimension.
func encodeArray[T any](of uint32, elements []T, encode func(T) []byte) []byte {
	if elements == nil {
		return nil
	}
	put := binary.BigEndian.AppendUint32
	if len(elements) == 0 {
		return put(put(put(nil, 0), 0), of)
	}
	value := put(put(put(put(put(nil, 1), 1), of), uint32(len(elements))), 1)
	for _, one := range elements {
		element := encode(one)
		if element == nil {
			value = put(value, 1<<32-1)
			continue
		}
		value = append(put(value, uint32(len(element))), element...)
	}
	return value
}

// decode reads a value of a type. It copies what it keeps.
func decode(of uint32, value []byte, into any) error {
	fits, empty := false, value == nil
	switch into := into.(type) {
	case *int:
		var n int64
		if fits = !empty && decodeInt(of, value, &n); fits {
			*into = int(n)
		}
	case *int64:
		fits = !empty && decodeInt(of, value, into)
	case *bool:
		if fits = of == typeBool && len(value) == 1; fits {
			*into = value[0] != 0
		}
	case *string:
		if fits = of == typeText && !empty; fits {
			*into = string(value)
		}
	case *[]byte:
		if fits = of == typeBytea; fits {
			*into = clone(value)
		}
	case *[][]byte:
		if of == typeByteaArray {
			return decodeArray(value, into)
		}
	}
	switch {
	case fits:
		return nil
	case empty:
		return fmt.Errorf("NULL cannot be scanned into %T", into)
	}
	return fmt.Errorf("a value of type %d and %d bytes cannot be scanned into %T", of, len(value), into)
}

// clone returns a copy. That of an empty value is not nil.
func clone(value []byte) []byte {
	if value == nil {
		return nil
	}
	return append(make([]byte, 0, len(value)), value...)
}

func decodeInt(of uint32, value []byte, into *int64) bool {
	switch {
	case of == typeInt8 && len(value) == 8:
		*into = int64(binary.BigEndian.Uint64(value))
	case of == typeInt4 && len(value) == 4:
		*into = int64(int32(binary.BigEndian.Uint32(value)))
	default:
		return false
	}
	return true
}

// errArray reports an array that does not have the form of [encodeArray].
var errArray = errors.New("an array of one dimension was expected")

// decodeArray reads an array of bytea.
func decodeArray(value []byte, into *[][]byte) error {
	*into = nil
	if value == nil {
		return nil
	}
	if len(value) < 12 {
		return errArray
	}
	number := func(at int) uint32 { return binary.BigEndian.Uint32(value[at:]) }
	switch {
	case number(0) == 0:
		*into = [][]byte{}
		return nil
	case number(0) != 1 || len(value) < 20:
		return errArray
	}
	n, rest := number(12), value[20:]
	all := make([][]byte, 0, min(int(n), len(rest)))
	for range n {
		if len(rest) < 4 {
			return errArray
		}
		long := int32(binary.BigEndian.Uint32(rest))
		rest = rest[4:]
		if long < 0 { // NULL
			all = append(all, nil)
			continue
		}
		if int(long) > len(rest) {
			return errArray
		}
		all, rest = append(all, clone(rest[:long])), rest[long:]
	}
	*into = all
	return nil
}
