package change

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// Code identifies the source code of a reference. If a compiler unrolls a loop, all copies of a
// reference have equal codes.
type Code struct {
	File, Variable string
	Line, Column   uint32 // 0 if unknown
	Lanes          uint64 // number of elements that a vector instruction accesses; 0 and 1 mean one element
}

// Elements returns the number of elements that one execution of the reference accesses.
func (c Code) Elements() uint64 { return max(1, c.Lanes) }

// Rolled is a nest whose loops have the same trip counts as in the source code, although the
// compiler may have unrolled or vectorised them.
type Rolled struct {
	Nest *loops.Nest

	origins []origin
	// by reference of the compiled nest: the number of source iterations in one compiled iteration,
	// if greater than 1
	copies map[loops.Reference]uint64
	// by reference of the compiled nest: the reference in the rolled nest, if it differs
	heads map[loops.Reference]loops.Reference
	// by site: the element size, if successive iterations of the rolled loop access consecutive
	// elements
	elements map[uint32]uint64
}

// origin is the position of a rolled loop in the compiled nest.
type origin struct {
	number int   // index of the loop among the loops of its list
	merged []int // indices of remainder loops that are now part of the rolled loop
	body   []origin
}

// Copies returns the number of source iterations in one iteration of the compiled loop around a
// reference.
func (r *Rolled) Copies(of loops.Reference) uint64 { return max(1, r.copies[of]) }

// Head returns the reference of the rolled nest that represents a reference of the compiled nest.
func (r *Rolled) Head(of loops.Reference) loops.Reference {
	if head, ok := r.heads[of]; ok {
		return head
	}
	return of
}

// Elements returns the element size in bytes if a loop was unrolled or vectorised and its
// iterations access consecutive elements. Otherwise, Elements returns 0. In the source, the loop
// may contain an inner loop that the compiler unrolled completely.
func (r *Rolled) Elements(p Path) uint64 {
	if l := p.Loop(r.Nest); l != nil {
		for i := range l.Body {
			if bytes := r.elements[l.Body[i].Ref.Site]; bytes > 0 && !l.Body[i].IsLoop() {
				return bytes
			}
		}
	}
	return 0
}

// Compiled converts the path of a rolled loop to its path in the compiled nest. Compiled does not
// convert the numbers of loops that a change has created.
func (r *Rolled) Compiled(p Path) (of Path) {
	list := r.origins
	for _, number := range p {
		if number >= len(list) {
			of, list = append(of, number), nil
			continue
		}
		of, list = append(of, list[number].number), list[number].body
	}
	return of
}

// Find converts the path of a compiled loop to its path in the rolled nest. ok is false if the
// rolled nest does not contain the loop.
func (r *Rolled) Find(compiled Path) (of Path, ok bool) {
	list := r.origins
	for _, number := range compiled {
		at := slices.IndexFunc(list, func(o origin) bool { return o.number == number || slices.Contains(o.merged, number) })
		if at < 0 {
			return nil, false
		}
		of, list = append(of, at), list[at].body
	}
	return of, true
}

// Roll undoes the compiler's unrolling, vectorisation and peeling of the innermost loops of a nest.
// Roll does not change n.
//
//  1. An unrolled loop contains a copy of each reference for every source iteration. The addresses
//     of neighbouring copies differ by the step of the source loop, and all copies have the same
//     step per compiled iteration. Roll keeps only the first copy.
//  2. A vector instruction accesses consecutive elements. Roll treats the instruction as one copy
//     for each element.
//  3. Remainder iterations and peeled iterations run before or after the loop, either in a separate
//     loop or as straight-line code. Roll adds these iterations to the loop.
//
// The rolled nest accesses the same elements, with one exception: if the compiler kept an element
// in a register in some iterations, the rolled nest accesses the element in every iteration. Roll
// does not change a loop whose references have different numbers of copies.
func Roll(n *loops.Nest, code func(loops.Reference) Code) *Rolled {
	r := &Rolled{Nest: n.Clone(), copies: map[loops.Reference]uint64{}, heads: map[loops.Reference]loops.Reference{}, elements: map[uint32]uint64{}}
	w := roller{r, code}
	r.Nest.Items, r.origins = w.rollList(r.Nest.Items, 0)
	return r
}

type roller struct {
	*Rolled
	code func(loops.Reference) Code
}

// rollList rolls the loops in a list. The argument "depth" is the number of loops around the list.
func (w *roller) rollList(items []loops.Item, depth int) (out []loops.Item, origins []origin) {
	number := 0
	for i := range items {
		it := &items[i]
		if !it.IsLoop() {
			continue
		}
		of := origin{number: number}
		number++
		it.Body, of.body = w.rollList(it.Body, depth+1)
		origins = append(origins, of)
		if isInnermost(it) {
			w.unroll(it, depth)
		}
	}
	return w.mergeRemainders(items, origins, depth)
}

// isInnermost reports whether a loop contains only events and regular references.
func isInnermost(l *loops.Item) bool {
	return l.IsLoop() && !slices.ContainsFunc(l.Body, func(it loops.Item) bool { return it.IsLoop() || it.Wild })
}

// maxCopies is the maximum number of source iterations in one compiled iteration: four 64-byte
// vectors of one-byte elements.
const maxCopies = 256

// element is an array element that a reference of a loop's body accesses.
type element struct {
	addr trace.Addr
	leaf int // index of the reference in the loop's body
}

// class contains the elements that all copies of a source reference access in one compiled
// iteration.
type class struct {
	code     Code
	like     loops.Item // one of the references, reduced to the size of one element
	elements []element
}

// splitLeaf returns a leaf that accesses only one element, and the number of elements that the
// original leaf accesses.
func (w *roller) splitLeaf(it loops.Item) (one loops.Item, code Code, lanes uint64) {
	code, lanes = w.code(it.Ref), 1
	if n := code.Elements(); uint64(it.Ref.Bytes)%n == 0 {
		lanes = n
		it.Ref.Bytes /= uint32(n)
	}
	code.Lanes = 0
	return it, code, lanes
}

// classes returns the classes of an innermost loop.
func (w *roller) classes(l *loops.Item) (list []class) {
	for i, it := range l.Body {
		if isEvent(&it) {
			continue
		}
		it, code, lanes := w.splitLeaf(it)
		at := slices.IndexFunc(list, func(c class) bool {
			return code.isKnown() && c.code == code && c.like.Ref.Kind == it.Ref.Kind && c.like.Ref.Bytes == it.Ref.Bytes && c.like.Ref.Thread == it.Ref.Thread && sameSteps(&c.like, &it)
		})
		if at < 0 {
			at = len(list)
			list = append(list, class{code: code, like: it})
		}
		for lane := range lanes {
			list[at].elements = append(list[at].elements, element{it.Addr + lane*uint64(it.Ref.Bytes), i})
		}
	}
	return list
}

// isKnown reports whether the code contains enough information to recognise the copies of a
// reference.
func (c Code) isKnown() bool { return c.Line > 0 || c.Variable != "" }

func sameSteps(a, b *loops.Item) bool {
	for d := range max(len(a.Steps), len(b.Steps)) {
		if stepAt(a, d) != stepAt(b, d) {
			return false
		}
	}
	return true
}

// unroll undoes the unrolling of an innermost loop: it replaces the copies of each reference by the
// first copy. The argument "depth" is the number of loops around the loop.
func (w *roller) unroll(l *loops.Item, depth int) {
	classes := w.classes(l)
	most := 0
	for i := range classes {
		if stepAt(&classes[i].like, depth) != 0 {
			most = max(most, len(classes[i].elements))
		}
	}
	for copies := min(most, maxCopies); copies > 1; copies-- {
		if w.foldCopies(l, classes, depth, uint64(copies)) {
			return
		}
	}
}

// foldCopies replaces the body of an unrolled loop by a single copy. It returns false if the body
// does not consist of the given number of copies.
func (w *roller) foldCopies(l *loops.Item, classes []class, depth int, copies uint64) bool {
	type head struct {
		at   int // index in the body
		item loops.Item
	}
	var heads []head
	whole, parts := 0, 0 // number of elements in complete sets of copies, and in incomplete sets
	dense := true        // whether every nonzero step equals the element size
	of := map[int]loops.Reference{}
	for i := range classes {
		c := &classes[i]
		by := stepAt(&c.like, depth)
		each := by / int64(copies)
		if by%int64(copies) != 0 || by != 0 && magnitude(each) < uint64(c.like.Ref.Bytes) {
			return false
		}
		dense = dense && (by == 0 || magnitude(each) == uint64(c.like.Ref.Bytes))
		list := slices.Clone(c.elements)
		slices.SortStableFunc(list, func(a, b element) int {
			if by < 0 {
				a, b = b, a
			}
			return cmp.Compare(a.addr, b.addr)
		})
		for len(list) > 0 {
			h := head{list[0].leaf, c.like}
			h.item.Addr = list[0].addr
			h.item.Steps = slices.Clone(c.like.Steps)
			setStep(&h.item, depth, each)
			var in []element
			for k := range copies {
				want := h.item.Addr + k*uint64(each)
				if at := slices.IndexFunc(list, func(e element) bool { return e.addr == want }); at >= 0 {
					in = append(in, list[at])
					list = slices.Delete(list, at, at+1)
				}
			}
			for _, e := range in {
				h.at = min(h.at, e.leaf)
			}
			h.item.Ref = l.Body[h.at].Ref
			h.item.Ref.Bytes = c.like.Ref.Bytes
			for _, e := range in {
				if _, ok := of[e.leaf]; !ok {
					of[e.leaf] = h.item.Ref
				}
			}
			heads = append(heads, h)
			switch {
			case by == 0:
			case len(in) == int(copies):
				whole += len(in)
			default:
				parts += len(in)
			}
		}
	}
	if whole == 0 || 2*parts > whole {
		return false
	}
	for i := range l.Body {
		if isEvent(&l.Body[i]) {
			heads = append(heads, head{i, l.Body[i]})
			continue
		}
		w.copies[l.Body[i].Ref], w.heads[l.Body[i].Ref] = copies, of[i]
	}
	slices.SortStableFunc(heads, func(a, b head) int { return cmp.Compare(a.at, b.at) })
	l.Body = nil
	for _, h := range heads {
		l.Body = append(l.Body, h.item)
		if dense && !isEvent(&h.item) && stepAt(&h.item, depth) != 0 {
			w.elements[h.item.Ref.Site] = max(w.elements[h.item.Ref.Site], uint64(h.item.Ref.Bytes))
		}
	}
	l.Trips *= copies
	for d := range l.Steps {
		l.Steps[d] *= int64(copies)
	}
	return true
}

// mergeRemainders finds remainder iterations and peeled iterations outside the loops of a list, and
// adds them to the loops. The argument "depth" is the number of loops around the list.
func (w *roller) mergeRemainders(items []loops.Item, origins []origin, depth int) ([]loops.Item, []origin) {
	number := 0
	for i := 0; i < len(items); i++ {
		if !items[i].IsLoop() {
			continue
		}
		if !isInnermost(&items[i]) || int64(items[i].Trips) <= 0 {
			number++
			continue
		}
		before, rest := w.mergePeeled(&items[i], items[:i], depth, false)
		if before > 0 {
			l := items[i]
			items = slices.Concat(rest, []loops.Item{l}, items[i+1:])
			i = len(rest)
		}
		for {
			next := i + 1
			for next < len(items) && isEvent(&items[next]) {
				next++
			}
			if next < len(items) && isInnermost(&items[next]) && w.isRemainder(&items[i], &items[next], depth) {
				l, more := &items[i], &items[next]
				l.Trips += more.Trips
				for d := range more.Steps {
					setStep(l, d, stepAt(l, d)+stepAt(more, d))
				}
				origins[number].merged = append(origins[number].merged, origins[number+1].number)
				origins = slices.Delete(origins, number+1, number+2)
				items = slices.Delete(items, next, next+1)
				continue
			}
			after, rest := w.mergePeeled(&items[i], items[i+1:], depth, true)
			if after == 0 {
				break
			}
			items = append(items[:i+1:i+1], rest...)
		}
		number++
	}
	return items, origins
}

// leafInIteration returns the reference of a leaf of a loop's body in a single iteration, which may
// precede the first iteration or follow the last iteration. The result is a leaf outside the loop.
// The argument "depth" is the number of loops around the loop.
func leafInIteration(l, leaf *loops.Item, depth int, after bool, turn uint64) loops.Item {
	it, by := *leaf, stepAt(leaf, depth)
	it.Steps = nil
	it.Addr += turn * uint64(by)
	if after {
		it.Addr += l.Trips * uint64(by)
	}
	for d := range depth {
		s := stepAt(leaf, d)
		if after {
			s += stepAt(l, d) * by
		}
		it.Steps = append(it.Steps, s)
	}
	return it
}

// isRemainder reports whether the loop "next" is a remainder loop of the preceding loop l: it
// executes further iterations of l.
func (w *roller) isRemainder(l, next *loops.Item, depth int) bool {
	var left []int // leaves of the loop "next" for which no matching leaf of l has been found
	for i := range next.Body {
		if !isEvent(&next.Body[i]) {
			left = append(left, i)
		}
	}
	moves, known := false, false
	for i := range l.Body {
		leaf := &l.Body[i]
		if isEvent(leaf) {
			continue
		}
		want := leafInIteration(l, leaf, depth, true, 0)
		at := slices.IndexFunc(left, func(j int) bool {
			it := leafInIteration(next, &next.Body[j], depth, false, 0)
			return sameReference(&want, &it) && stepAt(leaf, depth) == stepAt(&next.Body[j], depth)
		})
		if at < 0 {
			return false
		}
		moves = moves || stepAt(leaf, depth) != 0
		known = known || w.sameCode(leaf.Ref, next.Body[left[at]].Ref)
		left = slices.Delete(left, at, at+1)
	}
	return len(left) == 0 && moves && known
}

// sameReference reports whether two neighbouring leaves access the same memory.
func sameReference(a, b *loops.Item) bool {
	return a.Addr == b.Addr && a.Ref.Kind == b.Ref.Kind && a.Ref.Bytes == b.Ref.Bytes && a.Ref.Thread == b.Ref.Thread && sameSteps(a, b)
}

func (w *roller) sameCode(a, b loops.Reference) bool {
	x, y := w.code(a), w.code(b)
	x.Lanes, y.Lanes = 0, 0
	return x.Line > 0 && x == y
}

// mergePeeled finds peeled iterations of a loop among the neighbouring leaves, and adds them to the
// loop. The parameter "after" reports whether these leaves follow the loop or precede it.
// mergePeeled returns the number of iterations and the remaining items.
func (w *roller) mergePeeled(l *loops.Item, beside []loops.Item, depth int, after bool) (turns uint64, rest []loops.Item) {
	type part struct {
		leaf int
		one  loops.Item
	}
	var left []part
	pieces := map[int]int{} // by leaf: the number of its elements in the slice "left"
	for i := range beside {
		at := i
		if !after {
			at = len(beside) - 1 - i
		}
		it := beside[at]
		if it.IsLoop() || it.Wild || len(left) > maxPeeledElements {
			break
		}
		if isEvent(&it) {
			continue
		}
		one, _, lanes := w.splitLeaf(it)
		for range lanes {
			left = append(left, part{at, one})
			one.Addr += uint64(one.Ref.Bytes)
			pieces[at]++
		}
	}
	known := false
	took := map[int]int{}
	for len(left) > 0 {
		now := slices.Clone(left)
		used := map[int]int{}
		moves := false
		for i := range l.Body {
			leaf := &l.Body[i]
			if isEvent(leaf) {
				continue
			}
			turn := turns
			if !after {
				turn = -(turns + 1)
			}
			want := leafInIteration(l, leaf, depth, after, turn)
			at := slices.IndexFunc(now, func(p part) bool { return sameReference(&want, &p.one) })
			if at < 0 {
				used = nil
				break
			}
			moves = moves || stepAt(leaf, depth) != 0
			known = known || w.sameCode(leaf.Ref, beside[now[at].leaf].Ref)
			used[now[at].leaf]++
			now = slices.Delete(now, at, at+1)
		}
		if used == nil || !moves {
			break
		}
		left = now
		turns++
		for leaf, n := range used {
			took[leaf] += n
		}
	}
	for leaf, n := range took {
		known = known && n == pieces[leaf]
	}
	if turns == 0 || !known {
		return 0, nil
	}
	l.Trips += turns
	if !after {
		for i := range l.Body {
			if !isEvent(&l.Body[i]) {
				l.Body[i].Addr -= turns * uint64(stepAt(&l.Body[i], depth))
			}
		}
	}
	for i := range beside {
		if took[i] == 0 {
			rest = append(rest, beside[i])
		}
	}
	return turns, rest
}

// maxPeeledElements is the maximum number of elements before or after a loop that are searched for
// peeled iterations.
const maxPeeledElements = 1024
