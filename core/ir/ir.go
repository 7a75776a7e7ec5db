// Package ir reads the text of LLVM IR modules, finds their blocks, loops and data dependences, and
// rewrites them so that the compiled program records its memory references.
//
// # Input
//
// The input is the text that clang and flang 14 to 19 write with -S -emit-llvm, before or after
// optimisation. Pointers may be typed (up to version 14) or opaque, and debug information may be in
// calls of intrinsics or in debug records. Exceptions and OpenMP are supported. The LLVM Language
// Reference defines the notation. LLVM prints one instruction per line.
//
//  1. [Instrument] finds the top-level items: functions, global variables, types,
//     attributes, metadata.
//  2. Each function is parsed instruction by instruction. A function that cannot be parsed
//     completely is left unchanged and listed in the field Missed, because correct compilation is
//     more important than a complete trace.
//  3. Basic blocks are cut into *pieces*, which are the blocks of the trace. A block is cut after
//     every call that may run other code, because the call may throw or never return. A block is
//     also cut before and after atomic operations, so that the steps of different threads appear in
//     the order of these operations. Finally, blocks are cut so that no piece has more than 48
//     values. Either all instructions of a piece are executed, or none. A block is not cut between
//     a tail call and the following return, so that the compiler can still turn the call into a
//     jump, and deep recursion needs no stack space. In the trace, the step with the return
//     therefore precedes the steps of the callee.
//  4. At the beginning of each piece, the inserted code opens a step in the thread's buffer. Before
//     each load, store or event, the inserted code writes the address into the step
//     (tools/capture/runtime/abi.h shows the layout). Phis and landing pads remain at the beginning
//     of their blocks. In a phi, the last piece of a predecessor block replaces the predecessor
//     block. Inserted values have names, so that the numbering of unnamed values does not change.
//  5. The module also receives tables with everything that is known before the run: functions,
//     blocks, loops (found with dominators), sites, instructions and their operands, source
//     locations, and variables. The tables have the form of the body of a MODL frame
//     (core/trace/sgt).
//
// [Read] builds the same tables without rewriting the module, for models that need no run. The
// tables of [Read] also contain the branch weights of a profile (!prof). [Read] also accepts
// functions that must not be rewritten, modules for systems without ELF, and modules from newer
// LLVM versions. [Read] skips functions and lines that it cannot parse, and lists them.
//
// # Contents of the tables
//
// Opcodes have the names that LLVM uses. Calls that do not end a block are named after their
// callees: intrinsics without their types (such as "llvm.fmuladd"), functions of the C mathematical
// library with the prefix "call" (such as "call sin"), and inline assembly as "asm". Calls that end
// a block are named "call" and "invoke". Intrinsics that produce no code are not counted. A
// conditional branch has the type i1, and an unconditional branch has no type. The type of an
// atomic exchange is the type of the exchanged value. Every pointer has the type "ptr".
//
// An instruction depends on its operands. A load also depends on a preceding store, in the same
// block or in the previous iteration, if both addresses are the same value or are computed by the
// same expression.
//
// The target of a function is determined by the triple of the module, and by the attributes
// "target-cpu" and "target-features" of the function. The target determines which operations
// llvm.fma and llvm.fmuladd consist of. The tables contain llvm.fma and llvm.fmuladd unchanged;
// package pipeline splits them into operations.
//
// A site's object is the local variable, argument or global variable from which its address is
// computed. If the address is computed from a loaded pointer, the object is the variable or
// structure member (such as s->table) that contains the pointer. If several objects are possible,
// the site has no object.
//
// The location of a site is the source line of its code. If the code was inlined from a system
// header or from an accessor, the location is the line of the call. An accessor is a function whose
// code is on a single line and has no loop. A function in the same file as the call is an accessor
// only if it also has at most two loads and stores.
package ir

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Options contains the options of [Instrument].
type Options struct {
	Source         string   // name of the source file; if "", the name in the module is used
	CompileOptions string   // compiler options to record in the tables
	Instrs         bool     // whether to list the instructions of every block, for pipeline models
	Skip           []string // linker names of functions to leave unchanged
	// Read returns the text of the source file at a path, or nil. If Read is set, the tables
	// contain the source files of the program's functions and sites, except for system headers.
	Read func(file string) []byte
}

// Result contains a rewritten module.
type Result struct {
	Text    []byte
	Program *trace.Program // the tables of the module, as a program that consists of one module
	Missed  []trace.Missed // code in the module that is not instrumented
}

// checkSize limits the size of modules, because positions in the text are stored in 32 bits.
func checkSize(src []byte, instead string) error {
	if len(src) < 1<<31 {
		return nil
	}
	return errors.New("the module has " + strconv.Itoa(len(src)) + " bytes, want less than 2 GB; " + instead + " its source files separately")
}

// Instrument rewrites a module so that the compiled program records its references. Instrument
// returns an error only if the module as a whole cannot be parsed or must not be rewritten. The
// error contains the location.
func Instrument(src []byte, o Options) (*Result, error) {
	if err := checkSize(src, "compile"); err != nil {
		return nil, err
	}
	m, err := readModule(string(src), false)
	if err != nil {
		return nil, err
	}
	if err := m.instrumentable(); err != nil {
		return nil, err
	}
	t := newTables(m, o)
	e := newEmitter(m)
	e.rewrite(t, o.Skip)
	t.finish()
	t.addSources(o.Read)
	r := &Result{Text: src, Program: t.program, Missed: t.program.Modules[0].Missed}
	if len(t.program.Blocks) > 0 {
		e.writeData(t, sgt.AppendModule(nil, t.program))
		r.Text = e.out
	}
	return r, nil
}

// instrumentable returns an error for modules that must not be rewritten.
func (m *module) instrumentable() error {
	if strings.Contains(m.text, "@__sg_thread") || strings.Contains(m.text, "@__sg_more") {
		return errors.New(m.file() + ": the module is already instrumented, or part of the runtime; compile the module without instrumentation")
	}
	for _, no := range []string{"nvptx", "amdgcn", "spir", "wasm", "darwin", "macos", "windows", "uefi"} {
		if strings.Contains(m.triple, no) {
			return errors.New(m.file() + ": compiled for " + strconv.Quote(m.triple) + ", want a system that uses ELF, such as Linux")
		}
	}
	return nil
}

// keepsRegisters reports whether a machine supports the register-preserving calling convention of
// __sg_more.
func keepsRegisters(triple string) bool {
	machine, _, _ := strings.Cut(triple, "-")
	return machine == "x86_64" || machine == "aarch64" || machine == "arm64"
}

// rewrite writes the module's text with instrumented functions.
func (e *emitter) rewrite(t *tables, skip []string) {
	m := e.m
	lines := m.lines
	e.out = make([]byte, 0, 3*len(m.text))
	blocksAt := -1
	var f function
	var p plan
	for _, at := range m.functions {
		for len(lines) > 0 && lines[0].from < at.from {
			e.writeLine(lines[0])
			lines = lines[1:]
		}
		e.copyTo(at.from)
		if blocksAt < 0 {
			blocksAt = e.writeTypes()
		}
		f.reset(m, at)
		if why := f.read(skip); why == "" {
			p.reset(&f, t)
			p.build()
			e.writeFunction(&p)
			t.add(&p)
		} else if why != external {
			t.countMissed(linkerName(f.name), why)
		}
	}
	for _, l := range lines {
		e.writeLine(l)
	}
	e.copyTo(len(m.text))
	if blocksAt >= 0 {
		copy(e.out[blocksAt:], strconv.Itoa(len(t.program.Blocks)))
	}
}

// writeLine copies the text up to a top-level line, and then writes the line with its changes.
func (e *emitter) writeLine(l extent) {
	e.copyTo(l.from)
	text := e.m.in(l)
	switch name := groupName(text); {
	case name == "":
		e.put(e.extendUsed(text))
	case e.m.ofDefinitions[name]:
		e.put(withoutMemory(text))
	default:
		e.put(text)
	}
	e.done = l.to
}

// external is the reason that is reported for functions whose code is in another module.
const external = "external"

// read reads the function. If the function must be left unchanged, it returns the reason; otherwise
// it returns "".
func (f *function) read(skip []string) string {
	if p := f.readHeader(); p != nil {
		f.name = calledName(f.m.text[f.from:lineEnd(f.m.text, f.from)])
		return p.String()
	}
	if why := f.refusedBy(skip); why != "" {
		return why
	}
	p := f.readBody()
	if f.refused != nil {
		return f.refused.String()
	}
	if p != nil {
		return p.String()
	}
	for i := range f.insts {
		if f.insts[i].swiftError {
			return "the function has a swifterror variable, whose address must not be taken"
		}
	}
	return ""
}

func (p *problem) String() string {
	return "line " + strconv.Itoa(p.line) + " of the function's IR: " + p.why
}

// refusals maps words in the first line or in the attributes of a function to the reason why such a
// function is left unchanged.
var refusals = map[string]string{
	"naked":                             "the function is naked: no code may be inserted before its assembly",
	"presplitcoroutine":                 "the function is a coroutine that has not been split yet",
	"disable_sanitizer_instrumentation": "the attributes of the function forbid instrumentation",
	"ghccc":                             "the calling convention of the function leaves no register free",
	"anyregcc":                          "the calling convention of the function leaves no register free",
	"x86_intrcc":                        "the function is an interrupt handler",
	"avr_intrcc":                        "the function is an interrupt handler",
	"msp430_intrcc":                     "the function is an interrupt handler",
	"hhvmcc":                            "the calling convention of the function leaves no register free",
	"hhvm_ccc":                          "the calling convention of the function leaves no register free",
	"cc":                                "the calling convention of the function is unknown",
	"readnone":                          "the attributes of the function restrict the memory that it may access",
	"readonly":                          "the attributes of the function restrict the memory that it may access",
	"memory":                            "the attributes of the function restrict the memory that it may access",
	"swifterror":                        "the function has a swifterror argument, whose address must not be taken",
}

// bootSections lists the sections whose code runs before threads are set up.
var bootSections = []string{".init.text", ".head.text", ".noinstr.text", ".entry.text", ".boot", ".init"}

// refusedBy returns the reason why the function's first line or attributes forbid instrumentation,
// or "".
func (f *function) refusedBy(skip []string) string {
	if slices.Contains(f.words, "available_externally") {
		return external
	}
	for _, w := range f.words {
		if why, ok := refusals[w]; ok {
			return why
		}
	}
	for _, g := range f.groups {
		if why := groupRefuses(f.m.groups[g]); why != "" {
			return why
		}
	}
	switch {
	case f.m.entries[f.name]:
		return "the function is the resolver of an ifunc and runs before there are threads"
	case f.collected:
		return "the function uses a garbage collector"
	case slices.Contains(bootSections, f.section):
		return "the function is in section " + f.section
	case slices.Contains(skip, linkerName(f.name)):
		return "the function was excluded by an option"
	}
	return ""
}

// groupRefuses returns the reason why an attribute group forbids instrumentation, or "".
func groupRefuses(group string) string {
	if strings.Contains(group, `"coroutine.presplit"`) {
		return refusals["presplitcoroutine"]
	}
	words, _, _ := strings.Cut(group, `"`)
	for _, w := range []string{"naked", "presplitcoroutine", "disable_sanitizer_instrumentation"} {
		if strings.Contains(words, " "+w+" ") {
			return refusals[w]
		}
	}
	return ""
}

// withoutMemory removes the attributes that describe which memory a function accesses, because an
// instrumented function also writes to its thread's buffer.
func withoutMemory(group string) string {
	c := cursor{text: group}
	out := make([]byte, 0, len(group))
	for c.at < len(group) {
		from := c.at
		switch b := group[c.at]; {
		case b == '"':
			c.readQuoted()
		case isLetter(b):
			word := c.readWord()
			if c.at < len(group) && group[c.at] == '(' {
				c.readGroup()
			}
			if saysMemory(word) {
				continue
			}
		default:
			c.at++
		}
		out = append(out, group[from:c.at]...)
	}
	return string(out)
}

func saysMemory(word string) bool {
	switch word {
	case "readnone", "readonly", "writeonly", "argmemonly", "inaccessiblememonly", "inaccessiblemem_or_argmemonly",
		"memory", "speculatable", "nosync":
		return true
	}
	return false
}
