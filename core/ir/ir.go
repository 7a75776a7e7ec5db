// Package ir reads the text of LLVM IR modules, finds their blocks, loops and data dependences, and
// rewrites them so that the compiled program records its memory references.
//
// # What is read
//
// The text that clang and flang 14 to 19 write with -S -emit-llvm, before or after optimisation:
// pointers with types (up to 14) or without, debug information as calls or as records, exceptions,
// OpenMP. The LLVM Language Reference defines it; LLVM prints one instruction a line.
//
//  1. [Instrument] finds the lines of the top level: functions, global variables, types,
//     attributes, metadata.
//  2. Each function is read instruction by instruction. A function that is not understood to its
//     last character stays as it is, and is listed under Missed: a program is never compiled
//     wrongly for the sake of its trace.
//  3. Basic blocks are cut into *pieces*, the blocks of the trace: after every call that may run
//     other code (which may not return, or may throw), around atomic operations (so that threads'
//     steps have the order of the operations), and where a piece would have more than 48 values. A
//     piece runs whole or not at all. There is no cut behind a tail call that is followed by the
//     return, so that the compiler can still make it a jump and deep recursion needs no stack: the
//     return, or the step of the block that only returns, comes before the steps of the callee.
//  4. At the beginning of each piece, code opens a step in the thread's buffer; before each load,
//     store or event its address is stored in the step (tools/capture/runtime/abi.h draws it). Phis
//     and landing pads stay first, and name the last part of the block that they come from. New
//     values have names, so that the numbering of unnamed values stays as it is.
//  5. Tables of all that is known before the run — functions, blocks, loops by dominators, sites,
//     instructions and their operands, source locations, variables — go into the module as the body
//     of a MODL frame (core/trace/sgt).
//
// [Read] makes the same tables from the text alone, for models that need no run, with the weights of
// branches from a profile (!prof). It also reads functions that must not be rewritten, and text of other systems and newer
// versions: it skips functions and lines that it does not understand, and lists them.
//
// # What the tables say
//
// Opcodes are LLVM's. Calls that end no block are named by their callees: "llvm.fmuladd" for
// intrinsics, without their types, "call sin" for functions of the mathematical library, "asm" for
// inline assembly. Calls that end a block are "call" and "invoke". Intrinsics that make no code do
// not count. A conditional branch has the type i1, an unconditional one none; an atomic exchange
// the type that it exchanges. Every pointer is a "ptr".
//
// An instruction uses its operands. A load also uses the store before it, in its block or in the
// iteration before, if the text shows that the address is the same: an equal value, or one that is
// computed in the same way.
//
// A function's target is determined by the module's triple and the function's attributes
// "target-cpu" and "target-features". It decides what llvm.fma and llvm.fmuladd consist of; the
// tables have them as in the text, and package pipeline splits them.
//
// A site's object is the local variable, argument or global variable from which its address is
// computed, or the pointer from which it was loaded: a variable, or a member of a structure, as in
// s->table. If different objects are possible, it has none.
//
// A site is located where its code is written. Code that was inlined from a system header or from
// an accessor is located at its call. An accessor is a function with code on one line and no loop,
// and, if it is of the same file, at most two loads and stores.
package ir

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Options are options of [Instrument].
type Options struct {
	Source         string   // the source file's name; "" for the name in the module
	CompileOptions string   // how it is compiled, for the tables
	Instrs         bool     // list every block's instructions, for models of pipelines
	Skip           []string // functions to leave as they are, by the linker's name
	// Read returns the text of the source file at a path, or nil. If it is set, the tables contain the
	// source files of the program's functions and sites, without system headers.
	Read func(file string) []byte
}

// Result is a rewritten module.
type Result struct {
	Text    []byte
	Program *trace.Program // the module's tables, as a program of one module
	Missed  []trace.Missed // code that is not instrumented, from the program's module
}

// checkSize bounds modules, because positions in them have 32 bits.
func checkSize(src []byte, instead string) error {
	if len(src) < 1<<31 {
		return nil
	}
	return errors.New("the module has " + strconv.Itoa(len(src)) + " bytes, want less than 2 GB; " + instead + " its sources apart")
}

// Instrument rewrites a module so that it records its references. The error is for modules that cannot be
// understood at all, and says where.
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
		e.data(t, sgt.AppendModule(nil, t.program))
		r.Text = e.out
	}
	return r, nil
}

// instrumentable returns an error for modules that must not be rewritten.
func (m *module) instrumentable() error {
	if strings.Contains(m.text, "@__sg_thread") || strings.Contains(m.text, "@__sg_more") {
		return errors.New(m.file() + ": the module is instrumented already, or part of the runtime; compile it without")
	}
	for _, no := range []string{"nvptx", "amdgcn", "spir", "wasm", "darwin", "macos", "windows", "uefi"} {
		if strings.Contains(m.triple, no) {
			return errors.New(m.file() + ": compiled for " + strconv.Quote(m.triple) + ", want a system with ELF files such as Linux")
		}
	}
	return nil
}

// keepsRegisters reports whether a machine has the calling convention of __sg_more.
func keepsRegisters(triple string) bool {
	machine, _, _ := strings.Cut(triple, "-")
	return machine == "x86_64" || machine == "aarch64" || machine == "arm64"
}

// rewrite writes the module's text with its functions instrumented.
func (e *emitter) rewrite(t *tables, skip []string) {
	m := e.m
	lines := m.lines
	e.out = make([]byte, 0, 3*len(m.text))
	blocksAt := -1
	var f function
	var p plan
	for _, at := range m.functions {
		for len(lines) > 0 && lines[0].from < at.from {
			e.line(lines[0])
			lines = lines[1:]
		}
		e.copyTo(at.from)
		if blocksAt < 0 {
			blocksAt = e.types()
		}
		f.reset(m, at)
		if why := f.read(skip); why == "" {
			p.reset(&f, t)
			p.make()
			e.function(&p)
			t.add(&p)
		} else if why != external {
			t.missed(linkerName(f.name), why)
		}
	}
	for _, l := range lines {
		e.line(l)
	}
	e.copyTo(len(m.text))
	if blocksAt >= 0 {
		copy(e.out[blocksAt:], strconv.Itoa(len(t.program.Blocks)))
	}
}

// line copies the text up to a line of the top level, and writes the changed line.
func (e *emitter) line(l extent) {
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

// external is the reason for functions whose code is in another module.
const external = "external"

// read reads the function, and returns the reason to leave it unchanged, or "".
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
			return "it has a swifterror variable, whose address must not be taken"
		}
	}
	return ""
}

func (p *problem) String() string { return "line " + strconv.Itoa(p.line) + " of its IR: " + p.why }

// refusals are words of a function's first line, or of its attributes, because of which it is left
// unchanged.
var refusals = map[string]string{
	"naked":                             "it is naked: nothing may come before its assembly",
	"presplitcoroutine":                 "it is a coroutine that is not split yet",
	"disable_sanitizer_instrumentation": "its attributes forbid instrumentation",
	"ghccc":                             "its calling convention leaves no register",
	"anyregcc":                          "its calling convention leaves no register",
	"x86_intrcc":                        "it is an interrupt's handler",
	"avr_intrcc":                        "it is an interrupt's handler",
	"msp430_intrcc":                     "it is an interrupt's handler",
	"hhvmcc":                            "its calling convention leaves no register",
	"hhvm_ccc":                          "its calling convention leaves no register",
	"cc":                                "its calling convention is not known",
	"readnone":                          "its first line says what memory it uses",
	"readonly":                          "its first line says what memory it uses",
	"memory":                            "its first line says what memory it uses",
	"swifterror":                        "it has a swifterror argument, whose address must not be taken",
}

// bootSections contain code that runs before there are threads.
var bootSections = []string{".init.text", ".head.text", ".noinstr.text", ".entry.text", ".boot", ".init"}

// refusedBy returns why the function's first line or attributes forbid instrumentation, or "".
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
		return "it is the resolver of an ifunc: it runs before there are threads"
	case f.collected:
		return "it has a garbage collector"
	case slices.Contains(bootSections, f.section):
		return "it lies in section " + f.section
	case slices.Contains(skip, linkerName(f.name)):
		return "it was to be left as it is"
	}
	return ""
}

// groupRefuses returns why a group of attributes forbids instrumentation, or "".
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

// withoutMemory removes the attributes that say which memory a function uses, because a function that
// records writes to its thread's buffer.
func withoutMemory(group string) string {
	c := cursor{text: group}
	out := make([]byte, 0, len(group))
	for c.at < len(group) {
		from := c.at
		switch b := group[c.at]; {
		case b == '"':
			c.quoted()
		case isLetter(b):
			word := c.word()
			if c.at < len(group) && group[c.at] == '(' {
				c.group()
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
