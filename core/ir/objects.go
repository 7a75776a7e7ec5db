package ir

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// findObject finds the variable that contains an address. It traces address arithmetic back to a
// local variable, an argument or a global variable, or to a pointer that was loaded from such a
// variable. If a value can come from several paths, all paths must lead to the same variable.
func (f *function) findObject(o operand) (name string, flags trace.SiteFlags) {
	var seen [16]int32
	n, found := 0, false
	work := make([]operand, 0, 4)
	work = append(work, o)
	for len(work) > 0 {
		o := work[len(work)-1]
		work = work[:len(work)-1]
		var more []int32
		o, more = f.traceBase(o)
		if more != nil && o.id >= 0 && f.debugNames[o.id] == 0 {
			if slices.Contains(seen[:n], o.id) {
				continue
			}
			if n == len(seen) {
				return "", 0
			}
			seen[n] = o.id
			n++
			for _, id := range more {
				if id >= 0 {
					work = append(work, operand{id: id})
				} else {
					return "", 0
				}
			}
			continue
		}
		thisName, thisFlags := f.baseVariable(o)
		if thisName == "" || found && (thisName != name || thisFlags != flags) {
			return "", 0
		}
		name, flags, found = thisName, thisFlags, true
	}
	return name, flags
}

// traceBase traces address arithmetic back to the value at which it begins. If this value is a phi
// or a select, the result "alternatives" contains its operands.
func (f *function) traceBase(o operand) (at operand, alternatives []int32) {
	for range 64 {
		if o.id < 0 || f.defs[o.id] < 0 {
			return o, nil
		}
		in := &f.insts[f.defs[o.id]]
		switch {
		case in.op == opAddress, in.op == opCall && passesPointer(baseName(in.call.callee)) && in.args < in.argsEnd:
			if in.op == opCall {
				o = f.args[in.args]
			} else {
				o = in.address
			}
		case in.op == opPhi:
			return o, f.uses[in.uses:in.usesEnd]
		case in.word == "select" && in.usesEnd-in.uses == 3:
			return o, f.uses[in.uses+1 : in.usesEnd]
		default:
			return o, nil
		}
	}
	return operand{id: -1}, nil
}

// baseVariable returns the name of the variable to which a result of traceBase belongs.
func (f *function) baseVariable(o operand) (string, trace.SiteFlags) {
	if o.id < 0 {
		if name := calledName(o.text); name != "" {
			return f.m.globalName(name), trace.GlobalSite
		}
		return "", 0
	}
	d := f.defs[o.id]
	if d < 0 {
		if d == undefined {
			return "", 0
		}
		return f.localName(o.id, f.params[-1-d].text), 0
	}
	switch in := &f.insts[d]; in.op {
	case opAlloca:
		return f.localName(o.id, in.resultName), trace.StackSite
	case opLoad:
		name, flags := f.pointerVariable(in)
		if name == "" {
			name = f.localName(o.id, "")
		}
		if name == "" {
			name, _ = f.expression(in.address, maxMembers)
		}
		return name, flags
	}
	return f.localName(o.id, ""), 0
}

// pointerVariable returns the name of the variable from which a pointer was loaded, if the pointer
// is the whole variable.
func (f *function) pointerVariable(in *inst) (string, trace.SiteFlags) {
	o := in.address
	if o.id < 0 {
		if strings.HasPrefix(o.text, "@") {
			return f.m.globalName(o.text[1:]), 0
		}
		return "", 0
	}
	if d := f.defs[o.id]; d >= 0 && f.insts[d].op == opAlloca {
		return f.localName(o.id, f.insts[d].resultName), 0
	}
	return "", 0
}

// globalName returns the source name of a global variable or, if there is none, the linker name.
func (m *module) globalName(name string) string {
	if m.globalNames == nil {
		m.globalNames = map[string]string{}
		for i := range m.globals {
			m.globalNames[m.globals[i].name] = m.object(&m.globals[i]).Name
		}
	}
	if known, ok := m.globalNames[name]; ok {
		return known
	}
	return linkerName(name)
}

// localName returns the source name of a local value or, if there is none, the compiler's name.
func (f *function) localName(id int32, name string) string {
	if id >= 0 && f.debugNames[id] > 0 {
		if v := f.m.metadata.variable(int(f.debugNames[id]) - 1); v != "" && !isReserved(v) {
			return v
		}
	}
	if name == "" || isDigit(name[0]) {
		return ""
	}
	return strings.TrimSuffix(unquote(name), ".addr")
}
