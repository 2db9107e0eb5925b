// Package crc32c computes the checksum of files that cadre reads back: CRC-32 with Castagnoli's
// polynomial, which processors have an instruction for.
//
// # Authority
//
// It says which checksum is used, and nothing about what is done where one is wrong.
//
// # Guarantees
//
// The tables are made with the first checksum. They cost more than the whole start of a command
// that needs none.
package crc32c

import (
	"hash"
	"hash/crc32"
)

// table returns the tables, which package crc32 makes once and keeps.
func table() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Checksum returns the checksum of the data.
func Checksum(data []byte) uint32 { return crc32.Checksum(data, table()) }

// Update returns the checksum of what sum is the checksum of, and the data after it.
func Update(sum uint32, data []byte) uint32 { return crc32.Update(sum, table(), data) }

// New returns a hash for data that comes in parts.
func New() hash.Hash32 { return crc32.New(table()) }
