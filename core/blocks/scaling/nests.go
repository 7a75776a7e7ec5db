package scaling

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// nests extrapolates the loop-compressed traces of runs whose loops have the same structure. Every
// trip count, stride and size, and every offset of an address in its region, is a polynomial in the
// parameters that at least one run checks.
type nests struct {
	items   []loops.Item // of the largest run
	kinds   trace.Kinds
	laws    []Law // of the numbers of the items, in the order of flattened.numbers
	regions []region
	of      []int // the region of each leaf
	moves   []move
	used    int // number of runs with the structure of the largest run
}

// region is a block of memory whose address does not follow from the parameters: a heap block, or
// a group of addresses that belong to no heap block, such as static variables or the stack. Lists
// contain an element for each used run.
type region struct {
	heap   bool
	bases  []int64
	sizes  []int64 // sizes of a heap block
	size   Law
	modulo int64 // the largest power of two, at most a page, modulo which all bases are equal
}

const (
	pageBytes = 4096
	// mapBytes is the smallest size of a block that glibc maps separately, by default.
	mapBytes = 128 << 10
	// mapHeader is the offset of a separately mapped block in its first page.
	mapHeader = 16
	// alignedBytes is the smallest alignment that is not due to chance.
	alignedBytes = 64
	// nearBytes is the maximum distance between an address and the first address of its region, for
	// addresses outside the heap.
	nearBytes = 1 << 28
	// maxNumbers and maxDepth limit the time of the extrapolation. Programs with affine loops have
	// far fewer numbers and nested loops.
	maxNumbers = 1 << 16
	maxDepth   = 8
)

// flattened is a nest as a list of numbers.
type flattened struct {
	shape   []uint64 // numbers that are equal in nests with the same structure
	numbers []int64
	leaves  []flatLeaf
	blocks  []region // the heap blocks, with one run
	problem string   // why the nest cannot be extrapolated; "" if it can
}

// flatLeaf is a leaf of a flattened nest.
type flatLeaf struct {
	addr   int64
	block  int // index of its heap block; -1 if its address is outside the heap
	number int // index of the address in flattened.numbers
}

// move is a step from one heap block to another, as in a program that exchanges two arrays after
// every iteration.
type move struct{ leaf, depth, from, to int }

// visit calls f for each item, with the surrounding loops.
func visit(items []loops.Item, around []*loops.Item, f func(it *loops.Item, around []*loops.Item)) {
	for i := range items {
		f(&items[i], around)
		visit(items[i].Body, append(around[:len(around):len(around)], &items[i]), f)
	}
}

// trips returns the trip count of a loop in the given iterations of the surrounding loops.
func trips(it *loops.Item, iterations []int64) int64 {
	n := int64(it.Trips)
	for d, i := range iterations {
		n += it.Step(d) * i
	}
	return n
}

// executions calls yield for executed iterations of the surrounding loops, until yield returns
// false. In each loop, the first, the last and the middle iteration are tried, in this order.
func executions(around []*loops.Item, iterations []int64, yield func([]int64) bool) bool {
	d := len(iterations)
	if d == len(around) {
		return yield(iterations)
	}
	n := trips(around[d], iterations)
	for k, i := range [...]int64{0, n - 1, n / 2} {
		if i < 0 || i >= n || k == 2 && i == n-1 || k > 0 && i == 0 {
			continue
		}
		if !executions(around, append(iterations[:d:d], i), yield) {
			return false
		}
	}
	return true
}

// addressOf returns the address of a leaf in the given iterations.
func addressOf(it *loops.Item, iterations []int64) int64 {
	addr := int64(it.Addr)
	for d, i := range iterations {
		addr += it.Step(d) * i
	}
	return addr
}

// flatten lists the numbers of a nest. The number of a leaf's address is its offset in its heap
// block, or the address itself outside the heap. The number of a step between two heap blocks
// excludes the distance of the blocks.
func flatten(items []loops.Item) (f flattened, moves []move) {
	visit(items, nil, func(it *loops.Item, around []*loops.Item) {
		switch {
		case len(f.numbers) > maxNumbers:
			f.problem = "is one of too many references outside loops"
			return
		case len(around) > maxDepth:
			f.problem = "is in more than " + strconv.Itoa(maxDepth) + " nested loops"
			return
		}
		if it.IsLoop() {
			f.shape = append(f.shape, 0, uint64(len(it.Body)))
			f.numbers = append(f.numbers, int64(it.Trips))
			for d := range around {
				f.numbers = append(f.numbers, it.Step(d))
			}
			return
		}
		moves = append(moves, f.addLeaf(it, around)...)
	})
	return f, moves
}

// addLeaf adds a leaf. An allocation adds a block, which consists of the blocks that the leaf
// allocates in all iterations.
func (f *flattened) addLeaf(it *loops.Item, around []*loops.Item) (moves []move) {
	r := &it.Ref
	if it.Wild && f.problem == "" {
		f.problem = "has irregular addresses"
	}
	if r.Kind == trace.Alloc {
		low, high := int64(math.MaxInt64), int64(math.MinInt64)
		executions(around, nil, func(iterations []int64) bool {
			addr := addressOf(it, iterations)
			low, high = min(low, addr), max(high, addr)
			return true
		})
		f.shape = append(f.shape, 1, uint64(r.Site), uint64(r.Kind))
		f.leaves = append(f.leaves, flatLeaf{block: len(f.blocks), number: len(f.numbers)})
		f.blocks = append(f.blocks, region{heap: true, bases: []int64{low}, sizes: []int64{high - low + int64(r.Arg)}})
		f.numbers = append(f.numbers, make([]int64, 2+len(around))...)
		return nil
	}
	leaf := flatLeaf{addr: int64(it.Addr), block: -1, number: len(f.numbers)}
	var first []int64
	executions(around, nil, func(iterations []int64) bool {
		first = slices.Clone(iterations)
		return false
	})
	if first != nil || len(around) == 0 {
		leaf.block = f.blockOf(addressOf(it, first))
	}
	offset := leaf.addr
	if leaf.block >= 0 {
		offset -= f.blocks[leaf.block].bases[0]
	}
	f.shape = append(f.shape, 2, uint64(r.Site), uint64(r.Thread), uint64(r.Kind), uint64(leaf.block+1))
	f.numbers = append(f.numbers, offset, int64(r.Bytes))
	for d := range around {
		step, to := it.Step(d), leaf.block
		if step != 0 && first != nil && leaf.block >= 0 && trips(around[d], first[:d]) > first[d]+1 {
			if at := f.blockOf(addressOf(it, first) + step); at >= 0 {
				to = at
			}
		}
		if to != leaf.block {
			step -= f.blocks[to].bases[0] - f.blocks[leaf.block].bases[0]
			moves = append(moves, move{len(f.leaves), d, leaf.block, to})
			f.shape = append(f.shape, uint64(d), uint64(to))
			if trips(around[d], first[:d]) > 2 && f.problem == "" {
				f.problem = "moves between more than two heap blocks"
			}
		}
		f.numbers = append(f.numbers, step)
	}
	f.leaves = append(f.leaves, leaf)
	return moves
}

// blockOf returns the most recent heap block that contains an address, or -1.
func (f *flattened) blockOf(addr int64) int {
	for i := len(f.blocks) - 1; i >= 0; i-- {
		if b := &f.blocks[i]; addr >= b.bases[0] && addr-b.bases[0] < b.sizes[0] {
			return i
		}
	}
	return -1
}

// fitNests fits the loops of the inputs. If they cannot be extrapolated, it returns the reason.
func (p *Program) fitNests() (*nests, string) {
	x := &nests{}
	var points []Run
	var list []flattened
	for i := len(p.inputs) - 1; i >= 0; i-- {
		of := p.inputs[i].Profile
		if len(of.Loops) == 0 {
			if i == len(p.inputs)-1 {
				return nil, "the profile of the largest run contains no loops"
			}
			continue
		}
		if len(of.Totals.Threads) > 1 {
			return nil, "the runs have several threads"
		}
		tree, err := loops.Decode(of.Loops)
		if err != nil {
			return nil, "the loops in " + p.inputs[i].Name + " are damaged: " + err.Error()
		}
		items := tree.Only(of.Input.Kinds | 1<<trace.Alloc).Nest().Items
		f, moves := flatten(items)
		switch {
		case x.items == nil:
			if f.problem != "" {
				return nil, p.problemAt(items, len(f.numbers), f.problem)
			}
			x.items, x.kinds, x.moves = items, of.Input.Kinds, moves
		case !slices.Equal(f.shape, list[0].shape):
			continue
		}
		points, list = append(points, p.Model.runs[i]), append(list, f)
	}
	if x.used = len(list); x.used < 2 {
		return nil, "the loops of the largest run have another structure than the loops of the smaller runs"
	}
	slices.Reverse(points)
	slices.Reverse(list)
	fit := newFitter(&Model{Names: p.Names, runs: points, varied: variedIn(points)})
	x.addRegions(fit, list)
	for k := range list[0].numbers {
		l, ok := fit.numberLaw(list, func(f *flattened) int64 { return f.numbers[k] })
		if !ok {
			return nil, p.problemAt(x.items, k, "follows no polynomial that a run checks")
		}
		x.laws = append(x.laws, l)
	}
	return x, ""
}

// addRegions adds the heap blocks, and divides the addresses outside the heap into regions. An
// address belongs to a region if its distance from the first address of the region is a polynomial.
// The numbers of these addresses become offsets in their regions.
func (x *nests) addRegions(fit *fitter, list []flattened) {
	for g := range list[0].blocks {
		r := region{heap: true}
		for i := range list {
			of := &list[i].blocks[g]
			r.bases, r.sizes = append(r.bases, of.bases[0]), append(r.sizes, of.sizes[0])
		}
		r.size, _ = fit.numberLaw(list, func(f *flattened) int64 { return f.blocks[g].sizes[0] })
		x.regions = append(x.regions, r)
	}
	for k := range list[0].leaves {
		at := list[0].leaves[k].block
		for g := len(list[0].blocks); g < len(x.regions) && at < 0; g++ {
			if x.regions[g].contains(fit, list, k) {
				at = g
			}
		}
		if at < 0 {
			r := region{}
			for i := range list {
				r.bases, r.sizes = append(r.bases, list[i].leaves[k].addr), append(r.sizes, 0)
			}
			at = len(x.regions)
			x.regions = append(x.regions, r)
		}
		if !x.regions[at].heap {
			for i := range list {
				list[i].numbers[list[i].leaves[k].number] -= x.regions[at].bases[i]
			}
		}
		x.of = append(x.of, at)
	}
	for g := range x.regions {
		r := &x.regions[g]
		r.modulo = pageBytes
		for _, base := range r.bases {
			if d := uint64(base - r.bases[0]); d != 0 {
				r.modulo = min(r.modulo, int64(1)<<min(32, bits.TrailingZeros64(d)))
			}
		}
	}
}

// contains reports whether a leaf outside the heap belongs to the region.
func (r *region) contains(fit *fitter, list []flattened, leaf int) bool {
	for i := range list {
		if d := list[i].leaves[leaf].addr - r.bases[i]; max(d, -d) >= nearBytes {
			return false
		}
	}
	i := -1
	_, ok := fit.numberLaw(list, func(f *flattened) int64 {
		i++
		return f.leaves[leaf].addr - r.bases[i]
	})
	return ok
}

// variedIn returns the parameters that have different values in different runs.
func variedIn(runs []Run) (varied []int) {
	for j := range runs[0].Parameters {
		for i := range runs {
			if runs[i].Parameters[j] != runs[0].Parameters[j] {
				varied = append(varied, j)
				break
			}
		}
	}
	return varied
}

// numberLaw finds the polynomial with plausible coefficients that fits a number of the nests, and
// that at least one run checks.
func (f *fitter) numberLaw(list []flattened, of func(*flattened) int64) (Law, bool) {
	values := make([]int64, len(list))
	for i := range list {
		values[i] = of(&list[i])
	}
	if slices.Max(values) == slices.Min(values) {
		return f.exactLaw(values, math.Inf(1))
	}
	l, _, ok := f.families[0].shortest(f.points, values, math.Inf(1))
	ok = ok && l.Checked > 0 && !slices.ContainsFunc(l.Terms, func(t Term) bool { return !isPlausible(t.Factor) })
	return l, ok
}

// problemAt describes the location of the item to which a number belongs, and its problem. If the
// argument number is the number of all numbers, the item is the first irregular leaf.
func (p *Program) problemAt(items []loops.Item, number int, problem string) string {
	var site uint32
	found, inLoop, n := false, false, 0
	visit(items, nil, func(it *loops.Item, around []*loops.Item) {
		n += 1 + len(around)
		if !it.IsLoop() {
			n++
		}
		if n <= number && !it.Wild || found {
			return
		}
		if !it.IsLoop() {
			site, found = it.Ref.Site, true
		} else {
			inLoop = true // the first leaf of the loop has a source location
		}
	})
	what := "a reference"
	if inLoop {
		what = "the loop that contains a reference"
	}
	code := p.inputs[len(p.inputs)-1].Profile.Sites.Code
	for i := range code {
		if found && code[i].Number == site {
			return what + " in " + placeOf(&code[i]) + " " + problem
		}
	}
	return what + " " + problem
}

// at returns the items of the loops for the given parameters. Their addresses are offsets in their
// regions.
func (x *nests) at(at []int64, names []string) (items []loops.Item, err error) {
	values := make([]int64, len(x.laws))
	for k := range x.laws {
		v, ok := x.laws[k].exactValue(at)
		if !ok || !v.IsInt() || !v.Num().IsInt64() {
			return nil, errors.New("a trip count, stride or offset would be " + x.laws[k].String(names) + ", which is no integer for this input")
		}
		values[k] = v.Num().Int64()
	}
	items = (&loops.Nest{Items: x.items}).Clone().Items
	next := 0
	take := func() int64 {
		next++
		return values[next-1]
	}
	visit(items, nil, func(it *loops.Item, around []*loops.Item) {
		if it.IsLoop() {
			it.Trips = uint64(take())
		} else {
			it.Addr = trace.Addr(take())
			bytes := take()
			if bytes < 0 || bytes > math.MaxUint32 {
				err = errors.New("a reference would access " + strconv.FormatInt(bytes, 10) + " bytes")
			}
			it.Ref.Bytes = uint32(bytes)
		}
		it.Steps = it.Steps[:0]
		for range around {
			it.Steps = append(it.Steps, take())
		}
	})
	return items, err
}

// sizesAt returns the size of each region: the size of the heap block, or the end of the last
// access if it is later.
func (x *nests) sizesAt(at []int64, items []loops.Item) []int64 {
	sizes := make([]int64, len(x.regions))
	for g := range x.regions {
		if v, ok := x.regions[g].size.exactValue(at); ok && v.IsInt() && v.Num().IsInt64() {
			sizes[g] = v.Num().Int64()
		}
	}
	leaf := 0
	visit(items, nil, func(it *loops.Item, around []*loops.Item) {
		if it.IsLoop() {
			return
		}
		g := x.of[leaf]
		if leaf++; it.Ref.Kind == trace.Alloc {
			return
		}
		executions(around, nil, func(iterations []int64) bool {
			sizes[g] = max(sizes[g], addressOf(it, iterations)+int64(it.Ref.Bytes))
			return true
		})
	})
	return sizes
}

// place returns a nest in which each region has the given base.
func (x *nests) place(items []loops.Item, bases []int64) *loops.Nest {
	nest, leaf, moves := (&loops.Nest{Items: items}).Clone(), 0, x.moves
	visit(nest.Items, nil, func(it *loops.Item, around []*loops.Item) {
		if it.IsLoop() {
			return
		}
		if it.Ref.Kind != trace.Alloc {
			it.Addr += trace.Addr(bases[x.of[leaf]])
		}
		for ; len(moves) > 0 && moves[0].leaf == leaf; moves = moves[1:] {
			it.Steps[moves[0].depth] += bases[moves[0].to] - bases[moves[0].from]
		}
		leaf++
	})
	return nest
}

// isMapped reports whether glibc maps a block of the given size separately, although it did not in
// any run.
func (r *region) isMapped(size int64) bool {
	return r.heap && size >= mapBytes && slices.Max(r.sizes) < mapBytes
}

// alignment returns the largest power of two, at most a page, that divides the addresses of the block.
func (r *region) alignment() int64 {
	aligned := int64(pageBytes)
	for _, base := range r.bases {
		aligned = min(aligned, base&-base)
	}
	return aligned
}

// mappedResidue returns the offset in its page of a separately mapped block. Blocks that begin at
// page boundaries, or at cache lines like all heap blocks of the program, stay aligned.
func (x *nests) mappedResidue(g int) int64 {
	aligned := x.regions[g].alignment()
	for i := range x.regions {
		if x.regions[i].heap && aligned < pageBytes {
			aligned = min(aligned, x.regions[i].alignment())
		}
	}
	if aligned < alignedBytes {
		return mapHeader
	}
	return upTo(mapHeader, 0, aligned) % pageBytes
}

// upTo returns the smallest number that is at least x and equal to residue modulo m. downTo returns
// the largest number that is at most x.
func upTo(x, residue, m int64) int64   { return x + ((residue-x)%m+m)%m }
func downTo(x, residue, m int64) int64 { return x - ((x-residue)%m+m)%m }

// likely returns the most likely base of each region. Regions outside the heap keep the base of the
// largest run. A heap block is as far from the previous block as in the runs, and has the same
// remainder modulo a power of two, if the remainders of the runs agree. If mapped is true, blocks
// that are large for the first time are mapped separately.
func (x *nests) likely(sizes []int64, mapped bool) []int64 {
	bases := make([]int64, len(x.regions))
	before, top := -1, int64(1)<<46 // the previous block that is not mapped; the start of the mapped blocks
	for g := range x.regions {
		r := &x.regions[g]
		last := r.bases[len(r.bases)-1]
		switch {
		case mapped && r.isMapped(sizes[g]):
			residue := x.mappedResidue(g)
			bases[g] = downTo(top-sizes[g], residue, pageBytes)
			top = downTo(bases[g]-mapHeader, 0, pageBytes)
			continue
		case !r.heap || before < 0:
			bases[g] = last
		default:
			bases[g] = r.beside(&x.regions[before], bases[before], sizes[before], sizes[g])
		}
		if r.heap {
			before = g
		}
	}
	return bases
}

// beside returns the base of a block, given the base and the size of the previous block, and the
// size of the block itself. The block lies on the same side of the previous block as in the largest
// run, at the smallest distance that occurred in the runs.
func (r *region) beside(previous *region, base, before, size int64) int64 {
	last := len(r.bases) - 1
	up := r.bases[last] > previous.bases[last]
	gap := int64(math.MaxInt64)
	for i := range r.bases {
		switch {
		case (r.bases[i] > previous.bases[i]) != up:
		case up:
			gap = min(gap, max(0, r.bases[i]-previous.bases[i]-previous.sizes[i]))
		default:
			gap = min(gap, max(0, previous.bases[i]-r.bases[i]-r.sizes[i]))
		}
	}
	if up {
		return upTo(base+before+gap, r.bases[last], r.modulo)
	}
	return downTo(base-size-gap, r.bases[last], r.modulo)
}

// arbitrary returns random bases that have the same remainders as the bases of the runs. In every
// second placement, the blocks that are large for the first time are mapped separately.
func (x *nests) arbitrary(seed uint64, sizes []int64) []int64 {
	r := rand.New(rand.NewPCG(seed, 0))
	bases := make([]int64, len(x.regions))
	for g := range bases {
		of := &x.regions[g]
		residue, modulo := of.bases[len(of.bases)-1], max(of.modulo, 1)
		if seed%2 == 0 && of.isMapped(sizes[g]) {
			residue, modulo = x.mappedResidue(g), pageBytes
		}
		bases[g] = int64(g+1)<<40 + upTo(r.Int64N(256*pageBytes), residue, modulo)
	}
	return bases
}

// mostPauses limits the time of a count for all placements together. Package misses asks after about
// 131,000 simulated accesses whether it should continue.
const mostPauses = 2048

// placements is the number of placements of the regions for which misses are counted.
const placements = 16

// Extrapolated contains the loops of a predicted run. The addresses of heap blocks and of the stack do
// not follow from the input, so the loops are placed at several addresses.
type Extrapolated struct {
	trees []*loops.Tree // the most likely placement is the first
	// Runs is the number of runs from which the loops were extrapolated.
	Runs int
}

// extrapolate returns the loops for the given parameters, or the reason why they are not known. The
// number of references that the laws of the blocks predict must agree.
func (p *Program) extrapolate(at []int64, references uint64) (*Extrapolated, string) {
	if p.nests == nil {
		return nil, p.noNests
	}
	x := p.nests
	items, err := x.at(at, p.Names)
	if err != nil {
		return nil, err.Error()
	}
	sizes := x.sizesAt(at, items)
	out := &Extrapolated{Runs: x.used}
	all := [][]int64{x.likely(sizes, true), x.likely(sizes, false)}
	for len(all) < placements {
		all = append(all, x.arbitrary(uint64(len(all)), sizes))
	}
	for _, bases := range all {
		tree, err := x.place(items, bases).Build()
		if err != nil {
			return nil, err.Error()
		}
		tree = tree.Only(x.kinds)
		if tree.Rows() != references {
			return nil, "the extrapolated loops make " + strconv.FormatUint(tree.Rows(), 10) + " references, but the formulas of the blocks predict " + strconv.FormatUint(references, 10)
		}
		out.trees = append(out.trees, tree)
	}
	return out, ""
}

// count returns the number of misses in a cache for the most likely placement of the program's data,
// and the smallest and the largest number for all tried placements. It also returns the number of
// placements for which misses were counted before the time was up.
func (x *Extrapolated) count(c misses.Cache) (count, low, high uint64, placed int) {
	pauses := 0
	for i, tree := range x.trees {
		n, _, err := misses.Total(tree, c, func(uint64, uint64) bool {
			pauses++
			return pauses < mostPauses
		})
		switch {
		case err != nil:
			return count, low, high, i
		case i == 0:
			count, low, high = n, n, n
		}
		low, high = min(low, n), max(high, n)
	}
	return count, low, high, len(x.trees)
}

// distanceError is the factor by which extrapolated stack distances may be wrong.
const distanceError = 1.125

// Forecast predicts the misses of a cache. The misses are counted if the loops are known. If there is
// not enough time to count them for all placements, the interval of a set-associative cache holds for
// every mapping of the lines to sets: the first access to a line always misses, and an access with a
// stack distance less than the number of ways never does.
func (p *Predicted) Forecast(c hierarchy.Cache) (f hierarchy.Forecast) {
	lines := c.Lines()
	if lines == 0 {
		return f
	}
	if p.Loops != nil && !c.Hashed && c.Sets() > 0 {
		n, low, high, placed := p.Loops.count(misses.Cache{LineBytes: uint64(c.LineBytes), Sets: c.Sets(), Ways: lines / c.Sets()})
		f = hierarchy.Forecast{Misses: float64(n), Counted: placed > 0, Low: float64(low), High: float64(high)}
		if placed == placements {
			return f
		}
	}
	l := p.Profile.LocalityAt(c.LineBytes)
	if l == nil {
		return f
	}
	curve := profile.NewCurve(l.Histogram(trace.AllKinds))
	f.Low, f.High = float64(curve.Cold), float64(curve.Misses(uint64(c.Ways)))
	if c.Full() {
		f.Low, f.High = float64(curve.Misses(uint64(float64(lines)*distanceError))), float64(curve.Misses(uint64(float64(lines)/distanceError)))
	}
	low, high := p.scope()
	f.Low, f.High = f.Low*low, f.High*high
	if f.Counted {
		f.Low, f.High = min(f.Low, f.Misses), max(f.High, f.Misses)
	}
	return f
}

// scope returns the limits of the number of executed blocks, relative to the predicted number.
func (p *Predicted) scope() (low, high float64) {
	all := 0.0
	for b := range p.Of {
		of := &p.Of[b]
		all += float64(of.Executions)
		low, high = low+of.Low, high+of.High
	}
	if all == 0 {
		return 1, 1
	}
	return low / all, high / all
}
