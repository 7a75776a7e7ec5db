package pass

import (
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/shelf"
)

// ballast is memory that is never touched, so the system does not allocate pages for it. The
// garbage collector counts the ballast as part of the heap. Without the ballast, it would collect a
// small heap again and again, which would slow down all goroutines. A run with many lines drops the
// ballast.
var ballast []byte

// HoldBallast allocates unused memory. A low GOGC suits large heaps; the ballast prevents too many
// collections of a small heap.
func HoldBallast() { ballast = make([]byte, ballastBytes) }

const (
	ballastBytes = 512 << 20
	ballastLines = 1 << 19
)

// dropBallast frees the ballast at once.
func dropBallast() {
	if ballast != nil {
		ballast = nil
		debug.FreeOSMemory()
	}
}

// memoryInUse returns the number of bytes that the process has obtained from the system.
func memoryInUse() uint64 {
	sample := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64() - uint64(len(ballast))
}

// setUpSpilling limits the memory of the models, so that they move excess data to a spill store.
// The result "end" is a function that removes the spill store unless a checkpoint needs it.
func (o *Options) setUpSpilling() (end func(), err error) {
	var folder *shelf.Folder
	if o.Checkpoints != nil {
		folder, err = shelf.Open(o.Spill, o.Checkpoints.Key)
	} else {
		folder, err = shelf.New(o.Spill)
	}
	if err != nil {
		return nil, &trace.OptionError{Option: "spill", Got: o.Spill, Want: "a writable folder (" + err.Error() + ")"}
	}
	limit := o.MemoryBytes
	if limit == 0 {
		limit = math.MaxInt64
	}
	dropBallast() // the ballast would count towards the limit
	before := debug.SetMemoryLimit(int64(min(limit/100*95, math.MaxInt64)))
	o.Spec.Budget = &locality.Budget{Bytes: limit / 100 * modelShare, Shelf: folder}
	return func() {
		debug.SetMemoryLimit(before)
		if o.Checkpoints == nil {
			_ = folder.Remove()
		} else {
			folder.Close()
		}
	}, nil
}

// modelShare is the percentage of the memory that models may use. Results, the reader and garbage
// occupy the rest.
const modelShare = 70

// AvailableMemory returns half of the bytes that the system can provide without swapping, or 0 if
// this number is unknown. The other half remains available for other programs and for the file
// cache. A pass must stop before memory is exhausted, because a program cannot recover after that.
func AvailableMemory() uint64 {
	return availableIn(readText("/proc/meminfo"), readText("/sys/fs/cgroup/memory.max"), readText("/sys/fs/cgroup/memory.current"))
}

func readText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// availableIn computes the memory limit from the contents of Linux's files in /proc and
// /sys/fs/cgroup.
func availableIn(meminfo, groupMax, groupCurrent string) uint64 {
	var free uint64
	known := false
	for line := range strings.Lines(meminfo) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
			if err == nil {
				free, known = kib<<10, true
			}
		}
	}
	most, err := strconv.ParseUint(strings.TrimSpace(groupMax), 10, 64)
	if err == nil {
		used, _ := strconv.ParseUint(strings.TrimSpace(groupCurrent), 10, 64)
		if left := most - min(used, most); !known || left < free {
			free, known = left, true
		}
	}
	if !known {
		return 0
	}
	return max(1, free/2)
}
