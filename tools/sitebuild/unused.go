package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/stackglass/stackglass/tools/internal/wasmcode"
)

// The linker keeps functions that no program of the page ever calls, because calls to these
// functions exist behind conditions. The functions account for 2 % of the bytes of a first visit,
// so emptyUnused removes their code. A call would stop the program with an error.

// unusedFunctions matches these functions and the function literals in them:
//
//   - the execution tracer, which only runtime.StartTrace enables;
//   - what the variable GODEBUG enables. Browsers have no environment variables, and the programs
//     contain no settings of their own;
//   - the comparison of types between several modules: a wasm program is one module;
//   - calls of methods by reflection. Programs that contain them also contain reflect.Value.Method;
//   - the CPU profiler, which only runtime.SetCPUProfileRate enables;
//   - reports about a damaged heap or stack, which precede the end of the program;
//   - times in the syntax of Go, which only the verb %#v of package fmt prints.
var unusedFunctions = regexp.MustCompile(`^(?:runtime\.(?:` +
	`trace(?:Advance|ReadCPU|StopReadCPU|CPUFlush|Stack|SyncBatch|RegisterLabelsAndReasons|AcquireEnabled)|` +
	`\(\*trace(?:Buf|Map|RegionAlloc|StackTable|StringTable|TypeTable|SchedResourceState|AdvancerState)\)\.\w+|` +
	`trace(?:Event)?Writer\.\w+|traceLocker\.(?:[A-Z]|emitUnblockStatus|eventWriter|startPC)\w*|dump(?:Stacks|Types)Rec|` +
	`\(\*(?:profBuf|hexdumper)\)\.\w+|gcDumpObject|\(\*mspan\)\.reportZombies|tracebackHexdump|hexdumpWords|hexdumpMarker\.\w+|` +
	`initMetrics|schedtrace|checkFinalizersAndCleanups|dumpScanStats|printScavTrace|typesEqual)|` +
	`internal/bisect\.(?:\(\*\w+\)\.)?\w+|reflect\.callMethod|time\.(?:Time|\(\*Time\))\.GoString)(?:\..*)?$`)

// usesOfUnused matches functions in whose presence unusedFunctions may be called.
var usesOfUnused = regexp.MustCompile(`(?m)^(?:runtime\.StartTrace|runtime\.SetCPUProfileRate|runtime/metrics\..*|reflect\.Value\.Method|reflect\.\(\*rtype\)\.Method)$`)

// emptyUnused removes the code of unusedFunctions from a program. The parameter names contains the
// names of the program's functions, one per line.
func emptyUnused(program, names []byte) ([]byte, error) {
	if use := usesOfUnused.Find(names); use != nil {
		return nil, fmt.Errorf("the program contains %s; remove the functions that it needs from unusedFunctions", use)
	}
	list := strings.Split(string(bytes.TrimSuffix(names, []byte("\n"))), "\n")
	return wasmcode.Empty(program, func(n int) bool { return unusedFunctions.MatchString(list[n]) })
}
