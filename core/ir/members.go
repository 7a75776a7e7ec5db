package ir

import "strings"

// sourceType is a type in the source, or a member of a structure: a DIBasicType, DIDerivedType or
// DICompositeType.
type sourceType struct {
	tag           string // such as DW_TAG_pointer_type
	name          string
	bytes, offset uint64
	base          int // the base type of a derived type, or the type of a member; -1 if there is none
	elements      int // node of the list of the type's members, or -1
}

// maxTypes limits the length of chains of types, which can be cyclic in malicious text.
const maxTypes = 64

// maxMembers is the maximum number of pointers that an expression follows. For example, a->b->c
// follows two pointers.
const maxMembers = 4

// sourceType reads the type in node n. The tag of the result is empty if the node is not a type.
func (m *metadata) sourceType(n int) sourceType {
	return remembered(&m.types, n, func() sourceType {
		t := sourceType{base: -1, elements: -1}
		read := func(key, value string) {
			switch key {
			case "tag":
				t.tag = value
			case "name":
				t.name = unquote(value)
			case "size":
				t.bytes = uint64(max(0, number(value))) / 8
			case "offset":
				t.offset = uint64(max(0, number(value))) / 8
			case "baseType":
				t.base = reference(value)
			case "elements":
				t.elements = reference(value)
			}
		}
		node := m.node(n)
		if !visitFields(node, "!DIDerivedType", read) && !visitFields(node, "!DICompositeType", read) {
			visitFields(node, "!DIBasicType", read)
		}
		return t
	})
}

// plainType strips a type's typedefs and qualifiers.
func (m *metadata) plainType(n int) int {
	for range maxTypes {
		switch t := m.sourceType(n); t.tag {
		case "DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_atomic_type":
			n = t.base
		default:
			return n
		}
	}
	return -1
}

// pointedAt returns the type to which a pointer or reference points, or -1, and the C++ operator
// that accesses the members of this type.
func (m *metadata) pointedAt(n int) (to int, access string) {
	switch t := m.sourceType(m.plainType(n)); t.tag {
	case "DW_TAG_pointer_type":
		return t.base, "->"
	case "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type":
		return t.base, "."
	}
	return -1, ""
}

// members returns the name, such as a.b, and the type of the member that begins at an offset in a
// type. The name omits members with reserved names, which belong to the implementation of the
// library.
func (m *metadata) members(n int, offset uint64) (name string, of int) {
	for range maxTypes {
		n = m.plainType(n)
		t := m.sourceType(n)
		switch t.tag {
		case "DW_TAG_array_type":
			each := m.sourceType(m.plainType(t.base)).bytes
			if each == 0 {
				return name, t.base
			}
			offset %= each
			n = t.base
		case "DW_TAG_structure_type", "DW_TAG_class_type":
			found := m.memberAt(t.elements, offset)
			if found < 0 {
				return name, -1
			}
			member := m.sourceType(found)
			offset -= member.offset
			n = member.base
			if member.tag == "DW_TAG_member" && member.name != "" && !isReserved(member.name) {
				if name != "" {
					name += "."
				}
				name += member.name
			}
		case "DW_TAG_union_type":
			return name, -1
		default:
			if offset != 0 {
				return name, -1
			}
			return name, n
		}
	}
	return name, -1
}

// memberAt returns the largest member or base class at an offset in a structure, or -1 if there is
// none.
func (m *metadata) memberAt(list int, offset uint64) int {
	found, most := -1, uint64(0)
	rest := m.node(list)
	for {
		i := strings.IndexByte(rest, '!')
		if i < 0 {
			return found
		}
		rest = rest[i:]
		n := reference(rest)
		rest = rest[1:]
		if n < 0 || !strings.HasPrefix(m.node(n), "!DIDerivedType(") {
			continue
		}
		t := m.sourceType(n)
		if t.tag != "DW_TAG_member" && t.tag != "DW_TAG_inheritance" {
			continue
		}
		bytes := t.bytes
		if bytes == 0 {
			bytes = m.sourceType(m.plainType(t.base)).bytes
		}
		if offset >= t.offset && offset-t.offset < bytes && bytes > most {
			found, most = n, bytes
		}
	}
}

// isReserved reports whether C or C++ reserves an identifier for the compiler and its library.
func isReserved(name string) bool {
	return len(name) > 1 && name[0] == '_' && (name[1] == '_' || 'A' <= name[1] && name[1] <= 'Z')
}

// variableType returns the type of the variable that node n describes, or -1.
func (m *metadata) variableType(n int) int {
	of := -1
	read := func(key, value string) {
		if key == "type" {
			of = reference(value)
		}
	}
	node := m.node(n)
	visitFields(node, "!DIGlobalVariableExpression", func(key, value string) {
		if key == "var" {
			node = m.node(reference(value))
		}
	})
	if !visitFields(node, "!DILocalVariable", read) {
		visitFields(node, "!DIGlobalVariable", read)
	}
	return of
}

// expression returns the name, such as s->table, and the type of the variable or member at an
// address. The name is "" if no variable or member is known. expression follows at most the given
// number of pointers.
func (f *function) expression(address operand, pointers int) (name string, of int) {
	var moved shift
	o := address
	for range maxTypes {
		if o.id < 0 || f.defs[o.id] < 0 {
			break
		}
		in := &f.insts[f.defs[o.id]]
		named := f.debugNames[o.id] > 0 && f.m.metadata.variable(int(f.debugNames[o.id])-1) != "this"
		if in.op != opAddress || named {
			break
		}
		moved.constant += in.shift.constant
		moved.unknown = moved.unknown || in.shift.unknown || moved.element > 0 && in.shift.element > 0
		moved.element = max(moved.element, in.shift.element)
		o = in.address
	}
	if moved.unknown {
		return "", -1
	}
	name, of, access := f.pointedObject(o, pointers)
	if name == "" || of < 0 {
		return "", -1
	}
	m := &f.m.metadata
	bytes := m.sourceType(m.plainType(of)).bytes
	if moved.element > 0 && moved.element != bytes {
		return "", -1
	}
	if moved.element > 0 && bytes > 0 {
		moved.constant = (moved.constant%int64(bytes) + int64(bytes)) % int64(bytes)
	}
	if moved.constant < 0 {
		return "", -1
	}
	member, of := m.members(of, uint64(moved.constant))
	switch {
	case name == "this":
		return member, of
	case member == "":
		return name, of
	}
	return name + access + member, of
}

// pointedObject returns the name and the type of the object to which a value points, and the
// operator that accesses the members of the object.
func (f *function) pointedObject(o operand, pointers int) (name string, of int, access string) {
	m := &f.m.metadata
	if o.id < 0 {
		if symbol := calledName(o.text); symbol != "" {
			for i := range f.m.globals {
				if g := &f.m.globals[i]; g.name == symbol {
					return f.m.globalName(symbol), m.variableType(g.debug), "."
				}
			}
		}
		return "", -1, ""
	}
	variable := int(f.debugNames[o.id]) - 1
	d := f.defs[o.id]
	if d >= 0 && f.insts[d].op == opAlloca {
		if variable < 0 {
			return "", -1, ""
		}
		return m.variable(variable), m.variableType(variable), "."
	}
	switch {
	case variable >= 0:
		name, of = m.variable(variable), m.variableType(variable)
	case d >= 0 && f.insts[d].op == opLoad && pointers > 0:
		name, of = f.expression(f.insts[d].address, pointers-1)
	}
	if name == "" || of < 0 || isReserved(name) {
		return "", -1, ""
	}
	of, access = m.pointedAt(of)
	return name, of, access
}
