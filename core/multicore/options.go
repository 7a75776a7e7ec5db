package multicore

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/trace"
)

// MostCores is the maximum number of cores.
const MostCores = 64

// Options configures how a sequential run is divided among cores.
type Options struct {
	Cores    int // number of cores, from 1 to MostCores
	Division Division
	// Schedule overrides the program's schedules. If Schedule is nil, the program's schedules are
	// used, and dynamic schedules work as in LLVM's runtime (see the package documentation). Loops
	// with schedule(runtime) or schedule(auto) are then divided statically.
	Schedule *Schedule
	Order    interleave.Order
	Private  Private
	// Apart is used only if executions of blocks are divided. If Apart is true, the rows of each
	// core are in the order for private caches (Algorithm 1), and the order between cores has no
	// meaning. If Apart is false, the rows are in the order for shared caches (Algorithm 2).
	Apart bool
}

// Division selects how work is divided among cores.
type Division uint8

const (
	// ByIterations divides the iterations of worksharing loops according to their schedules, as
	// OpenMP does.
	ByIterations Division = iota
	// ByRegion divides the executions of each block separately in each region. ByRegion uses
	// Algorithms 1 and 2, but counts the executions within a region.
	ByRegion
	// AsPrinted divides the executions of each block over the whole trace, exactly as Algorithms 1
	// and 2 are published (SASMM §3.2, §3.3).
	AsPrinted
)

var divisionNames = []string{"iterations", "region", "printed"}

// String returns the name of d on the command line.
func (d Division) String() string {
	if int(d) < len(divisionNames) {
		return divisionNames[d]
	}
	return "unknown"
}

// ParseDivision parses "iterations", "region" or "printed". The error is a *trace.OptionError.
func ParseDivision(s string) (Division, error) {
	if i := slices.Index(divisionNames, s); i >= 0 {
		return Division(i), nil
	}
	return 0, &trace.OptionError{Option: "division", Got: s, Want: "one of " + strings.Join(divisionNames, ", ")}
}

// Schedule is the schedule of a worksharing loop (OpenMP 5.2, §11.5.3).
type Schedule struct {
	Kind ScheduleKind
	// Chunk is the number of iterations that are assigned at once; for Guided, it is the minimum
	// number. 0 means OpenMP's default: one contiguous part per core for Static, and chunks of
	// one iteration for the other kinds.
	Chunk uint64
}

// ScheduleKind selects how a schedule assigns chunks to cores.
type ScheduleKind uint8

const (
	Static  ScheduleKind = iota // chunk i is assigned to core i mod cores
	Dynamic                     // each idle core takes the next chunk
	Guided                      // like Dynamic, but the chunk size decreases with the number of remaining iterations
)

var scheduleNames = []string{"static", "dynamic", "guided"}

// String returns the OpenMP name of k.
func (k ScheduleKind) String() string {
	if int(k) < len(scheduleNames) {
		return scheduleNames[k]
	}
	return "unknown"
}

// String returns the schedule in the syntax of OMP_SCHEDULE, such as "dynamic,4".
func (s Schedule) String() string {
	if s.Chunk == 0 {
		return s.Kind.String()
	}
	return s.Kind.String() + "," + strconv.FormatUint(s.Chunk, 10)
}

// ParseSchedule parses "static", "dynamic" or "guided", with an optional chunk size, such as
// "dynamic,4". The error is a *trace.OptionError.
func ParseSchedule(text string) (s Schedule, err error) {
	kind, chunk, chunked := strings.Cut(text, ",")
	bad := &trace.OptionError{Option: "schedule", Got: text, Want: `static, dynamic or guided, optionally followed by a chunk size of at least 1, for example "dynamic,4"`}
	i := slices.Index(scheduleNames, kind)
	if i < 0 {
		return Schedule{}, bad
	}
	s.Kind = ScheduleKind(i)
	if chunked {
		if s.Chunk, err = strconv.ParseUint(chunk, 10, 63); err != nil || s.Chunk == 0 {
			return Schedule{}, bad
		}
	}
	return s, nil
}

// Private defines which addresses are private to each core.
type Private struct {
	// Ranges contains the private addresses as disjoint ranges in ascending order. If Ranges is
	// empty, the stack below the function that forks is private.
	Ranges []Range
}

// Range is the half-open address range [Low, High).
type Range = sasmm.Range

// Check validates the options. The error is a *trace.OptionError.
func (o *Options) Check() error {
	if o.Cores < 1 || o.Cores > MostCores {
		return &trace.OptionError{Option: "cores", Got: strconv.Itoa(o.Cores), Want: "1 to " + strconv.Itoa(MostCores)}
	}
	if int(o.Division) >= len(divisionNames) {
		return &trace.OptionError{Option: "division", Got: strconv.Itoa(int(o.Division)), Want: "one of " + strings.Join(divisionNames, ", ")}
	}
	return o.Order.Check()
}
