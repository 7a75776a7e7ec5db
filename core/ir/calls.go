package ir

import (
	"math"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// mathFunctions contains the C library functions that never call back into the program, and whose
// only memory access is to errno. A call to such a function does not end a block. Each function has
// variants for float (f) and long double (l).
var mathFunctions = makeMathFunctions(`acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc
	exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod hypot ilogb ldexp lgamma llrint llround log log10 log1p log2
	logb lrint lround nearbyint nextafter pow remainder rint round roundeven scalbln scalbn sin sinh sqrt tan tanh tgamma
	trunc`)

func makeMathFunctions(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name], set[name+"f"], set[name+"l"] = true, true, true
	}
	return set
}

func isIntrinsic(callee string) bool { return strings.HasPrefix(callee, "llvm.") }

// hints lists the name prefixes of intrinsics that produce no code, because they only inform the
// compiler.
var hints = strings.Fields(`llvm.dbg. llvm.lifetime. llvm.assume llvm.invariant. llvm.experimental.noalias.scope.decl
	llvm.annotation llvm.var.annotation llvm.ptr.annotation llvm.donothing llvm.pseudoprobe llvm.sideeffect llvm.fake.use`)

func makesNoCode(callee string) bool {
	return slices.ContainsFunc(hints, func(prefix string) bool { return strings.HasPrefix(callee, prefix) })
}

// baseName returns an intrinsic's name without its types: llvm.fmuladd for llvm.fmuladd.v4f64.
func baseName(callee string) string {
	for {
		i := strings.LastIndexByte(callee, '.')
		if i <= len("llvm") || !isMangledType(callee[i+1:]) {
			return callee
		}
		callee = callee[:i]
	}
}

// isMangledType recognises i64, f32, v4f64, p0, p0i8, nxv2i64, a4i8, bf16, isVoid and literal structs.
func isMangledType(s string) bool {
	for _, prefix := range [...]string{"nxv", "bf", "ppcf", "sl_", "s_"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return len(s) > 1 && strings.IndexByte("pifva", s[0]) >= 0 && isDigit(s[1]) || s == "isVoid" || s == "x86mmx"
}

// touchesNoMemory reports whether an intrinsic never accesses memory through pointer arguments.
func touchesNoMemory(base string) bool {
	switch base {
	case "llvm.prefetch", "llvm.stackrestore", "llvm.objectsize", "llvm.launder.invariant.group",
		"llvm.strip.invariant.group", "llvm.threadlocal.address", "llvm.ptrmask", "llvm.returnaddress", "llvm.addressofreturnaddress",
		"llvm.eh.typeid.for", "llvm.expect", "llvm.is.constant", "llvm.va_end", "llvm.ssa.copy", "llvm.clear_cache",
		"llvm.instrprof.increment", "llvm.type.test", "llvm.type.checked.load", "llvm.public.type.test", "llvm.allow.runtime.check":
		return true
	}
	return makesNoCode(base)
}

// passesPointer reports whether an intrinsic's result is its first argument, or points into the
// same object.
func passesPointer(base string) bool {
	switch base {
	case "llvm.launder.invariant.group", "llvm.strip.invariant.group", "llvm.threadlocal.address", "llvm.ptrmask",
		"llvm.ptr.annotation", "llvm.ssa.copy":
		return true
	}
	return false
}

// recipeKind is the operation that computes a recorded value from its operands.
type recipeKind uint8

const (
	asPointer recipeKind = iota // the operand is an address
	asInteger                   // the operand is an integer of any width
	asProduct                   // the product of two integers of the same type
	asSum                       // the sum of an address and a signed integer
	asPointee                   // the operand is the address of a pointer
	asStack                     // the stack pointer; the frames of called functions are below it
)

// recipe describes how to compute a value that is recorded in the trace.
type recipe struct {
	how   recipeKind
	of    operand
	other operand
}

// site is a load, store or event that the inserted code records.
type site struct {
	kind   trace.Kind
	flags  trace.SiteFlags
	bytes  uint32
	inst   int32 // index of the instruction
	atOnce bool  // whether the values are known at the beginning of the block
	typ    string
	object string
	values [2]recipe
	// structure is 1 + the index of the structure that the site accesses, or 0 if it is unknown.
	// offset is the byte offset of the access in this structure.
	structure, offset uint32
	n                 int // number of elements in use in the field "values"
}

func event(kind trace.Kind, values ...recipe) site {
	s := site{kind: kind, n: len(values)}
	copy(s.values[:], values)
	return s
}

func pointer(o operand) recipe { return recipe{how: asPointer, of: o} }
func integer(o operand) recipe { return recipe{how: asInteger, of: o} }

type arguments []operand

// haveKind reports whether all arguments at the given positions have types of the given kind.
func (a arguments) haveKind(kind typeKind, at ...int) bool {
	for _, i := range at {
		if i >= len(a) || a[i].typ == nil || a[i].typ.kind != kind || kind == pointerType && a[i].typ.space != 0 ||
			kind == intType && a[i].typ.bits > 64 {
			return false
		}
	}
	return true
}

// sizedSite returns a site that accesses n bytes at an address. If n is constant, the site contains
// n; otherwise, n is recorded at run time.
func sizedSite(kind trace.Kind, address recipe, n operand) site {
	if c := number(n.text); c > 0 && n.id < 0 {
		s := event(kind, address)
		s.bytes = uint32(c)
		return s
	}
	return event(kind, address, integer(n))
}

func (o *operand) isZero() bool { return o.id < 0 && o.text == "0" }

// callEvents returns the sites that must be recorded before and after a direct call of a function
// with the given arguments and result.
func callEvents(callee string, a arguments, result operand) (before, after []site) {
	if isIntrinsic(callee) {
		return rangeSites(callee, a), nil
	}
	if strings.HasPrefix(callee, "__kmpc_") {
		return openMPEvents(callee[len("__kmpc_"):], a, result)
	}
	if strings.HasPrefix(callee, "_ZdlPv") || strings.HasPrefix(callee, "_ZdaPv") {
		callee = "free"
	}
	if strings.HasPrefix(callee, "_Znw") || strings.HasPrefix(callee, "_Zna") {
		callee = "malloc"
	}
	switch callee {
	case "malloc", "valloc", "pvalloc":
		return nil, allocation(a, result, 0)
	case "aligned_alloc", "memalign":
		return nil, allocation(a, result, 1)
	case "calloc":
		return nil, clearedAllocation(a, result)
	case "realloc":
		if a.haveKind(pointerType, 0) {
			return []site{event(trace.Free, pointer(a[0]))}, allocation(a, result, 1)
		}
	case "posix_memalign":
		if a.haveKind(pointerType, 0) && a.haveKind(intType, 2) {
			return nil, []site{sizedSite(trace.Alloc, recipe{how: asPointee, of: a[0]}, a[2])}
		}
	case "free", "cfree":
		if a.haveKind(pointerType, 0) {
			return []site{event(trace.Free, pointer(a[0]))}, nil
		}
	}
	return rangeSites(callee, a), nil
}

func isPointer(o operand) bool {
	return o.text != "" && o.typ != nil && o.typ.kind == pointerType && o.typ.space == 0
}

func isInteger(o operand) bool {
	return o.text != "" && o.typ != nil && o.typ.kind == intType && o.typ.bits <= 64
}

// allocation returns the Alloc site that follows a call of an allocation function. The argument at
// position sizeIndex is the size in bytes.
func allocation(a arguments, result operand, sizeIndex int) []site {
	if !a.haveKind(intType, sizeIndex) || !isPointer(result) {
		return nil
	}
	return []site{sizedSite(trace.Alloc, pointer(result), a[sizeIndex])}
}

// clearedAllocation returns the Alloc site that follows a call of calloc. The size of the
// allocation is the product of the arguments.
func clearedAllocation(a arguments, result operand) []site {
	if !a.haveKind(intType, 0, 1) || a[0].typ != a[1].typ || !isPointer(result) {
		return nil
	}
	s := event(trace.Alloc, pointer(result), recipe{how: asProduct, of: a[0], other: a[1]})
	if n, m := number(a[0].text), number(a[1].text); n > 0 && m > 0 && n <= math.MaxUint32/m {
		s.bytes, s.n = uint32(n*m), 1
	}
	return []site{s}
}

// rangeArguments contains the positions of arguments of a function that copies or sets memory: the
// source (-1 if there is none), the destination, and the number of bytes.
type rangeArguments struct{ from, to, bytes int }

var rangeFunctions = makeTable(map[rangeArguments]string{
	{1, 0, 2}: `llvm.memcpy llvm.memmove llvm.memcpy.inline llvm.memcpy.element.unordered.atomic
		llvm.memmove.element.unordered.atomic memcpy memmove mempcpy __memcpy_chk __memmove_chk __mempcpy_chk`,
	{0, 1, 2}:  "bcopy",
	{-1, 0, 2}: "llvm.memset llvm.memset.inline llvm.memset.element.unordered.atomic memset __memset_chk",
	{-1, 0, 1}: "bzero",
})

// makeTable inverts a map. Each value is a list of names, and the result maps each name to the key
// of its list.
func makeTable[T comparable](lists map[T]string) map[string]T {
	table := map[string]T{}
	for value, names := range lists {
		for name := range strings.FieldsSeq(names) {
			table[name] = value
		}
	}
	return table
}

// rangeSites returns the sites of a call to a function that copies or sets memory.
func rangeSites(callee string, a arguments) (list []site) {
	if isIntrinsic(callee) {
		callee = baseName(callee)
	}
	at, ok := rangeFunctions[callee]
	if !ok || !a.haveKind(pointerType, at.to, max(at.from, 0)) || !a.haveKind(intType, at.bytes) || a[at.bytes].isZero() {
		return nil
	}
	if at.from >= 0 {
		list = append(list, sizedSite(trace.RangeRead, pointer(a[at.from]), a[at.bytes]))
	}
	return append(list, sizedSite(trace.RangeWrite, pointer(a[at.to]), a[at.bytes]))
}

// openMPEvents works like callEvents, but for functions of LLVM's OpenMP runtime
// (openmp/runtime/src/kmp.h). The argument "name" is the name of the function without the prefix
// __kmpc_.
func openMPEvents(name string, a arguments, result operand) (before, after []site) {
	switch name {
	case "fork_call", "fork_teams", "fork_call_if":
		return []site{event(trace.ParallelBegin, recipe{how: asStack})}, []site{event(trace.ParallelEnd)}
	case "for_static_fini", "distribute_static_fini":
		return []site{event(trace.LoopEnd, recipe{how: asInteger, of: zeroOperand})}, nil
	case "barrier", "cancel_barrier":
		return nil, []site{event(trace.Barrier)}
	case "critical", "critical_with_hint":
		if a.haveKind(pointerType, 2) {
			return nil, []site{event(trace.CriticalBegin, pointer(a[2]))}
		}
	case "end_critical":
		if a.haveKind(pointerType, 2) {
			return []site{event(trace.CriticalEnd, pointer(a[2]))}, nil
		}
	case "reduce", "reduce_nowait":
		return nil, []site{event(trace.ReduceBegin)}
	case "end_reduce", "end_reduce_nowait":
		return []site{event(trace.ReduceEnd)}, nil
	case "omp_task_alloc":
		if isPointer(result) {
			return nil, []site{event(trace.TaskCreate, pointer(result))}
		}
	case "omp_taskwait", "omp_taskwait_deps_51":
		return nil, []site{event(trace.TaskWait)}
	}
	return worksharingEvents(name, a, result)
}

// zeroOperand is the constant that is recorded at the end of a statically scheduled loop.
var zeroOperand = operand{typ: &datatype{kind: intType, bits: 64, text: "i64"}, typeText: "i64", text: "0", id: -1}

// chunkArguments maps name prefixes of the functions that begin a worksharing loop to the position
// of the chunk-size argument. Argument 2 (counted from 0) of these functions is the schedule.
var chunkArguments = map[string]int{
	"for_static_init_": 8, "distribute_static_init_": 8, "dist_for_static_init_": 9, "dispatch_init_": 6, "dist_dispatch_init_": 7,
}

// worksharingEvents works like callEvents, but for functions that divide the iterations of a loop
// among threads. The names of these functions end in the type of the loop counter.
func worksharingEvents(name string, a arguments, result operand) (before, after []site) {
	if strings.HasPrefix(name, "dispatch_next_") && isInteger(result) {
		return nil, []site{event(trace.LoopEnd, integer(result))}
	}
	for prefix, chunk := range chunkArguments {
		if strings.HasPrefix(name, prefix) && a.haveKind(intType, 2, chunk) {
			return []site{event(trace.LoopBegin, integer(a[2]), integer(a[chunk]))}, nil
		}
	}
	return nil, nil
}
