package multicore

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/trace"
)

// MostCores is the most cores that work is divided among.
const MostCores = 64

// Options say what machine a sequential run is thought onto, and how.
type Options struct {
	Cores    int // 1 to MostCores
	Division Division
	// Schedule stands in for what the program asks for; nil: as the program asks, with
	// dynamic schedules as LLVM's runtime has them (doc.go). A
	// program that asks for OMP_SCHEDULE (schedule(runtime)) or leaves it open
	// (schedule(auto)) gets static iterations unless it is set.
	Schedule *Schedule
	Order    interleave.Order
	// Private tells which references move to addresses of the core's own.
	Private Private
	// Apart has each core see its rows in its own order where executions are divided, as
	// private caches do (Algorithm 1); how those of different cores lie between each other
	// says nothing then. Else a cache that all share sees them in order (Algorithm 2).
	Apart bool
}

// Division is how the work of a region is divided among cores.
type Division uint8

const (
	// ByIterations divides the iterations of worksharing loops by their schedules, as
	// OpenMP does.
	ByIterations Division = iota
	// ByRegion divides the executions of each block by themselves, region by region
	// (Algorithms 1 and 2, instances counted per region).
	ByRegion
	// AsPrinted divides the executions of each block over the whole trace: Algorithms 1
	// and 2 literally (SASMM §3.2, §3.3).
	AsPrinted
)

var divisionNames = []string{"iterations", "region", "printed"}

// String is the division's name on the command line.
func (d Division) String() string {
	if int(d) < len(divisionNames) {
		return divisionNames[d]
	}
	return "unknown"
}

// ParseDivision reads iterations, region or printed. The error is a *trace.OptionError.
func ParseDivision(s string) (Division, error) {
	for i, name := range divisionNames {
		if s == name {
			return Division(i), nil
		}
	}
	return 0, &trace.OptionError{Option: "division", Got: s, Want: strings.Join(divisionNames, ", ")}
}

// Schedule is how a worksharing loop's iterations are dealt out (OpenMP 5.2, §11.5.3).
type Schedule struct {
	Kind ScheduleKind
	// Chunk is the number of iterations given out at once, or for Guided the fewest; 0:
	// OpenMP's default, which is one contiguous part a core for Static and 1 for the others.
	Chunk uint64
}

// ScheduleKind is the kind of a schedule.
type ScheduleKind uint8

// The kinds of schedules.
const (
	Static  ScheduleKind = iota // chunk i is core i mod cores'
	Dynamic                     // each core takes the next chunk when it is done with one
	Guided                      // the same, with chunks that shrink with what is left
)

var scheduleNames = []string{"static", "dynamic", "guided"}

// String is the kind's name in OpenMP.
func (k ScheduleKind) String() string {
	if int(k) < len(scheduleNames) {
		return scheduleNames[k]
	}
	return "unknown"
}

// String is the schedule as OMP_SCHEDULE has it: "dynamic,4".
func (s Schedule) String() string {
	if s.Chunk == 0 {
		return s.Kind.String()
	}
	return s.Kind.String() + "," + strconv.FormatUint(s.Chunk, 10)
}

// ParseSchedule reads static, dynamic or guided, with or without a chunk behind a comma.
// The error is a *trace.OptionError.
func ParseSchedule(text string) (s Schedule, err error) {
	kind, chunk, chunked := strings.Cut(text, ",")
	bad := &trace.OptionError{Option: "schedule", Got: text, Want: `static, dynamic or guided, with or without a chunk of 1 or more iterations: "dynamic,4"`}
	for i, name := range scheduleNames {
		if kind != name {
			continue
		}
		s.Kind = ScheduleKind(i)
		if chunked {
			if s.Chunk, err = strconv.ParseUint(chunk, 10, 63); err != nil || s.Chunk == 0 {
				return Schedule{}, bad
			}
		}
		return s, nil
	}
	return Schedule{}, bad
}

// Private tells private references from shared ones.
type Private struct {
	// Shared, if not nil, are sites all of whose references are shared, by their number:
	// labels of files of PPT. Then references of the other sites in a region are private.
	Shared []bool
	// Ranges, if not empty, are addresses that are private, ascending and apart. Then all
	// else is shared. With neither, private is what lies on the stack below the function that
	// forks.
	Ranges []Range
}

// Range is a run of addresses, from Low up to High.
type Range struct{ Low, High trace.Addr }

// Check tells what is wrong with the options. The error is a *trace.OptionError.
func (o *Options) Check() error {
	if o.Cores < 1 || o.Cores > MostCores {
		return &trace.OptionError{Option: "cores", Got: strconv.Itoa(o.Cores), Want: "1 to " + strconv.Itoa(MostCores)}
	}
	if int(o.Division) >= len(divisionNames) {
		return &trace.OptionError{Option: "division", Got: strconv.Itoa(int(o.Division)), Want: strings.Join(divisionNames, ", ")}
	}
	return o.Order.Check()
}
