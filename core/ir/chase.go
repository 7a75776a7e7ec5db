package ir

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// chaseFlags returns [trace.LinkSite] and [trace.ChasingSite] if the site's load computes the next
// value of a loop variable from its current value, for example in a loop that traverses a list. If
// the address of the load is the sum of such a loop variable (or its next value) and an offset that
// is computed without a load, chaseFlags returns only [trace.ChasingSite]. Examples are a load of a
// second field of a list element, and a loop that reads the next element before it advances. Links
// may be pointers, indices or offsets. Loop variables are phis or, for example in unoptimised code,
// local variables in memory.
func (p *plan) chaseFlags(s *site) (flags trace.SiteFlags) {
	if s.kind != trace.Load {
		return 0
	}
	header := p.loops.header[p.basicOf(s.inst)]
	if header < 0 {
		return 0
	}
	for _, near := range []bool{true, false} {
		c := chaseSearch{p: p, header: header, seen: map[int32]bool{}, variable: -1, localOnly: near}
		c.traceValue(p.f.insts[s.inst].address.id)
		for _, variable := range c.reached[:min(len(c.reached), maxVariables)] {
			switch links := p.linkLoads(header, variable); {
			case slices.Contains(links, s.inst):
				return trace.ChasingSite | trace.LinkSite
			case near && len(links) > 0:
				flags = trace.ChasingSite
			}
		}
		for _, load := range c.ends {
			if p.isLink(header, load) {
				flags = trace.ChasingSite
			}
		}
	}
	return flags
}

// isLink reports whether a load computes the next value of a loop variable.
func (p *plan) isLink(header, load int32) bool {
	c := chaseSearch{p: p, header: header, seen: map[int32]bool{}, variable: -1}
	c.traceValue(p.f.insts[load].address.id)
	return slices.ContainsFunc(c.reached[:min(len(c.reached), maxVariables)], func(variable int32) bool {
		return slices.Contains(p.linkLoads(header, variable), load)
	})
}

// linkLoads returns the loads that compute the next value of a loop variable from its current
// value.
func (p *plan) linkLoads(header, variable int32) []int32 {
	key := loopVariable{header, variable}
	if list, known := p.linked[key]; known {
		return list
	}
	c := chaseSearch{p: p, header: header, seen: map[int32]bool{}, variable: variable}
	c.traceVariable(variable)
	var list []int32
	for _, load := range c.loads {
		clear(c.seen)
		c.found = false
		if in := &p.f.insts[load]; in.op == opCall {
			for _, use := range p.f.uses[in.uses:in.usesEnd] {
				c.traceValue(use)
			}
		} else {
			c.traceValue(in.address.id)
		}
		if c.found {
			list = append(list, load)
		}
	}
	if p.linked == nil {
		p.linked = map[loopVariable][]int32{}
	}
	p.linked[key] = list
	return list
}

type loopVariable struct{ header, variable int32 }

// maxVariables and maxSteps limit the search.
const (
	maxVariables = 4
	maxSteps     = 300
)

// treeStep is the prefix of the C++ library's functions that load the next or previous node of a
// std::map or std::set.
const treeStep = "_ZSt18_Rb_tree_"

// chaseSearch is a search that traces values back through the instructions of a loop.
type chaseSearch struct {
	p         *plan
	header    int32
	variable  int32 // the variable to find; -1 for any variable of the loop
	localOnly bool  // whether only loads of local variables are followed
	reached   []int32
	loads     []int32 // loads that were followed, except loads of local variables
	ends      []int32 // loads that were not followed, because localOnly is set
	seen      map[int32]bool
	found     bool // whether the variable was found
}

// traceValue traces a value back through the operands from which it is computed.
func (c *chaseSearch) traceValue(id int32) {
	f := c.p.f
	if id < 0 || c.seen[id] || len(c.seen) == maxSteps {
		return
	}
	c.seen[id] = true
	d := f.defs[id]
	if d < 0 {
		return
	}
	in := &f.insts[d]
	basic := c.p.basicOf(d)
	if in.op != opAlloca && basic != c.header && !c.p.loops.within(basic, c.header) {
		return // the value is loop-invariant
	}
	uses := f.uses[in.uses:in.usesEnd]
	switch in.op {
	case opAlloca, opModify:
		return
	case opPhi:
		if basic == c.header {
			c.reach(id)
			return
		}
	case opLoad:
		if v := in.address.id; v >= 0 && f.defs[v] >= 0 && f.insts[f.defs[v]].op == opAlloca {
			if !c.reach(v) {
				c.traceVariable(v) // v is a temporary variable of the iteration
			}
			return
		}
		if c.localOnly {
			c.ends = append(c.ends, d)
			return
		}
		c.loads = append(c.loads, d)
		c.traceValue(in.address.id)
		return
	case opCall:
		if !c.localOnly && strings.HasPrefix(in.call.callee, treeStep) {
			c.loads = append(c.loads, d)
		}
	}
	switch {
	case in.word == "icmp" || in.word == "fcmp":
		// do not follow comparisons, because the processor predicts the branches that depend on
		// them
		return
	case in.word == "select" && len(uses) > 1:
		uses = uses[1:]
	}
	for _, use := range uses {
		c.traceValue(use)
	}
}

// reach records that the search has reached a loop variable, and reports whether this is the
// variable to find.
func (c *chaseSearch) reach(id int32) bool {
	if c.variable < 0 {
		c.reached = append(c.reached, id)
		return false
	}
	c.found = c.found || id == c.variable
	return id == c.variable
}

// traceVariable traces back all values that the loop assigns to a variable.
func (c *chaseSearch) traceVariable(id int32) {
	f := c.p.f
	in := &f.insts[f.defs[id]]
	if in.op == opPhi {
		for k, use := range f.uses[in.uses:in.usesEnd] {
			if from := f.blockOf[f.refs[in.refs+int32(k)].label]; from == c.header || c.p.loops.within(from, c.header) {
				c.traceValue(use)
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
				c.traceValue(use)
			}
		}
	}
}
