package ir

import (
	"strconv"
	"strings"
)

// abiVersion is the value of SG_ABI in tools/capture/runtime/abi.h.
const abiVersion = 2

// writeTypes writes the definitions of the structs in abi.h, because a definition must precede the
// first use of the struct. It returns the position at which the block count is inserted later.
func (e *emitter) writeTypes() (blocksAt int) {
	e.put("%", e.prefix, "thread = type { ", e.int, ", ", e.word, ", i64 }\n",
		"%", e.prefix, "block = type { i32, i32, i32, i32 }\n",
		"%", e.prefix, "blocks = type [")
	blocksAt = len(e.out)
	e.put(strings.Repeat(" ", blockCountWidth), " x %", e.prefix, "block]\n\n")
	return blocksAt
}

// blockCountWidth is the number of characters reserved for the block count.
const blockCountWidth = 10

// writeData writes the data that the runtime reads: the blocks, the tables, the objects, and the
// module's struct, whose address is stored in section __sg_modules.
func (e *emitter) writeData(t *tables, tables []byte) {
	e.put("\n@__sg_thread = external thread_local(initialexec) global %", e.prefix, "thread\n",
		"@__sg_clock = external global i64\n",
		"declare ", e.more, ", ", e.word, ") cold nounwind\n",
		"!", strconv.Itoa(e.m.lastMeta+1), " = !{!\"branch_weights\", i32 1, i32 1048575}\n")
	e.writeDeclarations()
	e.blockTable(t)
	scale := e.writeBytes("scale", t.scale)
	packed := e.writeBytes("tables", tables)
	objects := e.writeObjects()
	module := "{ i32, i32, " + e.m.pointerTo("%"+e.prefix+"blocks") + ", " + e.m.pointerTo(scale) + ", " + e.m.pointerTo(packed) +
		", i64, " + e.m.pointerTo(objects) + ", i64 }"
	e.put("@", e.prefix, "module = internal constant ", module, " { i32 ", strconv.Itoa(abiVersion), ", i32 ", strconv.Itoa(len(t.values)), ", ",
		e.m.pointerTo("%"+e.prefix+"blocks"), " @", e.prefix, "blocks, ",
		e.m.pointerTo(scale), " @", e.prefix, "scale, ", e.m.pointerTo(packed), " @", e.prefix, "tables, i64 ", strconv.Itoa(len(tables)), ", ",
		e.m.pointerTo(objects), " @", e.prefix, "objects, i64 ", strconv.Itoa(len(e.m.globals)), " }, align 8\n",
		"@", e.prefix, "entry = internal global ", e.m.bytePointer(), " ", e.asBytes(module, e.prefix+"module"),
		", section \"__sg_modules\", align 8\n")
	if !e.m.used {
		e.put("@llvm.used = appending global [1 x ", e.m.bytePointer(), "] [", e.moduleEntry(), "], section \"llvm.metadata\"\n")
	}
}

// moduleEntry returns the address of the module's entry in section __sg_modules, in the notation
// that llvm.used requires.
func (e *emitter) moduleEntry() string {
	if !e.m.typed {
		return "ptr @" + e.prefix + "entry"
	}
	return "i8* bitcast (i8** @" + e.prefix + "entry to i8*)"
}

// writeDeclarations declares the functions that the inserted code calls, unless the module declares
// them already.
func (e *emitter) writeDeclarations() {
	if e.need.stack && !e.m.declared[stackPointer] {
		e.put("declare ", e.m.bytePointer(), " @", stackPointer, "()\n")
	}
	if e.need.ones && !e.m.declared["llvm.ctpop.i64"] {
		e.put("declare i64 @llvm.ctpop.i64(i64)\n")
	}
	if e.need.masked {
		e.put("declare void @__sg_masked(", e.m.pointerTo("%"+e.prefix+"block"), ", i64, i64, i32, i32) nounwind\n")
	}
	if e.need.lanes {
		e.put("declare void @__sg_lanes(", e.m.pointerTo("%"+e.prefix+"block"), ", ", e.word, ", i64, i32, i32) nounwind\n")
	}
}

func (e *emitter) blockTable(t *tables) {
	e.put("@", e.prefix, "blocks = internal global %", e.prefix, "blocks [")
	separator := ""
	for i, values := range t.values {
		e.put(separator, "%", e.prefix, "block { i32 ", strconv.Itoa(int(values)), ", i32 ", strconv.Itoa(int(t.refs[i])), ", i32 0, i32 0 }")
		separator = ", "
	}
	e.put("], align 8\n")
}

// writeBytes writes a constant array and returns its type.
func (e *emitter) writeBytes(name string, content []byte) string {
	array := "[" + strconv.Itoa(len(content)) + " x i8]"
	e.put("@", e.prefix, name, " = internal constant ", array, " c\"")
	const hex = "0123456789ABCDEF"
	for _, b := range content {
		if b < ' ' || b > '~' || b == '"' || b == '\\' {
			e.out = append(e.out, '\\', hex[b>>4], hex[b&15])
		} else {
			e.out = append(e.out, b)
		}
	}
	e.put("\", align 1\n")
	return array
}

// writeObjects writes a table with the addresses of the global variables, and returns the table's
// type.
func (e *emitter) writeObjects() string {
	array := "[" + strconv.Itoa(len(e.m.globals)) + " x " + e.m.bytePointer() + "]"
	e.put("@", e.prefix, "objects = internal constant ", array, " [")
	separator := ""
	for i := range e.m.globals {
		g := &e.m.globals[i]
		address := "null"
		if g.address {
			address = e.asBytes(g.typeText, g.name)
		}
		e.put(separator, e.m.bytePointer(), " ", address)
		separator = ", "
	}
	e.put("], align 8\n")
	return array
}

// asBytes returns the address of a global variable, as a pointer to bytes.
func (e *emitter) asBytes(typeText, name string) string {
	if !e.m.typed {
		return "@" + name
	}
	return "bitcast (" + typeText + "* @" + name + " to i8*)"
}

// extendUsed adds the entry to the module's existing list of symbols that the linker must keep:
// `@llvm.used = appending global [1 x ptr] [ptr @f], section "llvm.metadata"`.
func (e *emitter) extendUsed(line string) string {
	before, rest, ok := strings.Cut(line, "[")
	n := number(rest)
	_, list, ok2 := strings.Cut(rest, "] [")
	if !ok || !ok2 || n < 0 {
		return line
	}
	return before + "[" + strconv.Itoa(n+1) + " x " + e.m.bytePointer() + "] [" + e.moduleEntry() + ", " + list
}
