package ir

import (
	"math"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// mathFunctions are those of the C library that call nothing of the program and
// touch no memory that it sees, errno apart: a call of one ends no block. Each
// has variants for float (f) and long double (l).
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

// isIntrinsic tells the functions that the compiler knows and mostly turns into
// instructions.
func isIntrinsic(callee string) bool { return strings.HasPrefix(callee, "llvm.") }

// makesNoCode tells the intrinsics that only tell the compiler something.
func makesNoCode(callee string) bool {
	for _, prefix := range [...]string{
		"llvm.dbg.", "llvm.lifetime.", "llvm.assume", "llvm.invariant.", "llvm.experimental.noalias.scope.decl",
		"llvm.annotation", "llvm.var.annotation", "llvm.ptr.annotation", "llvm.donothing", "llvm.pseudoprobe", "llvm.sideeffect",
		"llvm.fake.use",
	} {
		if strings.HasPrefix(callee, prefix) {
			return true
		}
	}
	return false
}

// baseName is an intrinsic's name without the types that it is made for:
// llvm.fmuladd of llvm.fmuladd.v4f64.
func baseName(callee string) string {
	for {
		i := strings.LastIndexByte(callee, '.')
		if i <= len("llvm") || !isMangledType(callee[i+1:]) {
			return callee
		}
		callee = callee[:i]
	}
}

// isMangledType tells i64, f32, v4f64, p0, p0i8, nxv2i64, a4i8, bf16, isVoid and
// literal structs.
func isMangledType(s string) bool {
	for _, prefix := range [...]string{"nxv", "bf", "ppcf", "sl_", "s_"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return len(s) > 1 && strings.IndexByte("pifva", s[0]) >= 0 && isDigit(s[1]) || s == "isVoid" || s == "x86mmx"
}

// touchesNoMemory tells the intrinsics that take pointers without following
// them.
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

// passesPointer tells the intrinsics whose result is their first argument, or
// lies in the same object.
func passesPointer(base string) bool {
	switch base {
	case "llvm.launder.invariant.group", "llvm.strip.invariant.group", "llvm.threadlocal.address", "llvm.ptrmask",
		"llvm.ptr.annotation", "llvm.ssa.copy":
		return true
	}
	return false
}

// how says how a value for the trace comes about.
type how uint8

const (
	asPointer how = iota // the operand is an address
	asInteger            // the operand is an integer of any width
	asProduct            // of two integers of the same type
	asSum                // of an address and a signed integer
	asPointee            // the operand is the address of a pointer
	asStack              // the stack pointer: what the function calls has its frames below
)

// recipe is one value for the trace.
type recipe struct {
	how   how
	of    operand
	other operand
}

// site is a place that makes rows, planned.
type site struct {
	kind   trace.Kind
	flags  trace.SiteFlags
	bytes  uint32
	inst   int32 // the instruction that it belongs to
	atOnce bool  // its values are there when the block begins
	typ    string
	object string
	values [2]recipe
	n      int // of values
}

func event(kind trace.Kind, values ...recipe) site {
	s := site{kind: kind, n: len(values)}
	copy(s.values[:], values)
	return s
}

func pointer(o operand) recipe { return recipe{how: asPointer, of: o} }
func integer(o operand) recipe { return recipe{how: asInteger, of: o} }

// arguments are what a call passes.
type arguments []operand

// has tells whether the arguments at these positions are of a kind.
func (a arguments) has(kind typeKind, at ...int) bool {
	for _, i := range at {
		if i >= len(a) || a[i].typ == nil || a[i].typ.kind != kind || kind == pointerType && a[i].typ.space != 0 ||
			kind == intType && a[i].typ.bits > 64 {
			return false
		}
	}
	return true
}

// sized makes a site of n bytes at an address: where n is a constant, it is told
// once and for all.
func sized(kind trace.Kind, address recipe, n operand) site {
	if c := number(n.text); c > 0 && n.id < 0 {
		s := event(kind, address)
		s.bytes = uint32(c)
		return s
	}
	return event(kind, address, integer(n))
}

// isZero tells the constant 0.
func (o *operand) isZero() bool { return o.id < 0 && o.text == "0" }

// around gives the sites before and after a direct call of a function of that
// name. result is what it returns.
func around(callee string, a arguments, result operand) (before, after []site) {
	if isIntrinsic(callee) {
		return ranges(callee, a), nil
	}
	if strings.HasPrefix(callee, "__kmpc_") {
		return aroundOpenMP(callee[len("__kmpc_"):], a, result)
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
		if a.has(pointerType, 0) {
			return []site{event(trace.Free, pointer(a[0]))}, allocation(a, result, 1)
		}
	case "posix_memalign":
		if a.has(pointerType, 0) && a.has(intType, 2) {
			return nil, []site{sized(trace.Alloc, recipe{how: asPointee, of: a[0]}, a[2])}
		}
	case "free", "cfree":
		if a.has(pointerType, 0) {
			return []site{event(trace.Free, pointer(a[0]))}, nil
		}
	}
	return ranges(callee, a), nil
}

func isPointer(o operand) bool {
	return o.text != "" && o.typ != nil && o.typ.kind == pointerType && o.typ.space == 0
}

func isInteger(o operand) bool {
	return o.text != "" && o.typ != nil && o.typ.kind == intType && o.typ.bits <= 64
}

// allocation is the Alloc after a call that returns memory of as many bytes as
// the argument at says.
func allocation(a arguments, result operand, at int) []site {
	if !a.has(intType, at) || !isPointer(result) {
		return nil
	}
	return []site{sized(trace.Alloc, pointer(result), a[at])}
}

// clearedAllocation is the Alloc after calloc, whose arguments are multiplied.
func clearedAllocation(a arguments, result operand) []site {
	if !a.has(intType, 0, 1) || a[0].typ != a[1].typ || !isPointer(result) {
		return nil
	}
	s := event(trace.Alloc, pointer(result), recipe{how: asProduct, of: a[0], other: a[1]})
	if n, m := number(a[0].text), number(a[1].text); n > 0 && m > 0 && n <= math.MaxUint32/m {
		s.bytes, s.n = uint32(n*m), 1
	}
	return []site{s}
}

// ranges gives the sites of functions that copy and set memory.
func ranges(callee string, a arguments) []site {
	if isIntrinsic(callee) {
		callee = baseName(callee)
	}
	switch callee {
	case "llvm.memcpy", "llvm.memmove", "llvm.memcpy.inline", "llvm.memcpy.element.unordered.atomic",
		"llvm.memmove.element.unordered.atomic", "memcpy", "memmove", "mempcpy", "__memcpy_chk", "__memmove_chk", "__mempcpy_chk":
		if a.has(pointerType, 0, 1) && a.has(intType, 2) && !a[2].isZero() {
			return []site{sized(trace.RangeRead, pointer(a[1]), a[2]), sized(trace.RangeWrite, pointer(a[0]), a[2])}
		}
	case "bcopy":
		if a.has(pointerType, 0, 1) && a.has(intType, 2) && !a[2].isZero() {
			return []site{sized(trace.RangeRead, pointer(a[0]), a[2]), sized(trace.RangeWrite, pointer(a[1]), a[2])}
		}
	case "llvm.memset", "llvm.memset.inline", "llvm.memset.element.unordered.atomic", "memset", "__memset_chk":
		if a.has(pointerType, 0) && a.has(intType, 2) && !a[2].isZero() {
			return []site{sized(trace.RangeWrite, pointer(a[0]), a[2])}
		}
	case "bzero":
		if a.has(pointerType, 0) && a.has(intType, 1) && !a[1].isZero() {
			return []site{sized(trace.RangeWrite, pointer(a[0]), a[1])}
		}
	}
	return nil
}

// aroundOpenMP knows the calls of LLVM's OpenMP runtime (openmp/runtime/src/kmp.h);
// name is without __kmpc_.
func aroundOpenMP(name string, a arguments, result operand) (before, after []site) {
	switch name {
	case "fork_call", "fork_teams", "fork_call_if":
		return []site{event(trace.ParallelBegin, recipe{how: asStack})}, []site{event(trace.ParallelEnd)}
	case "for_static_fini", "distribute_static_fini":
		return []site{event(trace.LoopEnd, recipe{how: asInteger, of: zero})}, nil
	case "barrier", "cancel_barrier":
		return nil, []site{event(trace.Barrier)}
	case "critical", "critical_with_hint":
		if a.has(pointerType, 2) {
			return nil, []site{event(trace.CriticalBegin, pointer(a[2]))}
		}
	case "end_critical":
		if a.has(pointerType, 2) {
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
	return worksharing(name, a, result)
}

// zero is the constant that ends a statically scheduled loop.
var zero = operand{typ: &datatype{kind: intType, bits: 64, text: "i64"}, typeText: "i64", text: "0", id: -1}

// worksharing knows the calls that share out a loop's iterations; their names
// end in the type of the counter.
func worksharing(name string, a arguments, result operand) (before, after []site) {
	loop := func(schedule, chunk int) []site {
		if !a.has(intType, schedule, chunk) {
			return nil
		}
		return []site{event(trace.LoopBegin, integer(a[schedule]), integer(a[chunk]))}
	}
	switch {
	case strings.HasPrefix(name, "for_static_init_"), strings.HasPrefix(name, "distribute_static_init_"):
		return loop(2, 8), nil
	case strings.HasPrefix(name, "dist_for_static_init_"):
		return loop(2, 9), nil
	case strings.HasPrefix(name, "dispatch_init_"):
		return loop(2, 6), nil
	case strings.HasPrefix(name, "dist_dispatch_init_"):
		return loop(2, 7), nil
	case strings.HasPrefix(name, "dispatch_next_") && isInteger(result):
		return nil, []site{event(trace.LoopEnd, integer(result))}
	}
	return nil, nil
}
