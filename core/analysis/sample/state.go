package sample

import (
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// The state of a run, in varints: references; each line size: line bytes, sampler,
// counts, windows.

func (a *Analysis) save() []byte {
	b := appendUint(nil, a.done, uint64(len(a.sizes)))
	for _, s := range a.sizes {
		b = appendUint(b, uint64(s.shift))
		b = s.sampler.save(b)
		b = s.counts.save(b)
		b = s.windows.save(b)
	}
	return b
}

// Restore implements analysis.Analysis.
func (a *Analysis) Restore(p *profile.Profile) error {
	if p.Segment == nil || p.Segment.Sample == nil || p.Sampled == nil || optionsOf(p.Sampled) != a.options {
		return &StateError{"the saved run was not sampled, or in another way; start again"}
	}
	d := codec.NewDecoder(p.Segment.Sample)
	if a.done = d.Uint(); a.done != p.Totals.AllReferences() {
		return &StateError{"the saved run is damaged: it has other references than its sample; start again"}
	}
	if d.Uint() != uint64(len(a.sizes)) {
		return &StateError{"the saved run had other line sizes; start again"}
	}
	for _, s := range a.sizes {
		if d.Uint() != uint64(s.shift) {
			return &StateError{"the saved run had other line sizes; start again"}
		}
		s.sampler.restore(d)
		s.counts.restore(d)
		s.windows.restore(d)
		if d.Err() == nil && !s.windows.cover(a.done) {
			return &StateError{"the saved run is damaged: its windows are not those of its references; start again"}
		}
	}
	return d.Err()
}

// StateError tells why a run cannot go on from a saved one.
type StateError struct{ What string }

func (e *StateError) Error() string { return e.What }

// Append implements analysis.Analysis: what a sample of one segment needs of those
// before is not kept.
func (a *Analysis) Append(*profile.Profile) error {
	return &StateError{"sampled profiles cannot be joined; sample the whole trace in one pass"}
}

func (c *counts) save(b []byte) []byte {
	for half := range c.near {
		b = appendUint(b, c.near[half][:]...)
	}
	b = appendUint(b, c.beyond[:]...)
	for k := range c.deep {
		n := uint64(0)
		for range c.deep[k].All() {
			n++
		}
		b = appendUint(b, c.cold[k], n)
		for d, count := range c.deep[k].All() {
			b = appendUint(b, d, count)
		}
	}
	b = appendUint(b, c.samples)
	for g := range c.spread {
		b = appendUint(b, c.spread[g][:]...)
	}
	return b
}

func (c *counts) restore(d *codec.Decoder) {
	for half := range c.near {
		fill(c.near[half][:], d)
	}
	fill(c.beyond[:], d)
	for k := range trace.NumKinds {
		c.cold[k] = d.Uint()
		for range d.Length(2) {
			c.deep[k].AddN(d.UintBelow(profile.MaxDistance), d.Uint())
		}
	}
	c.samples = d.Uint()
	for g := range c.spread {
		fill(c.spread[g][:], d)
	}
}

// beyond is more than any line's number.
const beyond = 1 << 61

// stackOf reads what codec.AppendStack wrote; lines that cannot be are left out.
func stackOf(d *codec.Decoder) []trace.Line {
	return slices.DeleteFunc(d.Stack(), func(line trace.Line) bool { return line >= beyond })
}

func fill(values []uint64, d *codec.Decoder) {
	for i := range values {
		values[i] = d.Uint()
	}
}

func (w *windows) save(b []byte) []byte {
	b = appendUint(b, w.References, uint64(len(w.rows)))
	for i := range w.rows {
		r := &w.rows[i]
		b = appendUint(b, r.beyond)
		b = appendUint(appendUint(b, r.near[:]...), r.sample[:]...)
	}
	return appendUint(b, w.counted[:]...)
}

func (w *windows) restore(d *codec.Decoder) {
	w.References = d.Uint()
	w.rows = make([]row, d.Length(1+2*profile.WindowBins))
	for i := range w.rows {
		w.rows[i].beyond = d.Uint()
		fill(w.rows[i].near[:], d)
		fill(w.rows[i].sample[:], d)
	}
	fill(w.counted[:], d)
}

// cover tells that there are as many windows, and as long, as so many references have.
func (w *windows) cover(references uint64) bool {
	of := profile.Windows{References: w.References}
	if w.References != profile.WindowSize(references) {
		return false
	}
	_, rows := of.Span(0, references)
	return uint64(len(w.rows)) == rows
}
