package ir

import (
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// features maps the words of the attribute "target-features" to the features that they imply.
var features = map[string]trace.Target{
	"sse4.1": trace.SSE41, "sse4.2": withSSE42, "popcnt": trace.POPCNT, "avx": withAVX, "avx2": withAVX2,
	"fma": withAVX | trace.FMA, "fma4": withAVX | trace.FMA, "avx512f": withAVX512,
}

// Features implied by instruction sets (LLVM, X86TargetParser.cpp).
const (
	withSSE42  = trace.SSE41 // popcnt is a separate feature
	withAVX    = withSSE42 | trace.AVX
	withAVX2   = withAVX | trace.AVX2
	withAVX512 = withAVX2 | trace.FMA | trace.AVX512

	level2 = withSSE42 | trace.POPCNT
	level3 = withAVX2 | trace.FMA | trace.POPCNT
	level4 = withAVX512 | trace.POPCNT
)

// neededBy maps a feature to the features that are lost if it is disabled: the feature itself, and
// all features that require it.
var neededBy = map[string]trace.Target{
	"sse4.1": withAVX512, "sse4.2": withAVX512 &^ trace.SSE41, "popcnt": trace.POPCNT,
	"avx": withAVX512 &^ withSSE42, "avx2": trace.AVX2 | trace.AVX512, "fma": trace.FMA | trace.AVX512, "avx512f": trace.AVX512,
}

// processors maps values of the attribute "target-cpu" to features. Compilers other than clang list
// only the processor of a function, not the features. Processors that are not listed have the
// baseline features of x86-64.
var processors = makeTable(map[trace.Target]string{
	trace.SSE41:                        "penryn",
	trace.POPCNT:                       "amdfam10 barcelona btver1",
	level2:                             `x86-64-v2 nehalem corei7 westmere silvermont slm atom_sse4_2 goldmont goldmont-plus tremont`,
	withAVX | trace.POPCNT:             `sandybridge corei7-avx ivybridge core-avx-i btver2`,
	withAVX | trace.POPCNT | trace.FMA: `bdver1 bdver2 bdver3`,
	level3: `x86-64-v3 haswell core-avx2 broadwell skylake bdver4 znver1 znver2 znver3
		alderlake raptorlake meteorlake gracemont sierraforest grandridge arrowlake arrowlake-s lunarlake pantherlake clearwaterforest`,
	level4: `x86-64-v4 knl knm skylake-avx512 skx cascadelake cooperlake cannonlake icelake-client icelake-server
		rocketlake tigerlake sapphirerapids emeraldrapids graniterapids graniterapids-d diamondrapids znver4 znver5`,
})

// isX86 reports whether a triple is for x86, 32-bit or 64-bit.
func isX86(triple string) bool {
	machine, _, _ := strings.Cut(triple, "-")
	return strings.HasPrefix(machine, "x86_64") || machine == "amd64" || len(machine) == 4 && machine[0] == 'i' && machine[2:] == "86"
}

// target returns the function's target. The target depends on the module's triple, on the
// function's attributes "target-cpu" and "target-features", and on the flags of the instructions.
// The attributes are interpreted as in LLVM's code generators. Without either attribute, the
// minimum for the triple is assumed.
func (f *function) target() trace.Target {
	if f.contracts() {
		return f.machine() | trace.Contract
	}
	return f.machine()
}

// contracts reports whether all products and sums may be fused, as after compilation with
// -ffast-math or -ffp-contract=fast.
func (f *function) contracts() bool {
	some := false
	for i := range f.insts {
		switch f.insts[i].word {
		case "fadd", "fsub", "fmul":
			if !f.insts[i].contract {
				return false
			}
			some = true
		}
	}
	return some
}

func (f *function) machine() trace.Target {
	if !isX86(f.m.triple) {
		return 0
	}
	cpu, list := "", ""
	for _, g := range f.groups {
		if value, ok := stringAttribute(f.m.groups[g], "target-cpu"); ok {
			cpu = value
		}
		if value, ok := stringAttribute(f.m.groups[g], "target-features"); ok {
			list = value
		}
	}
	target := processors[cpu]
	for word := range strings.SplitSeq(list, ",") {
		switch name := strings.TrimLeft(word, "+-"); {
		case strings.HasPrefix(word, "+"):
			target |= features[name]
		case strings.HasPrefix(word, "-"):
			target &^= neededBy[name]
		}
	}
	return target | trace.X86
}

// stringAttribute returns the value of `"key"="value"` in a group's line.
func stringAttribute(group, key string) (string, bool) {
	_, rest, ok := strings.Cut(group, `"`+key+`"="`)
	if !ok {
		return "", false
	}
	value, _, ok := strings.Cut(rest, `"`)
	return value, ok
}
