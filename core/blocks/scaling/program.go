package scaling

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Input is a recorded run of a program.
type Input struct {
	Name       string // the name of the input's file, for error messages
	Parameters []int64
	Profile    *profile.Profile // profile of the run; must contain blocks and sites
}

// InputError explains why the given runs or parameters make a prediction impossible.
type InputError struct{ Got, Want string }

func (e *InputError) Error() string { return e.Got + "; want " + e.Want }

// Program uses several recorded runs of a program to predict a run with a new input. Program
// predicts the counts of blocks, of the edges between blocks, and of the sites that access memory.
type Program struct {
	*Model // predicts the counts of blocks

	inputs  []Input // in the order of the model's runs
	runs    []*blocks.Run
	ways    [][]Law // by block: the laws of the edges to its successors, then the law of leaving the function
	resumed []Law   // by block: the law of the executions that enter the block without following an edge
	unmade  []Law
	entered []Law // by function: the law of its entries
	sites   []site
	bytes   [trace.NumKinds]Law
	nests   *nests // nil: noNests is the reason
	noNests string
	cold    Law // the number of distinct lines, which is the total of all sites' first accesses
}

// site is a source location that accesses memory.
type site struct {
	like       *profile.Site // the site in the largest run that contains it
	references Law
	accesses   Law // number of line accesses
	strides    [profile.NumStrides]Law
	reuse      *classLaws
}

// FitProgram finds laws for runs of one build of a program. The error is an [*InputError], a
// [*trace.OptionError], or an error from reading a profile.
func FitProgram(names []string, inputs []Input) (*Program, error) {
	p := &Program{}
	var runs []Run
	for i := range inputs {
		r, err := inputs[i].readBlocks()
		if err != nil {
			return nil, err
		}
		p.runs = append(p.runs, r)
		if i > 0 {
			if err := sameProgram(&inputs[0], &inputs[i], p.runs[0], r); err != nil {
				return nil, err
			}
		}
		runs = append(runs, RunOf(inputs[i].Parameters, r, nil))
	}
	var err error
	if p.Model, err = Fit(names, runs); err != nil {
		return nil, err
	}
	given := p.runs
	p.runs = nil
	for i := range p.Model.runs { // in the order of the model's runs
		at := slices.IndexFunc(inputs, func(in Input) bool { return slices.Equal(in.Parameters, p.Model.runs[i].Parameters) })
		p.inputs, p.runs = append(p.inputs, inputs[at]), append(p.runs, given[at])
	}
	p.fitEdges()
	p.fitSites()
	p.nests, p.noNests = p.fitNests()
	return p, nil
}

// readBlocks returns the blocks of a profile, and rejects profiles that do not cover a complete
// run.
func (in *Input) readBlocks() (*blocks.Run, error) {
	bad := func(got, want string) error {
		return &InputError{in.Name + ": " + got, want}
	}
	p := in.Profile
	switch {
	case p.State.Partial || p.Input.Header.Extent != (trace.Extent{}) || p.Input.Skip > 0 || p.Input.Limit > 0 || p.Input.Threads != nil:
		return nil, bad("the profile covers only a part of the run", "a complete run, because the counts of a part of a run follow no formula")
	case p.Sampled != nil:
		return nil, bad("the profile covers only a sample of the run", "the complete run; analyse the trace again without --sample")
	case len(p.Blocks) == 0:
		return nil, bad("the profile contains no blocks", "a trace of a program compiled with stackglass cc, analysed with --analyses default,blocks")
	case p.Sites == nil || p.LocalityAt(p.Sites.LineBytes) == nil:
		return nil, bad("the profile contains no stack distances per source location", "a profile that was analysed with --analyses default,blocks")
	}
	r, err := blocks.DecodeRun(p.Blocks)
	if err != nil {
		return nil, err
	}
	if r.Profile != nil {
		return nil, bad("the file contains LLVM IR, but no run", "a trace or a profile of a run")
	}
	return r, nil
}

// sameProgram returns an error if two runs come from different builds.
func sameProgram(a, b *Input, x, y *blocks.Run) error {
	if !bytes.Equal(blocks.AppendProgram(nil, x.Program), blocks.AppendProgram(nil, y.Program)) {
		why := ""
		if m := blocks.NewMatch(x.Program, y.Program); len(m.Different) > 0 {
			why = " (" + m.Different[0].What + " differs)"
		}
		return &InputError{a.Name + " and " + b.Name + " come from different programs or builds" + why, "runs of one build of one program, with different inputs"}
	}
	if m, n := a.Profile.Sites.LineBytes, b.Profile.Sites.LineBytes; m != n {
		return &InputError{a.Name + " and " + b.Name + " have lines of " + strconv.Itoa(int(m)) + " and " + strconv.Itoa(int(n)) + " bytes", "lines of one size; analyse the traces again with the same --lines"}
	}
	return nil
}

// lawOf returns the law of a number that is known in each run. The function value returns the
// number in the given run.
func (p *Program) lawOf(value func(run int) uint64) Law {
	values := make([]uint64, len(p.runs))
	for i := range values {
		values[i] = value(i)
	}
	return p.fitter.countLaw(values)
}

func (p *Program) fitEdges() {
	t := p.runs[0].Program
	for b := range t.Blocks {
		var ways []Law
		for w := range t.Blocks[b].Successors {
			ways = append(ways, p.lawOf(func(i int) uint64 { return p.runs[i].Edges.Taken[b][w] }))
		}
		p.ways = append(p.ways, append(ways, p.lawOf(func(i int) uint64 { return p.runs[i].Edges.Left[b] })))
		p.resumed = append(p.resumed, p.lawOf(func(i int) uint64 { return p.runs[i].Edges.Resumed[b] }))
		p.unmade = append(p.unmade, p.lawOf(func(i int) uint64 { return p.runs[i].Edges.Unmade[b] }))
		if l := &p.Counts[b]; l.Kind == Exact && l.Checked == 0 {
			p.sumEdgeLaws(b)
		}
	}
	for f := range t.Functions {
		p.entered = append(p.entered, p.lawOf(func(i int) uint64 { return p.runs[i].Edges.Entered[f] }))
	}
}

// sumEdgeLaws replaces a block's law by the sum of the laws of its edges, if the runs check the
// laws of all edges. It is called only if the runs do not check the block's law.
func (p *Program) sumEdgeLaws(b int) {
	sum := Law{Checked: len(p.runs)}
	for i := range p.ways[b] {
		w := &p.ways[b][i]
		if w.Kind != Exact || w.Checked == 0 {
			return
		}
		sum.Checked = min(sum.Checked, w.Checked)
		for _, t := range w.Terms {
			sum.addTerm(t)
		}
	}
	p.Counts[b] = sum
}

// addTerm adds a term to a polynomial, and keeps its terms in order.
func (l *Law) addTerm(t Term) {
	for i := range l.Terms {
		if slices.Equal(l.Terms[i].Powers, t.Powers) {
			if l.Terms[i].Factor = new(big.Rat).Add(l.Terms[i].Factor, t.Factor); l.Terms[i].Factor.Sign() == 0 {
				l.Terms = slices.Delete(l.Terms, i, i+1)
			}
			return
		}
	}
	l.Terms = append(l.Terms, t)
	slices.SortStableFunc(l.Terms, func(x, y Term) int {
		return cmp.Or(cmp.Compare(degree(y.Powers), degree(x.Powers)), slices.Compare(y.Powers, x.Powers))
	})
}

func (p *Program) fitSites() {
	var order []*profile.Site
	number := func(s *profile.Site) int {
		at, _ := slices.BinarySearchFunc(order, s, profile.CompareSites)
		return at
	}
	// from the largest to the smallest run, so that names come from the largest run
	for i := len(p.inputs) - 1; i >= 0; i-- {
		code := p.inputs[i].Profile.Sites.Code
		for k := range code {
			if at, known := slices.BinarySearchFunc(order, &code[k], profile.CompareSites); !known {
				order = slices.Insert(order, at, &code[k])
			}
		}
	}
	in := make([][]*profile.Site, len(order)) // in[k][i] is site k in run i, or nil if the run does not contain the site
	for k := range in {
		in[k] = make([]*profile.Site, len(p.inputs))
	}
	var finer []*binDistances
	for i := range p.inputs {
		code := p.inputs[i].Profile.Sites.Code
		for k := range code {
			in[number(&code[k])][i] = &code[k]
		}
		finer = append(finer, newBins(p.inputs[i].Profile))
	}
	nothing := &profile.Site{}
	for k, like := range order {
		for i := range in[k] {
			if in[k][i] == nil {
				in[k][i] = nothing
			}
		}
		s := site{like: like}
		s.references = p.lawOf(func(i int) uint64 { return in[k][i].References() })
		s.accesses = p.lawOf(func(i int) uint64 { return in[k][i].Reuse.Accesses() })
		for c := range s.strides {
			s.strides[c] = p.lawOf(func(i int) uint64 { return in[k][i].Strides[c] })
		}
		var profiles []*memory.Profile
		for i, of := range in[k] {
			if of.Reuse.Accesses() > 0 {
				profiles = append(profiles, finer[i].profile(of))
			}
		}
		if len(profiles) == len(p.inputs) {
			s.reuse = p.fitter.reuseLaws(profiles)
		}
		p.sites = append(p.sites, s)
	}
	for kind := range p.bytes {
		p.bytes[kind] = p.lawOf(func(i int) uint64 { return p.inputs[i].Profile.Totals.Bytes[kind] })
	}
	p.cold = p.lawOf(func(i int) uint64 {
		in := p.inputs[i].Profile
		return in.LocalityAt(in.Sites.LineBytes).Lines()
	})
}

// binDistances contains the exact stack distances of all references in a run, by kind of access and
// by bin.
type binDistances [trace.NumKinds][profile.SiteBins][]memory.Span

// quantilesPerBin is the number of quantiles that represent the distances in a bin.
const quantilesPerBin = 16

func newBins(p *profile.Profile) *binDistances {
	all := new(binDistances)
	l := p.LocalityAt(p.Sites.LineBytes)
	for i := range l.Kinds {
		of := &all[l.Kinds[i].Kind]
		for d, n := range l.Kinds[i].Distances.All() {
			bin := profile.SiteBin(uint32(min(d, math.MaxUint32)))
			of[bin] = append(of[bin], memory.Span{From: d, To: d + 1, Accesses: float64(n)})
		}
		for bin := range of {
			of[bin] = midpointQuantiles(of[bin])
		}
	}
	return all
}

// midpointQuantiles replaces distances by at most 16 weighted midpoint quantiles. The weights sum
// to 1.
func midpointQuantiles(spans []memory.Span) (list []memory.Span) {
	all := 0.0
	for _, s := range spans {
		all += s.Accesses
	}
	below, part := 0.0, 0
	for _, s := range spans {
		for below += s.Accesses; part < quantilesPerBin && (float64(part)+0.5)/quantilesPerBin*all <= below; part++ {
			if n := len(list); n > 0 && list[n-1].From == s.From {
				list[n-1].Accesses += 1. / quantilesPerBin
			} else {
				list = append(list, memory.Span{From: s.From, To: s.To, Accesses: 1. / quantilesPerBin})
			}
		}
	}
	return list
}

// profile returns a site's profile. In each bin, the site's distances are assumed to have the same
// distribution as the distances of all references of its kind.
func (all *binDistances) profile(s *profile.Site) *memory.Profile {
	p := &memory.Profile{Cold: float64(s.Reuse.Cold)}
	for _, b := range s.Reuse.Bins {
		if int(s.Kind) >= len(all) || len(all[s.Kind][b.Bin]) == 0 {
			p.Spans = append(p.Spans, memory.Span{From: profile.SiteBinFrom(int(b.Bin)), To: profile.SiteBinFrom(int(b.Bin) + 1), Accesses: float64(b.Count)})
			continue
		}
		for _, of := range all[s.Kind][b.Bin] {
			of.Accesses *= float64(b.Count)
			p.Spans = append(p.Spans, of)
		}
	}
	return p
}

// Basis is the kind of law from which a count is predicted.
type Basis uint8

// The bases, from the most to the least reliable.
const (
	// Checked: a polynomial that fits more runs than are needed to determine its coefficients.
	Checked Basis = iota
	// Unchecked: a polynomial with as many terms as there are runs.
	Unchecked
	// Remainder: a polynomial whose value for this input is not an integer.
	Remainder
	// Fitted: a least-squares law. The counts depend on the data, or there are too few runs to
	// determine how they grow.
	Fitted
	// Once: only one run executed the block.
	Once
)

var basisNames = [...]string{"checked", "unchecked", "remainder", "fitted", "one run"}

func (b Basis) String() string { return basisNames[b] }

// Block is the prediction for a block.
type Block struct {
	Law        Law
	Basis      Basis
	Executions uint64
	Low, High  float64 // interval of Executions; see [Law.Interval]
}

// Predicted is the prediction for a run with a new input.
type Predicted struct {
	*Prediction
	Of []Block // the prediction for each block
	// Run is the predicted run, whose edges balance. To balance the predicted edges, up to Slack
	// executions enter or leave blocks without following an edge.
	Run   *blocks.Run
	Slack uint64
	// Profile is the predicted profile of the run, for questions about caches and blocks. The
	// profile contains sites, blocks, and the stack distances for one line size. The profile
	// contains no data structures, no windows, and no counts of set-associative caches.
	Profile *profile.Profile
	// Loops contains the loops of the run, from which misses can be counted exactly. If Loops is nil,
	// NoLoops is the reason.
	Loops   *Extrapolated
	NoLoops string
}

// Predict predicts the run with the given parameters, and uses [Scaled] reuse profiles. The error
// is a [*trace.OptionError] for invalid parameters, or an [*InputError] if a count is negative or
// at least 2^64.
func (p *Program) Predict(at []int64) (*Predicted, error) {
	prediction, err := p.Model.Predict(at, Scaled)
	if err != nil {
		return nil, err
	}
	out := &Predicted{Prediction: prediction}
	if err := p.predictEdges(out); err != nil {
		return nil, err
	}
	if out.Profile, err = p.profileAt(at); err != nil {
		return nil, err
	}
	out.Profile.Blocks = out.Run.Append(nil)
	out.Loops, out.NoLoops = p.extrapolate(at, out.Profile.Totals.AllReferences())
	p.addProgramCaveats(out)
	return out, nil
}

// wholeCount rounds the value of a law to an integer count. The function subject returns the
// beginning of the error message, such as "the reference in a.c:7 runs".
func (p *Program) wholeCount(l *Law, at []int64, subject func() string) (uint64, error) {
	bad := func(got, want string) (uint64, error) {
		return 0, &InputError{subject() + " " + got + " times, according to the formula " + l.String(p.Names), want}
	}
	l = l.at(at)
	v, ok := new(big.Rat), false
	if l.Kind == Exact {
		v, ok = l.exactValue(at)
	}
	if !ok {
		if v = new(big.Rat).SetFloat64(l.At(at)); v == nil {
			return bad("too many", "fewer than 2^64; predict for smaller parameters")
		}
	}
	n := new(big.Int).Div(new(big.Int).Add(new(big.Int).Mul(v.Num(), big.NewInt(2)), v.Denom()), new(big.Int).Mul(v.Denom(), big.NewInt(2)))
	switch {
	case n.Sign() < 0:
		return bad(n.String(), "0 or more; add a run with parameters closer to these, or predict for other parameters")
	case !n.IsUint64():
		return bad(n.String(), "fewer than 2^64; predict for smaller parameters")
	}
	return n.Uint64(), nil
}

func (p *Program) blockName(b int) string {
	t := p.runs[0].Program
	k := &t.Blocks[b]
	name := "block " + blocks.Label(k)
	if int64(k.Function) < int64(len(t.Functions)) {
		name += " of " + t.Functions[k.Function].Name
	}
	return name
}

// predictEdges predicts the edges of blocks, and balances them.
func (p *Program) predictEdges(out *Predicted) error {
	t, at := p.runs[0].Program, out.Parameters
	e := blocks.NewEdges(t)
	out.Run, out.Of = &blocks.Run{Program: t, Edges: e}, make([]Block, len(t.Blocks))
	for b := range t.Blocks {
		if err := p.blockEdges(out, b, at); err != nil {
			return err
		}
	}
	for f := range t.Functions {
		n, err := p.wholeCount(&p.entered[f], at, func() string { return t.Functions[f].Name + " is entered" })
		if err != nil {
			return err
		}
		e.Entered[f] = n
	}
	callees := e.Callees(t)
	into, calls := make([]uint64, len(t.Blocks)), make([]uint64, len(t.Functions))
	for b := range t.Blocks {
		for i, to := range t.Blocks[b].Successors {
			into[to] += e.Taken[b][i]
		}
		if f := callees[b]; f == trace.NoFunction {
			e.Unmade[b] = 0
		} else {
			e.Unmade[b] = min(e.Unmade[b], e.Visits[b])
			calls[f] += e.Visits[b] - e.Unmade[b]
		}
	}
	for b := range t.Blocks {
		k := &t.Blocks[b]
		in := into[b] + e.Resumed[b]
		if f := k.Function; k.Flags&trace.EntryBlock != 0 && int64(f) < int64(len(t.Functions)) {
			if in += calls[f] + e.Entered[f]; in > e.Visits[b] && e.Entered[f] > 0 {
				less := min(in-e.Visits[b], e.Entered[f])
				e.Entered[f] -= less
				in -= less
				out.Slack += less
			}
		}
		switch {
		case in > e.Visits[b]: // let surplus executions leave the block without following an edge
			more := in - e.Visits[b]
			e.Left[b] += more
			e.Visits[b] = in
			if callees[b] != trace.NoFunction {
				e.Unmade[b] += more
			}
			out.Slack += more
		case in < e.Visits[b]:
			e.Resumed[b] += e.Visits[b] - in
			out.Slack += e.Visits[b] - in
		}
	}
	return nil
}

// blockEdges predicts the executions of a block and of its edges. The executions of the edges add
// up to the executions of the block.
func (p *Program) blockEdges(out *Predicted, b int, at []int64) (err error) {
	t, e := p.runs[0].Program, out.Run.Edges
	of := &out.Of[b]
	of.Law = p.Counts[b]
	of.Basis = p.basis(b, &out.Counts[b])
	if of.Executions, err = p.wholeCount(&of.Law, at, func() string { return p.blockName(b) + " runs" }); err != nil {
		return err
	}
	if e.Resumed[b], err = p.wholeCount(&p.resumed[b], at, func() string { return p.blockName(b) + " is resumed" }); err != nil {
		return err
	}
	if e.Unmade[b], err = p.wholeCount(&p.unmade[b], at, func() string { return "the call in " + p.blockName(b) + " is skipped" }); err != nil {
		return err
	}
	list := make([]uint64, len(p.ways[b]))
	sum, most := uint64(0), 0
	for i := range list {
		if list[i], err = p.wholeCount(&p.ways[b][i], at, func() string { return "an edge from " + p.blockName(b) + " is taken" }); err != nil {
			return err
		}
		if sum+list[i] < sum {
			return &InputError{p.blockName(b) + " runs too often to count", "fewer than 2^64; predict for smaller parameters"}
		}
		if sum += list[i]; list[i] > list[most] {
			most = i
		}
	}
	switch n := of.Executions; {
	case n >= sum:
		list[most] += n - sum
	case sum-n <= list[most]:
		list[most] -= sum - n
	default:
		of.Executions = sum
	}
	of.Low, of.High = of.Law.Interval(at)
	if of.Basis == Once {
		of.Low = 0
	}
	of.Low, of.High = min(of.Low, float64(of.Executions)), max(of.High, float64(of.Executions))
	e.Visits[b] = of.Executions
	copy(e.Taken[b], list[:len(t.Blocks[b].Successors)])
	e.Left[b] = list[len(list)-1]
	return nil
}

func (p *Program) basis(b int, c *Count) Basis {
	l := &p.Counts[b]
	ran := 0
	for i := range p.runs {
		if p.runs[i].Edges.Visits[b] > 0 {
			ran++
		}
	}
	switch {
	case ran == 1:
		return Once
	case l.Kind != Exact:
		return Fitted
	case !c.IsWhole:
		return Remainder
	case l.Checked == 0:
		return Unchecked
	}
	return Checked
}

// predictedSite contains the predicted line accesses of a source location.
type predictedSite struct {
	site           *site
	of             *memory.Profile
	accesses, cold uint64
}

// addTo adds the predicted accesses of a site to the site's profile r, and to the statistics for
// the site's kind of access. It rounds the numbers of accesses to integers without changing their
// sum. All distances are less than the number of lines.
func (d *predictedSite) addTo(r *profile.Reuse, kind *profile.KindLocality, lines uint64) {
	counts := make([]uint64, profile.SiteBins)
	all, left := 0.0, d.accesses-d.cold
	for _, s := range d.of.Spans {
		all += s.Accesses
	}
	if all == 0 || lines == 0 { // all accesses are first accesses
		d.cold, left = d.accesses, 0
	}
	r.Cold = d.cold
	kind.Cold += d.cold
	sum, given := 0.0, uint64(0)
	for i, s := range d.of.Spans {
		sum += s.Accesses
		until := uint64(math.Round(min(sum/all, 1) * float64(left)))
		if until = max(given, min(until, left)); i == len(d.of.Spans)-1 {
			until = left
		}
		n := until - given
		given = until
		at := min((s.From+s.To-1)/2, max(lines, 1)-1, profile.MaxDistance)
		kind.Distances.AddN(at, n)
		counts[profile.SiteBin(uint32(min(at, math.MaxUint32)))] += n
	}
	for bin, n := range counts {
		if n > 0 {
			r.Bins = append(r.Bins, profile.BinCount{Bin: uint8(bin), Count: n})
		}
	}
}

// keptReuse returns the reuse profile of a site in the largest run that contains the site, scaled
// to the given number of accesses.
func (p *Program) keptReuse(s *site, accesses float64) *memory.Profile {
	of := memory.FromReuse(&s.like.Reuse)
	if all := of.Accesses(); all > 0 {
		of.Cold *= accesses / all
		for i := range of.Spans {
			of.Spans[i].Accesses *= accesses / all
		}
	}
	return of
}

// divideStrides divides the references of a site among its strides, according to the laws of the
// strides.
func (p *Program) divideStrides(s *site, at []int64, references uint64) (of [profile.NumStrides]uint64) {
	left := references
	most := profile.ZeroStride
	for c := range profile.NumStrides {
		of[c] = min(uint64(min(math.Round(s.strides[c].count(at).Executions), 1<<63)), left)
		if left -= of[c]; of[c] > of[most] {
			most = c
		}
	}
	of[most] += left
	return of
}

// placeOf returns the name of a site's source location.
func placeOf(s *profile.Site) string {
	if s.File == "" {
		return s.Function
	}
	return s.File + ":" + strconv.FormatUint(uint64(s.Line), 10)
}

// addProgramCaveats adds the caveats that concern the whole program.
func (p *Program) addProgramCaveats(out *Predicted) {
	say := func(s string) { out.Doubts = append(out.Doubts, s) }
	guessed := false
	for b := range out.Of {
		guessed = guessed || out.Of[b].Basis == Fitted
	}
	if n := maxTerms + 1 - len(p.runs); guessed && n > 0 {
		say("The formulas are polynomials with up to " + strconv.Itoa(maxTerms) + " terms: add " + runsMore(n) + " to determine and check every such formula.")
	}
	if out.Slack > 0 {
		say("The formulas predict different numbers of entries and exits for some blocks. The total difference is " + strconv.FormatUint(out.Slack, 10) + ".")
	}
	last := p.inputs[len(p.inputs)-1].Profile
	if len(last.Totals.Threads) > 1 {
		say("The runs have " + strconv.Itoa(len(last.Totals.Threads)) + " threads. The prediction treats the references of all threads as if a single thread made them.")
	}
}

// MissCaveat describes how misses are predicted, as a sentence.
func (p *Predicted) MissCaveat() string {
	if p.Loops == nil {
		return "Misses are estimated from stack distances, without knowing to which sets lines map, because " + p.NoLoops + ". The interval holds for every mapping."
	}
	return "Misses are counted from the loops of " + strconv.Itoa(p.Loops.Runs) + " runs. The interval covers " + strconv.Itoa(placements) + " placements of the heap blocks and of the stack, because their addresses do not follow from the input."
}

func runsMore(n int) string {
	if n == 1 {
		return "one more run"
	}
	return strconv.Itoa(n) + " more runs"
}

// profileAt predicts the counts of each site, and the totals of all sites.
func (p *Program) profileAt(at []int64) (*profile.Profile, error) {
	last := p.inputs[len(p.inputs)-1].Profile
	out := &profile.Profile{Input: last.Input, Sites: &profile.Sites{LineBytes: last.Sites.LineBytes}}
	var list []predictedSite
	lines, all := uint64(0), uint64(0)
	for k := range p.sites {
		s := &p.sites[k]
		where := func() string { return "the reference in " + placeOf(s.like) + " runs" }
		references, err := p.wholeCount(&s.references, at, where)
		if err != nil {
			return nil, err
		}
		accesses, err := p.wholeCount(&s.accesses, at, where)
		if err != nil {
			return nil, err
		}
		if n := s.like.References(); s.accesses.Kind != Exact && s.references.Kind == Exact && n > 0 {
			// The allocator's placement of arrays determines whether references cross lines. A law
			// for the share of such references would describe the allocator, so the share in the
			// largest run is used.
			accesses = uint64(min(math.Round(float64(references)*float64(s.like.Reuse.Accesses())/float64(n)), 1<<63))
		}
		accesses = max(accesses, references)
		if all+accesses < all {
			return nil, &InputError{"the references are too many to count", "fewer than 2^64; predict for smaller parameters"}
		}
		if all += accesses; accesses == 0 {
			continue
		}
		code := *s.like
		code.Reuse = profile.Reuse{}
		code.Strides = p.divideStrides(s, at, references)
		out.Sites.Code = append(out.Sites.Code, code)
		out.Totals.References[s.like.Kind] += references
		d := predictedSite{site: s, accesses: accesses}
		if s.reuse != nil {
			d.of = s.reuse.profileFor(at, float64(accesses))
			// only some runs have a reuse profile, so use the profile of the largest of these runs
		} else {
			d.of = p.keptReuse(s, float64(accesses))
		}
		d.cold = min(accesses, uint64(math.Round(d.of.Cold)))
		lines += d.cold
		list = append(list, d)
	}
	lines = p.divideCold(list, lines, at)
	l := profile.Locality{LineBytes: out.Sites.LineBytes}
	kinds := map[trace.Kind]*profile.KindLocality{}
	for i := range list {
		d := &list[i]
		kind := d.site.like.Kind
		if kinds[kind] == nil {
			kinds[kind] = &profile.KindLocality{Kind: kind}
		}
		d.addTo(&out.Sites.Code[i].Reuse, kinds[kind], lines)
	}
	for kind := range trace.Kind(trace.NumKinds) {
		if of := kinds[kind]; of != nil {
			l.Kinds = append(l.Kinds, *of)
		}
		n, err := p.wholeCount(&p.bytes[kind], at, func() string { return "the bytes are accessed" })
		if err != nil {
			return nil, err
		}
		out.Totals.Bytes[kind] = n
	}
	out.Locality = []profile.Locality{l}
	return out, nil
}

// divideCold makes the sites' first accesses add up to the number of lines, if this number follows an
// exact law, or if the first accesses of a site do not. The placement of an array within its first
// line determines which of several sites makes the first accesses, so the numbers of the sites may
// follow no law. The sites then receive the shares of the largest run. The function returns the
// total.
func (p *Program) divideCold(list []predictedSite, sum uint64, at []int64) uint64 {
	uncertain := slices.ContainsFunc(list, func(d predictedSite) bool {
		return d.site.reuse == nil || !d.site.reuse.cold.isCertain(at)
	})
	want := uint64(math.Round(p.cold.count(at).Executions))
	if !uncertain && !p.cold.isCertain(at) || want == sum {
		return sum
	}
	last := p.inputs[len(p.inputs)-1].Profile
	all := float64(last.LocalityAt(last.Sites.LineBytes).Lines())
	sum = 0
	for i := range list {
		d := &list[i]
		d.cold = min(d.accesses, uint64(float64(d.site.like.Reuse.Cold)/all*float64(want)))
		sum += d.cold
	}
	for i := range list {
		more := min(want-min(sum, want), list[i].accesses-list[i].cold)
		if list[i].site.like.Reuse.Cold > 0 {
			list[i].cold += more
			sum += more
		}
	}
	return sum
}

// Same returns nil if the input is a run of the same build as the fitted runs. Otherwise, Same
// returns the error that [FitProgram] would return.
func (p *Program) Same(in Input) error {
	r, err := in.readBlocks()
	if err != nil {
		return err
	}
	return sameProgram(&p.inputs[0], &in, p.runs[0], r)
}
