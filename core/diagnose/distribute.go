package diagnose

import (
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
)

// distribute splits a loop that contains several loops, for example a loop that sums a column and a
// loop that scales it. Each inner loop gets a separate copy of the outer loop, and is then
// interchanged with this copy.
type distribute struct {
	outer change.Path
}

// Illegal implements [change.Change].
func (distribute) Illegal() string { return change.Interchange{}.Illegal() }

// Words implements [change.Change].
func (c distribute) Words(names change.Names) string {
	return "split " + names.Loop(c.outer) + ", so that each loop in it has its own outer loop, store intermediate values in an array, and interchange the loops of each pair"
}

// Apply implements [change.Change].
func (c distribute) Apply(n *loops.Nest) error {
	outer, depth := c.outer.Loop(n), len(c.outer)-1
	if outer == nil || !distributable(outer, depth) {
		return &change.Error{Change: "distribution", Why: "the loop does not contain several innermost loops"}
	}
	within := func(it *loops.Item, steps ...int64) loops.Item {
		moved := *it
		moved.Steps = nil
		for d := range depth {
			moved.Steps = append(moved.Steps, it.Step(d))
		}
		moved.Steps = append(append(moved.Steps, 0), steps...)
		return moved
	}
	var parts, beside []loops.Item
	for i := range outer.Body {
		it := &outer.Body[i]
		if !it.IsLoop() {
			beside = append(beside, within(it, it.Step(depth)))
			continue
		}
		inner := loops.Loop(outer.Trips)
		for j := range it.Body {
			leaf := &it.Body[j]
			inner.Body = append(inner.Body, within(leaf, leaf.Step(depth+1), leaf.Step(depth)))
		}
		parts = append(parts, loops.Loop(it.Trips, inner))
	}
	if len(beside) > 0 {
		parts = append(parts, loops.Loop(outer.Trips, beside...))
	}
	*outer = loops.Loop(1, parts...)
	return nil
}

// distributable reports whether a loop contains at least two innermost loops, all with constant
// trip counts.
func distributable(outer *loops.Item, depth int) bool {
	steady := func(l *loops.Item) bool {
		return int64(l.Trips) > 0 && !slices.ContainsFunc(l.Steps, func(s int64) bool { return s != 0 })
	}
	number := 0
	for i := range outer.Body {
		it := &outer.Body[i]
		if it.Wild || slices.ContainsFunc(it.Body, func(it loops.Item) bool { return it.Wild }) {
			return false
		}
		if it.IsLoop() {
			if number++; hasLoop(it.Body) || !steady(it) {
				return false
			}
		}
	}
	return number > 1 && steady(outer) && depth < mostDeep
}

// distributions returns the changes that distribute a loop of the nest.
func distributions(n *loops.Nest) (list []change.Change) {
	eachLoop(n.Items, nil, func(l *loops.Item, path change.Path) {
		if distributable(l, len(path)-1) {
			list = append(list, distribute{path})
		}
	})
	return list
}

// eachLoop visits the loops in items, outer loops before inner loops, and passes their paths.
func eachLoop(items []loops.Item, path change.Path, visit func(l *loops.Item, path change.Path)) {
	number := 0
	for i := range items {
		if !items[i].IsLoop() {
			continue
		}
		here := append(slices.Clone(path), number)
		number++
		visit(&items[i], here)
		eachLoop(items[i].Body, here, visit)
	}
}
