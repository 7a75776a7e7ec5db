package sample

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// Result implements analysis.Analysis. It comes after the histograms of the sample.
func (k *kept) Result(p *profile.Profile, state bool) {
	var saved []byte
	if state {
		saved = appendUint([]byte{}, k.done)
	}
	s := scale{rate: k.rate}
	if k.sites != nil {
		whole := k.wholeResult(p, state)
		if state {
			saved = appendProfile(saved, whole)
		}
		if p.Sites = whole.Sites; p.Sites != nil {
			s.sites(p.Sites)
		}
	}
	for _, t := range k.sizes {
		thin := t.result(p, state)
		communicated := thin.Communication
		if thin.Communication = nil; state { // it names sites, and is made anew from what is kept
			saved = t.appendThreads(appendProfile(saved, thin))
		}
		s = scale{rate: k.rate, longest: ^uint64(0)}.upTo(p.LocalityAt(t.lineBytes).Lines())
		if communicated != nil {
			s.communication(communicated, t.lineBytes)
			p.Communication = communicated
		}
		for i := range thin.Sharing {
			s.sharing(&thin.Sharing[i], t.made)
			p.Sharing = append(p.Sharing, thin.Sharing[i])
		}
	}
	if state {
		p.Segment.Kept = saved
	}
}

// wholeResult is that of sites, and of the distances that they follow.
func (k *kept) wholeResult(of *profile.Profile, state bool) *profile.Profile {
	p := &profile.Profile{Input: of.Input, Totals: of.Totals, Sampled: k.options.sampled()}
	p.Sampled.Read = of.Totals.AllReferences()
	p.Sampled.Sizes = []profile.SampledSize{{LineBytes: k.lineBytes}}
	if state {
		p.Segment = new(profile.Segment)
	}
	k.sites.Result(p, state)
	k.whole.Result(p, state)
	p.Locality[0].Windows.Distinct = nil // of estimates
	if state {
		p.Segment.Lines[0].WorkingSets = nil
	}
	return p
}

// The state, in section segk: uv references; where sites are analysed, a profile of all
// accesses with those outside of the sample at distance 0; for each line size with
// stacks of threads, or at which they communicate, a profile of the sample's lines; and
// the list of threads, ascending: uv number · uv accesses · uv whether some are in the
// sample. A profile is uv its length and that many bytes; its counts are not scaled.

func appendProfile(b []byte, p *profile.Profile) []byte {
	data := p.Encode()
	return append(appendUint(b, uint64(len(data))), data...)
}

func (t *thinned) appendThreads(b []byte) []byte {
	numbers := make([]uint32, 0, len(t.threads))
	for thread := range t.threads {
		numbers = append(numbers, thread)
	}
	slices.Sort(numbers)
	b = appendUint(b, uint64(len(numbers)))
	for _, thread := range numbers {
		n, sampled := t.threads[thread], uint64(0)
		if n.sampled {
			sampled = 1
		}
		b = appendUint(b, uint64(thread), n.accesses, sampled)
	}
	return b
}

// Restore implements analysis.Analysis.
func (k *kept) Restore(p *profile.Profile) error {
	if p.Segment == nil || p.Segment.Kept == nil || p.Sampled == nil || optionsOf(p.Sampled) != k.options {
		return &StateError{"the saved run was not sampled, or in another way; start again"}
	}
	d := profile.NewDecoder(p.Segment.Kept)
	if k.done = d.Uint(); k.done != p.Totals.AllReferences() {
		return &StateError{"the saved run is damaged: it has other references than its sample; start again"}
	}
	if k.sites != nil {
		whole, err := profileOf(d)
		if err == nil {
			err = k.restoreWhole(whole, p)
		}
		if err != nil {
			return err
		}
	}
	for _, t := range k.sizes {
		thin, err := profileOf(d)
		if err == nil {
			err = t.check(thin)
		}
		if err == nil {
			t.readThreads(d)
			err = t.restore(thin)
		}
		if err != nil {
			return err
		}
	}
	if d.Err() == nil && len(d.Rest()) > 0 {
		return errKept
	}
	return d.Err()
}

var errKept = &StateError{"the saved run is damaged, or had other analyses; start again"}

// profileOf reads what appendProfile wrote.
func profileOf(d *profile.Decoder) (*profile.Profile, error) {
	data := d.String()
	if d.Err() != nil {
		return nil, d.Err()
	}
	p, err := profile.Decode([]byte(data))
	if err == nil && (p.Segment == nil || p.Segment.Start != 0 || p.Segment.Sample != nil) {
		err = errKept
	}
	return p, err
}

func (k *kept) restoreWhole(whole, p *profile.Profile) error {
	if len(whole.Locality) != 1 || whole.Locality[0].LineBytes != k.lineBytes || len(whole.Segment.Lines) != 1 || whole.Totals.AllReferences() != p.Totals.AllReferences() {
		return errKept
	}
	if err := k.sites.Restore(whole); err != nil {
		return err
	}
	return k.whole.Restore(whole)
}

// check tests that a profile is one of this line size.
func (t *thinned) check(p *profile.Profile) error {
	if len(p.Locality) != 1 || p.Locality[0].LineBytes != t.lineBytes || len(p.Segment.Lines) != 1 || p.Locality[0].Sets == nil {
		return errKept
	}
	return nil
}

func (t *thinned) readThreads(d *profile.Decoder) {
	for range d.Length(3) {
		thread := uint32(d.UintBelow(1 << 32))
		t.threads[thread] = &ofThread{accesses: d.Uint(), sampled: d.UintBelow(2) == 1}
	}
}
