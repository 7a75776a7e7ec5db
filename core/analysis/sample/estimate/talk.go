package estimate

import (
	"math"
	"math/bits"
	"sort"

	"github.com/stackglass/stackglass/core/analysis/communication"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// sampledCommunication passes the references to sampled lines to package communication. A reference
// to several lines becomes several rows, one for each line.
type sampledCommunication struct {
	size *sampledLineSize
	// the analyses, by number of leading zeros in the hash of the line; if the rate is fixed, only
	// the first element is used
	octaves [65]*octaveAnalyses

	// returns the program for the method decide; nil after the decision
	decides func() *trace.Program
	met     bool   // there has been a reference
	first   uint32 // the thread of the first reference
	off     bool   // the analysis does not run
}

const talkGroups = 8 // number of groups of sampled lines

type octaveAnalyses struct {
	whole  listener
	parts  [talkGroups]listener
	at     []int // for each row: the index of its access
	asked  []sharing.Question
	depths []uint32
}

// listener is an analysis with the rows that it will receive.
type listener struct {
	*communication.Analysis
	batch *trace.Batch
	rows  []uint32 // for each row of this batch: its index in the complete batch
}

// analysesFor returns the analyses of the lines whose hashes have n leading zeros.
func (t *sampledCommunication) analysesFor(n int) *octaveAnalyses {
	if t.octaves[n] == nil {
		t.octaves[n] = new(octaveAnalyses)
		t.octaves[n].whole = t.listener()
		if t.size.threads != nil {
			t.octaves[n].whole.Follow(t)
		}
		for g := range talkGroups {
			t.octaves[n].parts[g] = t.listener()
		}
	}
	return t.octaves[n]
}

func (t *sampledCommunication) listener() listener {
	l := listener{Analysis: communication.New(t.size.bytes, t.size.of.sites, nil), batch: trace.NewBatch(16)}
	l.Reach(t.size.of.done)
	return l
}

// Core implements communication.Stacks.
func (t *sampledCommunication) Core(thread uint32) (core uint8, known bool) {
	return t.size.threads.grouping.Known(thread)
}

// Feed implements communication.Stacks. Feed does nothing, because collectQuestions collects the
// questions of all analyses.
func (t *sampledCommunication) Feed(uint32, sharing.Asker) {}

func (t *sampledCommunication) threshold() uint64 { return t.size.bySite.space.threshold }

func (t *sampledCommunication) rate() float64 { return profile.RateOf(t.threshold()) }

// liveAnalyses returns the analyses of the lines that are still sampled.
func (t *sampledCommunication) liveAnalyses() (list []*octaveAnalyses) {
	for n, o := range t.octaves {
		if o != nil && n < int(t.size.bySite.space.halvings) {
			t.octaves[n] = nil
		} else if o != nil {
			list = append(list, o)
		}
	}
	return list
}

// decide decides whether the communication analyses run, by the rule of package communication. It
// makes a common decision for all analyses, because each analysis receives only some references.
func (t *sampledCommunication) decide(b *trace.Batch) {
	if t.decides == nil {
		return
	}
	several := false
	for i, thread := range b.Thread {
		if t.size.of.done+uint64(i) >= communication.Trial {
			break
		}
		if !t.met {
			t.met, t.first = true, thread
		}
		several = several || thread != t.first
	}
	switch expected, known := communication.Expects(t.decides()); {
	case several || expected:
		t.decides = nil
	case b.Thread == nil || known || t.size.of.done+uint64(b.Len()) > communication.Trial:
		t.turnOff()
	}
}

func (t *sampledCommunication) turnOff() {
	t.decides, t.off = nil, true
	clear(t.octaves[:])
	t.size.of.sites.Locate(false)
}

// processBatch processes the accesses to sampled lines.
func (t *sampledCommunication) processBatch(b *trace.Batch) error {
	if t.decide(b); t.off {
		return nil
	}
	for _, o := range t.liveAnalyses() {
		o.reset(b)
	}
	s := t.size
	for i, line := range s.lines {
		h := hashLine(line, s.of.options.Seed)
		if h > t.threshold() {
			continue
		}
		n := 0
		if s.of.options.Mode == profile.LinesSample {
			n = bits.LeadingZeros64(h)
		}
		o := t.octaves[n]
		if o == nil {
			o = t.analysesFor(n)
			o.reset(b)
		}
		row := s.rows[i]
		o.at = append(o.at, i)
		o.whole.add(b, row, s.parts[i])
		o.parts[h%talkGroups].add(b, row, s.parts[i])
	}
	for _, o := range t.liveAnalyses() {
		for _, l := range o.listeners() {
			if l.batch.Len() == 0 {
				continue
			}
			l.Among(l.rows, s.of.done)
			if err := l.Consume(l.batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *octaveAnalyses) reset(b *trace.Batch) {
	o.at = o.at[:0]
	for _, l := range o.listeners() {
		l.rows = l.rows[:0]
		if l.batch.Reset(); b.Thread != nil {
			l.batch.NeedThread()
		}
	}
}

func (o *octaveAnalyses) listeners() (list []*listener) {
	list = append(list, &o.whole)
	for g := range o.parts {
		list = append(list, &o.parts[g])
	}
	return list
}

func (l *listener) add(b *trace.Batch, row uint32, p touchedPart) {
	l.batch.Append(b.Kind[row], p.addr, p.bytes, threadOf(b, row), 0)
	l.rows = append(l.rows, row)
}

func (t *sampledCommunication) reach(references uint64) {
	for _, o := range t.liveAnalyses() {
		for _, l := range o.listeners() {
			l.Reach(references)
		}
	}
}

// questions contains the questions of all analyses, and iterates over them in the order of the
// accesses.
type questions struct {
	list  []askedOf
	given int
	of    []*octaveAnalyses
}

type askedOf struct {
	sharing.Question
	access int
	of     *octaveAnalyses
}

// collectQuestions collects the questions of all analyses about the current accesses.
func (t *sampledCommunication) collectQuestions() (a questions) {
	s := t.size
	for _, o := range t.liveAnalyses() {
		x := sharing.Accesses{Accesses: locality.Accesses{Batch: o.whole.batch}}
		for _, at := range o.at {
			x.Lines, x.Cores = append(x.Lines, s.lines[at]), append(x.Cores, s.cores[at])
		}
		o.asked, o.depths = o.whole.Ask(&x, o.asked[:0]), o.depths[:0]
		for _, q := range o.asked {
			a.list = append(a.list, askedOf{q, o.at[q.Access], o})
		}
		a.of = append(a.of, o)
	}
	sort.SliceStable(a.list, func(i, j int) bool { return a.list[i].access < a.list[j].access })
	return a
}

// answerUpTo answers the remaining questions that belong to the given access or to earlier
// accesses. It must be called before the given access changes the stacks.
func (a *questions) answerUpTo(access int, t *threads) {
	for ; a.given < len(a.list) && a.list[a.given].access <= access; a.given++ {
		q := &a.list[a.given]
		q.of.depths = append(q.of.depths, t.depth(q.Core, q.Line))
	}
}

// passAnswers passes the answers to the analyses.
func (a *questions) passAnswers() {
	for _, o := range a.of {
		o.whole.Answer(o.depths)
	}
}

// result returns the estimated communication of all lines, or nil. The result of the sites analysis
// must already have been written.
func (t *sampledCommunication) result() *profile.Communication {
	var wholes []*profile.Communication
	var parts [talkGroups][]*profile.Communication
	threads := 0
	for _, o := range t.liveAnalyses() {
		threads = max(threads, o.whole.Threads())
	}
	if threads < 2 {
		return nil
	}
	for _, o := range t.liveAnalyses() {
		wholes = append(wholes, o.whole.Told())
		for g := range o.parts {
			parts[g] = append(parts[g], o.parts[g].Told())
		}
	}
	sum := wholes[0]
	for _, c := range wholes[1:] {
		joinCommunication(sum, c)
	}
	rate := t.rate()
	if rate < 1 {
		var off groupCounts
		for g := range parts {
			for _, c := range parts[g] {
				off.add(c, g)
			}
		}
		sum.Off = off.halfWidths(sum, 1/rate, 1-rate)
	}
	scaleCommunication(sum, rate, t.size.bytes)
	return sum
}

// groupCounts contains the counts of each group, by key.
type groupCounts map[offKey]*[3][talkGroups]float64

// offKey identifies a flow, a sharing class, a pair of sites, or a set of falsely shared lines.
type offKey struct {
	bytes    uint32
	class    uint8
	from, to uint32
	pair     profile.SitePair
}

func (o *groupCounts) at(k offKey) *[3][talkGroups]float64 {
	if *o == nil {
		*o = groupCounts{}
	}
	n := (*o)[k]
	if n == nil {
		n = new([3][talkGroups]float64)
		(*o)[k] = n
	}
	return n
}

const noClass = profile.NumSharingClasses

func flowKey(bytes uint32, f *profile.Flow) offKey {
	return offKey{bytes: bytes, class: uint8(noClass), from: f.From, to: f.To}
}

func pairKey(p *profile.SitePair) offKey {
	k := *p
	k.Events, k.Transfers = 0, 0
	return offKey{class: uint8(noClass), pair: k}
}

func falseKey(f *profile.FalseSharing) offKey {
	return offKey{class: uint8(noClass) + 1, pair: profile.SitePair{Producer: f.Sites[0], Consumer: f.Sites[1], Object: f.Object}}
}

func (o *groupCounts) add(c *profile.Communication, part int) {
	eachCount(c, func(k offKey, counts ...*uint64) {
		at := o.at(k)
		for i, n := range counts {
			at[i][part] += float64(*n)
		}
	})
}

// eachCount passes to the function each the counts of every flow, sharing class, pair of sites and
// set of falsely shared lines.
func eachCount(c *profile.Communication, each func(k offKey, counts ...*uint64)) {
	for i := range c.Granules {
		g := &c.Granules[i]
		for k := range g.Flows {
			each(flowKey(g.Bytes, &g.Flows[k]), &g.Flows[k].Events, &g.Flows[k].Transfers)
		}
		for class := range g.Classes {
			n := &g.Classes[class]
			each(offKey{bytes: g.Bytes, class: uint8(class)}, &n.Granules, &n.References, &n.Events)
		}
	}
	for i := range c.Pairs {
		each(pairKey(&c.Pairs[i]), &c.Pairs[i].Events, &c.Pairs[i].Transfers)
	}
	for i := range c.False {
		each(falseKey(&c.False[i]), &c.False[i].Lines, &c.False[i].Events, &c.False[i].Misses)
	}
}

// halfWidths returns the half-widths of the confidence intervals of c, which contains the sums over
// all groups.
func (o *groupCounts) halfWidths(c *profile.Communication, factor, rest float64) *profile.CommunicationOff {
	half := func(k offKey, i int) uint64 {
		parts := o.at(k)[i]
		return uint64(math.Ceil(halfWidth(parts[:], factor, rest)))
	}
	flow := func(k offKey) profile.FlowOff { return profile.FlowOff{Events: half(k, 0), Transfers: half(k, 1)} }
	off := new(profile.CommunicationOff)
	for i := range c.Granules {
		g := &c.Granules[i]
		var granule profile.GranuleOff
		for k := range g.Flows {
			granule.Flows = append(granule.Flows, flow(flowKey(g.Bytes, &g.Flows[k])))
		}
		for class := range g.Classes {
			k := offKey{bytes: g.Bytes, class: uint8(class)}
			granule.Classes[class] = profile.ClassCount{Granules: half(k, 0), References: half(k, 1), Events: half(k, 2)}
		}
		off.Granules = append(off.Granules, granule)
	}
	for i := range c.Pairs {
		off.Pairs = append(off.Pairs, flow(pairKey(&c.Pairs[i])))
	}
	for i := range c.False {
		k := falseKey(&c.False[i])
		off.False = append(off.False, profile.FalseOff{Lines: half(k, 0), Events: half(k, 1), Misses: half(k, 2)})
	}
	return off
}
