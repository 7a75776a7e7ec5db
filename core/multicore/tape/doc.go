// Package tape keeps rows of a trace that are read again, by several readers at
// different places at once, in little memory.
//
// Rows are packed in pages of [PageRows] rows. A page can be read without the others.
// Its coder is that of package sgt, with rows in the place of steps: it knows what
// kinds of rows there are (same kind of reference, same site), and predicts of each row
// which kind comes next, and of its address that it grows by its stride or that it
// lies where it did beside the row before it. Rows that are as predicted cost nothing but
// a count.
//
// The page's bytes are one list of tokens. Each tells of r rows that are as predicted,
// and of one that is not:
//
//	byte      r << 4 | attributes << 3 | address << 2 | which
//	uvarint   r − 15, if r is 15 or more (then the byte has 15)
//	uvarint   number of the kind of row, if which is 2; 0: the one that followed last time, 1: the one before that
//	uvarint   zigzag(address − the kind's last address), if address
//	byte      attributes that are not the kind's last ones: 1 bytes, 2 argument, 4 PC; if attributes
//	uvarint   each of them
//
// What follows which kind, and last addresses and strides, is forgotten at the beginning
// of a page. Kinds of rows are numbered once for all pages, in the order in which they
// come, and remember their first address and attributes.
//
// Marks stand between rows, and are numbered: iterations begin there. Each has an owner,
// a small number that the caller gives it a meaning.
//
// What does not fit into memory goes to a [Store].
package tape

import "io"

// PageRows is the number of rows of a page. The last one has fewer.
const PageRows = 4096

// Store keeps pages outside of memory: a file that nobody else uses.
type Store interface {
	io.ReaderAt
	io.WriterAt
}

// ErrFull tells that a tape's rows fit neither into the memory that it may take nor, for
// want of one, into a store.
var ErrFull error = fullError{}

type fullError struct{}

func (fullError) Error() string {
	return "a parallel region without a barrier is longer than memory may hold, and there is no storage to put it: give some, or trace a smaller input"
}

// errDamaged tells that a store gave other bytes than it was given.
type errDamaged struct{}

func (errDamaged) Error() string {
	return "a page of a parallel region does not read as it was written: the storage is damaged, or another one writes to it"
}
