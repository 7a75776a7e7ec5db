// Package trace holds what every reader of traces produces and every analysis
// consumes: references in batches.
//
// A trace is the sequence of a program's memory operations. Traces are longer
// than memory, so nothing here holds one: a [Reader] fills a [Batch] of a few
// thousand rows, the caller looks at it, and the next fill overwrites it.
//
//  1. A caller makes one batch with [NewBatch] and keeps it.
//  2. [Reader.Next] fills it. Columns are of equal length; a column that the
//     trace cannot fill is nil (MODELS §1: fields that a trace lacks are
//     absent, not zero).
//  3. The caller reads the columns, keeps no reference to them, and calls Next
//     again, until io.EOF.
//
// Rows are either references (they have an address) or events without data.
// Each analysis takes the kinds that it needs.
package trace

import "strings"

// Addr is a byte address in the traced program.
type Addr = uint64

// Line is the number of a cache line: a byte address divided by the line size.
type Line = uint64

// Kind says what a row of a [Batch] is.
type Kind uint8

// The kinds of references. A modify is one load and one store of the same
// bytes, and one line access (MODELS §1). Fetches are instruction fetches,
// kept apart from data references.
const (
	Load Kind = iota
	Store
	Modify
	Fetch
	// NumKinds is the number of kinds of references.
	NumKinds = 4
)

var kindNames = [NumKinds]string{"load", "store", "modify", "fetch"}

// String gives the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Kinds is a set of kinds of references; bit k stands for Kind k.
type Kinds uint8

// DataKinds are the data references: everything but instruction fetches.
const DataKinds = Kinds(1<<Load | 1<<Store | 1<<Modify)

// AllKinds are data references and instruction fetches.
const AllKinds = DataKinds | 1<<Fetch

// Has reports whether k is in the set.
func (s Kinds) Has(k Kind) bool { return s>>k&1 != 0 }

// String lists the kinds by name, comma-separated.
func (s Kinds) String() string {
	var names []string
	for k := Kind(0); k < NumKinds; k++ {
		if s.Has(k) {
			names = append(names, k.String())
		}
	}
	return strings.Join(names, ",")
}

// ParseKinds reads a comma-separated list of load, store, modify, fetch, or
// the sets data and all. The error says which word is wrong.
func ParseKinds(list string) (Kinds, error) {
	var set Kinds
next:
	for _, word := range strings.Split(list, ",") {
		switch word = strings.TrimSpace(word); word {
		case "data":
			set |= DataKinds
			continue
		case "all":
			set |= AllKinds
			continue
		}
		for k, name := range kindNames {
			if word == name {
				set |= 1 << k
				continue next
			}
		}
		return 0, &OptionError{Option: "kinds", Got: word, Want: "load, store, modify, fetch, data or all, separated by commas"}
	}
	return set, nil
}

// OptionError tells that a setting cannot be used. It is the user's to mend.
type OptionError struct {
	Option string // the option's name, without dashes
	Got    string // what was given
	Want   string // what would have been accepted
}

func (e *OptionError) Error() string {
	return e.Option + " " + quote(e.Got) + ", want " + e.Want
}
