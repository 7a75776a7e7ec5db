package ir

import "github.com/stackglass/stackglass/core/trace"

// chases reports whether a load's address comes from a load of an iteration before: its address depends
// on a variable of the loop around it, and that variable's next value depends on the variable through a
// load, as a list's next element does. The links may be pointers, indices or offsets. Variables are phis,
// and local variables in memory, which code has that was not optimised.
func (p *plan) chases(s *site) bool {
	if s.kind != trace.Load {
		return false
	}
	header := p.loops.header[p.basicOf(s.inst)]
	if header < 0 {
		return false
	}
	c := chase{p: p, header: header, seen: map[visit]bool{}, variable: -1}
	c.value(p.f.insts[s.inst].address.id, false)
	for i := 0; i < len(c.reached) && i < mostVariables; i++ {
		clear(c.seen)
		c.variable = c.reached[i]
		c.next(c.variable, false)
		if c.found {
			return true
		}
	}
	return false
}

// mostVariables and mostSteps bound the search.
const (
	mostVariables = 4
	mostSteps     = 300
)

type visit struct {
	value  int32
	loaded bool
}

// chase follows values back through a loop.
type chase struct {
	p        *plan
	header   int32
	variable int32 // whose next value is followed back; -1: variables are looked for
	reached  []int32
	seen     map[visit]bool
	found    bool
}

// value follows a value back; loaded: through a load.
func (c *chase) value(id int32, loaded bool) {
	f := c.p.f
	if id < 0 || c.found || c.seen[visit{id, loaded}] || len(c.seen) == mostSteps {
		return
	}
	c.seen[visit{id, loaded}] = true
	d := f.defs[id]
	if d < 0 {
		return
	}
	in := &f.insts[d]
	basic := c.p.basicOf(d)
	if in.op != opAlloca && basic != c.header && !c.p.loops.within(basic, c.header) {
		return // it does not change in the loop
	}
	uses := f.uses[in.uses:in.usesEnd]
	switch in.op {
	case opAlloca, opModify:
		return
	case opPhi:
		if basic == c.header {
			c.meets(id, loaded)
			return
		}
	case opLoad:
		if v := in.address.id; v >= 0 && f.defs[v] >= 0 && f.insts[f.defs[v]].op == opAlloca {
			if !c.meets(v, loaded) {
				c.next(v, loaded) // a temporary of the iteration, if it is no variable of the loop
			}
			return
		}
		c.value(in.address.id, true)
		return
	}
	switch {
	case in.word == "icmp" || in.word == "fcmp":
		return // branches are predicted
	case in.word == "select" && len(uses) > 1:
		uses = uses[1:]
	}
	for _, use := range uses {
		c.value(use, loaded)
	}
}

// meets takes note of a variable of the loop; it reports whether that is the one that was looked for.
func (c *chase) meets(id int32, loaded bool) bool {
	if c.variable < 0 {
		c.reached = append(c.reached, id)
		return false
	}
	if id == c.variable {
		c.found = c.found || loaded
		return true
	}
	return false
}

// next follows the values that a variable gets in the loop.
func (c *chase) next(id int32, loaded bool) {
	f := c.p.f
	in := &f.insts[f.defs[id]]
	if in.op == opPhi {
		for k, use := range f.uses[in.uses:in.usesEnd] {
			if from := f.blockOf[f.refs[in.refs+int32(k)].label]; from == c.header || c.p.loops.within(from, c.header) {
				c.value(use, loaded)
			}
		}
		return
	}
	if c.p.stored == nil {
		c.p.stored = map[int32][]int32{}
		for i := range f.insts {
			if store := &f.insts[i]; store.op == opStore {
				c.p.stored[store.address.id] = append(c.p.stored[store.address.id], int32(i))
			}
		}
	}
	for _, i := range c.p.stored[id] {
		store := &f.insts[i]
		if basic := c.p.basicOf(i); basic != c.header && !c.p.loops.within(basic, c.header) {
			continue
		}
		for _, use := range f.uses[store.uses:store.usesEnd] {
			if use != id {
				c.value(use, loaded)
			}
		}
	}
}
