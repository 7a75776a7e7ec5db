// Package tape buffers a parallel region in little memory: rows of a trace that several readers
// read again, each at its own position.
//
// Rows are compressed in pages of [PageRows] rows, each of which can be read without the others.
// The coder works as in package sgt, with rows instead of steps. Rows with the same kind, site and
// number of marks have the same form. The coder predicts the form of the next row, and that its
// address grows by the form's stride or keeps its distance to the reference before. A correctly
// predicted row costs nothing but a count.
//
// A page is a list of tokens. Each stands for r predicted rows and one mispredicted row:
//
//	byte      r << 4 | attributes << 3 | address << 2 | which
//	uvarint   r − 15, if r is 15 or more (then the byte has 15)
//	uvarint   number of the form, if which is 2; 0: the form that followed last time, 1: the time before
//	uvarint   zigzag(address − the form's last address), if address
//	byte      attributes that differ from the form's last ones: 1 bytes, 2 argument, 4 PC; if attributes
//	uvarint   each of them
//
// Predictions are reset at the beginning of a page. Forms are numbered once for all pages, in
// the order in which they occur, and keep their first address and attributes.
//
// Marks are between rows, and numbered: iterations begin there. Each has an owner, a small
// number with a meaning for the caller.
//
// Pages that do not fit into memory go to a [Store].
package tape

import "io"

// PageRows is the number of rows of a page. The last page may have fewer.
const PageRows = 4096

// Store is a file for pages that do not fit into memory. Nothing else may use it.
type Store interface {
	io.ReaderAt
	io.WriterAt
}

// ErrFull reports that the rows fit neither into memory nor, for lack of one, into a store.
var ErrFull error = fullError{}

type fullError struct{}

func (fullError) Error() string {
	return "a parallel region without a barrier does not fit in memory, and there is no storage for it: provide storage, or trace a smaller input"
}

// errDamaged reports that a store returned other bytes than were written.
type errDamaged struct{}

func (errDamaged) Error() string {
	return "a page of a parallel region does not read as it was written: the storage is damaged, or another one writes to it"
}
