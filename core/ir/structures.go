package ir

import (
	"math"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// These constants limit the tables of structures, which malicious text could make very large.
const (
	maxFields      = 256     // maximum number of members listed for a structure
	largestElement = 1 << 16 // maximum size in bytes of a structure whose members are listed
)

// element is the structure to which an address belongs, together with the offset of the address in
// this structure.
type element struct {
	of     int // node of the structure's type, or -1
	offset uint64
}

var noElement = element{of: -1}

// element finds the structure that contains an address. It follows address arithmetic back to a
// variable or pointer of known type, and follows at most the given number of pointers.
func (f *function) element(address operand, pointers int) element {
	var moved shift
	o := address
	for range maxTypes {
		if o.id < 0 || f.defs[o.id] < 0 || f.debugNames[o.id] > 0 {
			break
		}
		in := &f.insts[f.defs[o.id]]
		if in.op != opAddress {
			break
		}
		moved.constant += in.shift.constant
		moved.unknown = moved.unknown || in.shift.unknown || moved.element > 0 && in.shift.element > 0
		moved.element = max(moved.element, in.shift.element)
		o = in.address
	}
	of := f.pointee(o, pointers)
	if moved.unknown || of < 0 {
		return noElement
	}
	return f.m.metadata.elementAt(of, moved)
}

// elementAt returns the structure at the given offset in a type.
func (m *metadata) elementAt(of int, offset shift) element {
	for range maxTypes {
		of = m.plainType(of)
		t := m.sourceType(of)
		switch t.tag {
		case "DW_TAG_array_type":
			of = t.base
		case "DW_TAG_structure_type", "DW_TAG_class_type":
			bytes := int64(t.bytes)
			if bytes <= 0 || bytes > largestElement || offset.element%t.bytes != 0 {
				return noElement
			}
			return element{of, uint64((offset.constant%bytes + bytes) % bytes)}
		default:
			return noElement
		}
	}
	return noElement
}

// pointee returns the type of the data to which a value points, or -1.
func (f *function) pointee(o operand, pointers int) int {
	m := &f.m.metadata
	if o.id < 0 {
		// A constant expression may point into the variable.
		if symbol := calledName(o.text); symbol != "" && o.text[0] == '@' {
			for i := range f.m.globals {
				if g := &f.m.globals[i]; g.name == symbol {
					return m.variableType(g.debug)
				}
			}
		}
		return -1
	}
	d, variable := f.defs[o.id], int(f.debugNames[o.id])-1
	if d >= 0 && f.insts[d].op == opAlloca {
		if variable < 0 {
			return -1
		}
		return m.variableType(variable)
	}
	if variable >= 0 {
		of, _ := m.pointedAt(m.variableType(variable))
		return of
	}
	if d < 0 || pointers == 0 {
		return -1
	}
	switch in := &f.insts[d]; in.op {
	case opLoad:
		if of := f.typeOf(in.address, pointers-1); of >= 0 {
			of, _ = m.pointedAt(of)
			return of
		}
	case opPhi:
		for _, id := range f.uses[in.uses:in.usesEnd] {
			if id >= 0 && id != o.id {
				if of := f.pointee(operand{id: id}, pointers-1); of >= 0 {
					return of
				}
			}
		}
	}
	return -1
}

// typeOf returns the type of the variable or the member at an address, or -1.
func (f *function) typeOf(address operand, pointers int) int {
	m := &f.m.metadata
	if e := f.element(address, pointers); e.of >= 0 {
		_, of := m.members(e.of, e.offset)
		return of
	}
	return f.pointee(address, pointers)
}

// structure returns the number of a structure in the tables. If the structure is new, it is added
// to the tables. The result ok is false if the type has fewer than two members or its members are
// unknown. In these cases, the members do not matter.
func (t *tables) structure(node int) (number uint32, ok bool) {
	if number, known := t.structures[node]; known {
		return number - 1, number != 0
	}
	s := t.m.metadata.structure(node)
	if len(s.Members) < 2 {
		t.structures[node] = 0
		return 0, false
	}
	number = uint32(slices.IndexFunc(t.program.Structures, s.Equal) + 1)
	if number == 0 {
		t.program.Structures = append(t.program.Structures, s)
		number = uint32(len(t.program.Structures))
	}
	t.structures[node] = number
	return number - 1, true
}

// structure lists the members of a structure. Members of nested structures are listed separately,
// such as pos.x; arrays and unions are single members.
func (m *metadata) structure(node int) trace.Structure {
	t := m.sourceType(node)
	s := trace.Structure{Name: t.name, Bytes: t.bytes}
	if s.Name == "" {
		s.Name = m.nameOfAnonymous(node)
	}
	m.addMembers(&s, node, "", 0, 0)
	slices.SortStableFunc(s.Members, func(x, y trace.Member) int { return int(x.Offset) - int(y.Offset) })
	return s
}

// maxDepth limits the depth of nested structures.
const maxDepth = 8

func (m *metadata) addMembers(s *trace.Structure, node int, prefix string, at uint64, depth int) {
	rest := m.node(m.sourceType(node).elements)
	for depth < maxDepth {
		i := strings.IndexByte(rest, '!')
		if i < 0 {
			return
		}
		n := reference(rest[i:])
		rest = rest[i+1:]
		if n < 0 || !strings.HasPrefix(m.node(n), "!DIDerivedType(") {
			continue
		}
		member := m.sourceType(n)
		inherited := member.tag == "DW_TAG_inheritance"
		if member.tag != "DW_TAG_member" && !inherited || strings.Contains(m.node(n), "DIFlagStaticMember") {
			continue
		}
		base := m.plainType(member.base)
		of := m.sourceType(base)
		name := prefix
		if !inherited && member.name != "" {
			name += member.name
		}
		inner := of.tag == "DW_TAG_structure_type" || of.tag == "DW_TAG_class_type"
		if inner && of.elements >= 0 {
			if !inherited && member.name != "" {
				name += "."
			}
			m.addMembers(s, base, name, at+member.offset, depth+1)
			continue
		}
		bytes := member.bytes
		if bytes == 0 {
			bytes = of.bytes
		}
		if bytes == 0 || at+member.offset+bytes > s.Bytes || len(s.Members) >= maxFields {
			continue
		}
		s.Members = append(s.Members, trace.Member{Name: name, Offset: uint32(at + member.offset), Bytes: uint32(bytes), Type: m.typeName(member.base)})
	}
}

// nameOfAnonymous returns the typedef name of a structure without a tag, or "" if there is none.
func (m *metadata) nameOfAnonymous(node int) string {
	for n := range m.at {
		if t := m.node(n); strings.HasPrefix(t, "!DIDerivedType(tag: DW_TAG_typedef") {
			if d := m.sourceType(n); d.base == node {
				return d.name
			}
		}
	}
	return ""
}

// typeName returns the name of a type in C notation, without qualifiers and array lengths.
func (m *metadata) typeName(n int) string {
	suffix := ""
	for range maxTypes {
		if n < 0 {
			return "void" + suffix
		}
		t := m.sourceType(n)
		switch t.tag {
		case "DW_TAG_pointer_type":
			suffix = " *" + strings.TrimPrefix(suffix, " ")
		case "DW_TAG_array_type":
			suffix += "[]"
		case "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_atomic_type":
		default:
			return t.name + suffix
		}
		n = t.base
	}
	return suffix
}

// describe records the structure to which a site refers, and the offset in this structure.
func (t *tables) describe(s *site, e element) {
	if e.of < 0 || e.offset > math.MaxUint32 {
		return
	}
	if number, ok := t.structure(e.of); ok {
		s.structure, s.offset = number+1, uint32(e.offset)
	}
}

// nameAllocation finds the variable to which the result of an allocation is assigned, and the
// structure to which this variable points.
func (p *plan) nameAllocation(s *site, i int32) {
	f := p.f
	result := f.insts[i].result
	if result < 0 || s.values[0].how != asPointer {
		return
	}
	s.object = f.localName(result, "")
	of := f.pointee(operand{id: result}, 0)
	if s.object == "" {
		s.object, of = f.assignedVariable(result)
	}
	if of >= 0 {
		e := f.m.metadata.elementAt(of, shift{})
		p.t.describe(s, e)
	}
}

// assignedVariable returns the name of the variable or member in which a pointer is stored, and the
// type of the data to which the pointer points, or -1.
func (f *function) assignedVariable(value int32) (name string, of int) {
	for i := range f.insts {
		in := &f.insts[i]
		if in.op != opStore || in.address.id == value || !slices.Contains(f.uses[in.uses:in.usesEnd], value) {
			continue
		}
		if name, of = f.expression(in.address, maxMembers); name == "" {
			name, _ = f.findObject(in.address)
		}
		if name != "" {
			if of >= 0 {
				of, _ = f.m.metadata.pointedAt(of)
			}
			return name, of
		}
	}
	return "", -1
}
