package state

import (
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
)

// Summary is the header of a result.
type Summary struct {
	Facts  []Fact   // number and noun
	Chips  []string // how it was computed, and how much of it
	Digest string   // its first eight digits; "" while it grows
	Whole  string   // the whole digest
}

// NewSummary words the facts of a view. digest is hexadecimal, "" while the
// profile is still growing.
func NewSummary(v *View, digest string, live bool) Summary {
	t := &v.Profile.Totals
	s := Summary{Whole: digest}
	if len(digest) >= 8 {
		s.Digest = digest[:4] + " " + digest[4:8]
	}
	add := func(id, value, name string) { s.Facts = append(s.Facts, Fact{ID: id, Name: name, Value: value}) }
	add("references", SI(t.AllReferences()), "references")
	add("lines", Exact(v.Lines), "lines, "+Bytes(v.FootprintBytes()))
	if n := len(t.Threads); n > 1 {
		add("threads", strconv.Itoa(n), "threads")
	}
	add("line", strconv.FormatUint(v.LineBytes, 10)+"-byte", "lines")
	if v.Curve.Accesses > 0 {
		s.Chips = append(s.Chips, v.How())
	}
	s.Chips = append(s.Chips, completeness(v.Profile.State, live))
	return s
}

// Exactly is said of numbers that are no estimates.
const Exactly = "exact"

// How says in few words how the numbers of a view were computed.
func (v *View) How() string {
	if s := v.Profile.Sampled; s != nil {
		return s.Chip()
	}
	if v.Profile.Predicted != nil {
		return "predicted"
	}
	return Exactly
}

func completeness(state profile.State, live bool) string {
	switch {
	case live:
		return "growing"
	case state.Partial:
		return "partial"
	}
	return "complete"
}

// KindsTable is the references and accesses by kind.
func (v *View) KindsTable() *Table {
	kinds := v.Locality.Kinds
	t := &v.Profile.Totals
	return &Table{
		Caption: "References and line accesses by kind",
		Columns: []Column{{Name: "kind", Words: true}, {Name: "references"}, {Name: "bytes"}, {Name: "line accesses"}, {Name: "cold"}},
		Rows:    len(kinds),
		Row: func(i int) []string {
			k := &kinds[i]
			return []string{k.Kind.String(), Exact(t.References[k.Kind]), Exact(t.Bytes[k.Kind]), Exact(k.Accesses()), Exact(k.Cold)}
		},
		CSVHeader: "kind,references,bytes,accesses,cold",
		CSVRow: func(i int) string {
			k := &kinds[i]
			return k.Kind.String() + "," + strconv.FormatUint(t.References[k.Kind], 10) + "," + strconv.FormatUint(t.Bytes[k.Kind], 10) +
				"," + strconv.FormatUint(k.Accesses(), 10) + "," + strconv.FormatUint(k.Cold, 10)
		},
	}
}
