// Package tape implements a compact buffer for the records of a parallel region. Several readers
// can read the buffer repeatedly, starting at any record.
//
// Records are compressed in pages of [PageRows] records. Each page can be decoded without the other
// pages. The coder works like the coder in package sgt, but compresses records instead of steps.
// Records with the same kind, site and number of marks have the same form. The coder predicts the
// form and the address of the next record. The predicted address is either the form's last address
// plus its stride, or the address of the previous reference plus an offset. The stride and the
// offset are learned from earlier records of the form. For a sequence of correctly predicted
// records, the coder stores only the length of the sequence.
//
// A page is a list of tokens. Each token represents r correctly predicted records, followed
// by one mispredicted record:
//
//	byte      r << 4 | attributes << 3 | address << 2 | which
//	uvarint   r − 15, if r is 15 or more (the byte then contains 15)
//	uvarint   number of the form, if which is 2; if which is 0, the form is the one that followed last time;
//	          if which is 1, the form that followed before the last change of that form
//	uvarint   zigzag(address − the form's last address), if address
//	byte      attributes that differ from the form's last ones: 1 bytes, 2 argument, 4 PC; if attributes
//	uvarint   the value of each of these attributes
//
// Predictions are reset at the beginning of a page. Forms are numbered once for all pages, in the
// order in which they occur. The first address and attributes of each form are stored once for all
// pages.
//
// Marks between records show where iterations begin. Each mark has a number and an owner. The owner
// is a small integer whose meaning the caller defines.
//
// Pages that do not fit into memory are written to a [Store].
package tape

import "io"

// PageRows is the number of records in a page. The last page may have fewer records.
const PageRows = 4096

// Store is a file for pages that do not fit into memory. The file must not be used for other
// purposes.
type Store interface {
	io.ReaderAt
	io.WriterAt
}

// ErrFull reports that the records do not fit into memory, and that there is no store.
var ErrFull error = fullError{}

type fullError struct{}

func (fullError) Error() string {
	return "the records between two barriers of a parallel region do not fit in memory, and there is no temporary file: provide a file, or trace a smaller input"
}

// errDamaged reports that the bytes read from a store differ from the bytes that were written.
type errDamaged struct{}

func (errDamaged) Error() string {
	return "the temporary file is damaged: a page of a parallel region differs from the page that was written; check the disk, and whether another process writes to the file"
}
