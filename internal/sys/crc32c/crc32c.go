// Package crc32c computes CRC-32 checksums with Castagnoli's polynomial, for files that cadre reads
// back. Processors have an instruction for it.
//
// # Authority
//
// It decides which checksum is used. The caller decides what to do when one does not match.
//
// # Guarantees
//
// The tables are built for the first checksum, or by [Prepare] before it. Building them takes
// longer than the whole start of a command that needs no checksum.
package crc32c

import (
	"hash"
	"hash/crc32"
)

// table returns the tables, which package crc32 builds once and keeps.
func table() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Prepare builds the tables. A command that will need them calls it in a goroutine as it starts.
func Prepare() { table() }

// Checksum returns the checksum of the data.
func Checksum(data []byte) uint32 { return crc32.Checksum(data, table()) }

// Update returns the checksum of the data behind sum followed by data.
func Update(sum uint32, data []byte) uint32 { return crc32.Update(sum, table(), data) }

// New returns a hash for data that arrives in parts.
func New() hash.Hash32 { return crc32.New(table()) }
